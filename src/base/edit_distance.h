// edit_distance.h — how far two spellings are apart, for hints about names that do not exist.
#pragma once

#include <cstddef>
#include <string_view>

namespace tenon {

// How many letters must be put in, left out, changed or exchanged with the next to get from one to the other;
// case does not count.
size_t edit_distance(std::string_view from, std::string_view to);

}  // namespace tenon
