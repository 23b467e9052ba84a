#include "base/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace tenon {

std::string end_of(std::string_view name, size_t most) {
  return count_characters(name) <= most ? std::string(name)
                                        : fmt::format("…{}", last_characters(name, most - 1));
}

std::string first_and_count(const std::vector<std::string>& names, size_t room) {
  constexpr size_t kLeast = 12;
  const std::string more = names.size() > 1 ? fmt::format(" +{}", names.size() - 1) : std::string();
  return end_of(names.front(), std::max(room, more.size() + kLeast) - more.size()) + more;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  const size_t told = std::min(names.size(), kMost);
  const std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(told), ", "));
  return told == names.size() ? text : fmt::format("{} and {} more", text, names.size() - told);
}

}  // namespace tenon
