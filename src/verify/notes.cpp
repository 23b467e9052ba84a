#include "verify/notes.h"

#include <algorithm>

namespace tenon {
namespace {

// The first few names of a list that may be long.
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), kMost), ", "));
  return names.size() <= kMost ? text : fmt::format("{} and {} more", text, names.size() - kMost);
}

}  // namespace

std::vector<std::string> notes_of(const Check& check) {
  std::vector<std::string> notes;
  if (!check.detail.empty())
    notes.push_back(check.detail);
  if (!check.nearly_zero.empty())
    notes.push_back(
        fmt::format("nearly zero, so that comparing proves nothing: {}", some(check.nearly_zero)));
  if (!check.unchecked.empty())
    notes.push_back(fmt::format("not checked: {}", some(check.unchecked)));
  if (!check.missing.empty())
    notes.push_back(fmt::format("no gradient any more: {}", some(check.missing)));
  return notes;
}

}  // namespace tenon
