#include "verify/notes.h"

#include "base/names.h"

namespace tenon {

std::vector<std::string> notes_of(const Check& check) {
  std::vector<std::string> notes;
  if (!check.detail.empty())
    notes.push_back(check.detail);
  if (!check.nearly_zero.empty())
    notes.push_back(
        fmt::format("nearly zero, so that comparing proves nothing: {}", first_few(check.nearly_zero)));
  if (!check.unchecked.empty())
    notes.push_back(fmt::format("not checked: {}", first_few(check.unchecked)));
  if (!check.missing.empty())
    notes.push_back(fmt::format("no gradient any more: {}", first_few(check.missing)));
  return notes;
}

}  // namespace tenon
