#include "verify/judge.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/wide.h"
#include "verify/conditioning.h"
#include "verify/rewrite_checks.h"

namespace tenon {
namespace {

// What was expected, moved by as much as nudged operands move what was computed: that may be wrong, but how
// far roundings move it is not.
Tensor moved_like(const Tensor& expected, const Tensor& actual, const Tensor& with_nudged_operands) {
  const std::vector<double> from = widen<double>(actual), to = widen<double>(with_nudged_operands);
  std::vector<double> moved = widen<double>(expected);
  for (size_t i = 0; i < moved.size(); ++i) {
    const bool stays = to[i] == from[i] || std::isnan(from[i]);
    if (!stays)
      moved[i] = expected.dtype() == DType::Bool ? 1 - moved[i] : moved[i] + (to[i] - from[i]);
  }
  return narrow<double>(expected.dtype(), expected.extents(), moved);
}

}  // namespace

Check judge(const Tensor& actual, const Tensor& expected,
            const std::function<Tensor(uint64_t seed)>& compute_nudged, const std::string& name,
            double tolerance) {
  Check check = compare_by_class(actual, expected, Numerics::Reassociates, tolerance);
  if (check.verdict == Verdict::Unknown)
    check.nearly_zero = {name};
  if (check.verdict != Verdict::Failed)
    return check;
  std::vector<Datum> moved;
  try {
    for (int64_t run = 0; run < kNudgedRuns; ++run)
      moved.push_back(moved_like(expected, actual, compute_nudged(static_cast<uint64_t>(run))));
  } catch (const UserError&) {
    return check;  // operands that are nudged may be refused
  }
  switch (explain(actual, expected, moved, tolerance)) {
    case Explanation::Rounding:
      return {.verdict = Verdict::Passed, .rounding = {name}};
    case Explanation::Unsteady:
      return {.verdict = Verdict::Unknown, .unsteady = {name}};
    case Explanation::None:
      break;
  }
  return check;
}

void add_check(Check& all, Check one) {
  all.error = std::max(all.error, one.error);
  if (all.verdict == Verdict::Failed)
    return;
  if (one.verdict != Verdict::Unknown)
    all.verdict = one.verdict;
  all.detail = std::move(one.detail);
  for (const auto names : {&Check::nearly_zero, &Check::rounding, &Check::unsteady})
    for (const std::string& name : one.*names)
      if (std::ranges::find(all.*names, name) == (all.*names).end())
        (all.*names).push_back(name);
}

Tensor elements_at(const Tensor& tensor, const std::vector<int64_t>& indices) {
  Tensor elements(tensor.dtype(), {std::ssize(indices)});
  const auto size = static_cast<size_t>(tensor.element_size());
  for (size_t i = 0; i < indices.size(); ++i)
    std::ranges::copy(tensor.bytes().subspan(static_cast<size_t>(indices[i]) * size, size),
                      elements.mutable_bytes().begin() + static_cast<ptrdiff_t>(i * size));
  return elements;
}

}  // namespace tenon
