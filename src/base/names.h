// names.h — names of a model, which may be long and many, in as little room as there is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// All of it, or an ellipsis and the end of it: names in models end in what they are.
std::string end_of(std::string_view name, size_t most);

// As much of the first as there is room for, but some of it in any case, and how many more there are:
// "…block3/Conv +2".
std::string first_and_count(const std::vector<std::string>& names, size_t room);

// "a, b, c and 12 more".
std::string first_few(const std::vector<std::string>& names);

}  // namespace tenon
