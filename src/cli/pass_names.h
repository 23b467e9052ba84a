// pass_names.h — options that name passes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon::cli {

// Of the portable pipeline, in its order.
std::vector<std::string> pass_names();
// Of the portable and then the target pipeline: those that a program can be compiled without.
std::vector<std::string> pass_names_of_compiling();

// The user's fault: there is no pass of this name among those `known`.
UserError no_pass(const std::string& name, const std::vector<std::string>& known);

// The names in what an option was given: NAME,NAME. One that is not among those `known` is the user's fault.
std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts,
                                  const std::vector<std::string>& known);

}  // namespace tenon::cli
