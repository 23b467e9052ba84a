// pass_names.h — options that name passes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// The names in what an option was given: NAME,NAME.
std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts);

}  // namespace tenon::cli
