// pass_names.h — options that name passes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon::cli {

// Of the pipeline, in its order.
std::vector<std::string> pass_names();

// The user's fault: there is no pass of this name.
UserError no_pass(const std::string& name);

// The names in what an option was given: NAME,NAME. One that no pass has is the user's fault.
std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts);

}  // namespace tenon::cli
