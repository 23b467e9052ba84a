// sanitized.h — whether tests run with sanitizers. These make the interpreter and the reference evaluator ten
// times as slow, and what they look for shows in a few of the cases that differ in numbers alone.
#pragma once

namespace tenon {

#if __has_feature(address_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

}  // namespace tenon
