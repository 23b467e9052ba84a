#include "verify/notes.h"

#include "base/names.h"
#include "verify/checks.h"

namespace tenon {

std::vector<std::string> notes_of(const Check& check) {
  std::vector<std::string> notes;
  if (!check.detail.empty())
    notes.push_back(check.detail);
  if (!check.nearly_zero.empty())
    notes.push_back(
        fmt::format("nearly zero, so that comparing proves nothing: {}", first_few(check.nearly_zero)));
  if (!check.rounding.empty())
    notes.push_back(
        fmt::format("off by as much as the model itself is if its floats move by a rounding step: {}",
                    first_few(check.rounding)));
  if (!check.unsteady.empty())
    notes.push_back(
        fmt::format("{}, so that comparing proves nothing: {}", kUnsteady, first_few(check.unsteady)));
  if (!check.was_nan.empty())
    notes.push_back(fmt::format("what was NaN is a number now: {}", first_few(check.was_nan)));
  if (!check.unchecked.empty())
    notes.push_back(fmt::format("not checked: {}", first_few(check.unchecked)));
  if (!check.missing.empty())
    notes.push_back(fmt::format("no gradient any more: {}", first_few(check.missing)));
  return notes;
}

}  // namespace tenon
