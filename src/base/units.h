// units.h — sizes, times and counts as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

// "712 B", "35.8 KiB", "1.5 MiB", "2.0 GiB"; below 10,000 bytes all digits.
std::string format_bytes(double count);

// "812 ns", "14.3 µs", "2.07 ms", "1.50 s", "12 min 30 s": three digits, as many as measurements are worth.
std::string format_seconds(double seconds);

// "1 kernel", "2 kernels".
std::string format_count(uint64_t count, std::string_view word);

}  // namespace tenon
