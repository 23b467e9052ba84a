// named_targets.h — typical machines by name, the same on every host: what is scheduled for them does not
// depend on where.
#pragma once

#include "target/target.h"

namespace tenon {

// "avx2", "avx512" and so on, in the order of the architectures.
std::vector<std::string_view> target_names();

// A name that is not there is a user_error that lists those that are.
Target target_named(std::string_view name);

}  // namespace tenon
