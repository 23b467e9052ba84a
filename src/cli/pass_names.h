// pass_names.h — options that name passes.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// Of the pipeline, in its order.
std::vector<std::string> pass_names();

// The names in what an option was given: NAME,NAME.
std::set<std::string> split_names(std::string_view option, const std::vector<std::string>& texts);

}  // namespace tenon::cli
