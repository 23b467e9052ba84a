#include "rewrite/nested_probes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "rewrite/region.h"
#include "tensor/wide.h"

namespace tenon {

std::optional<double> NestedProbes::value_at(size_t cut, double x) const {
  run();
  const auto point = std::ranges::find(kPoints, x);
  if (values_.empty() || point == kPoints.end())
    return std::nullopt;
  return values_[cut * kPoints.size() + static_cast<size_t>(point - kPoints.begin())];
}

bool NestedProbes::may_be(size_t cut, std::span<const double> wanted, double rounding) const {
  constexpr double nearest = 1e-15;  // to 0
  run();
  for (size_t i = 0; i < wanted.size() && !values_.empty(); ++i) {
    const double actual = values_[cut * kPoints.size() + i], other = wanted[i];
    const bool same =
        actual == other || (std::isnan(actual) && std::isnan(other)) ||
        (std::isfinite(other) &&
         std::fabs(actual - other) <= std::max(nearest, rounding * std::max(1.0, std::fabs(other))));
    if (finite_[cut * kPoints.size() + i] && !same)
      return false;
  }
  return true;
}

// Each value is a vector with a block for each cut. Where a cut is come to, its block becomes the points
// themselves.
void NestedProbes::run() const {
  if (std::exchange(was_run_, true))
    return;
  const Extents extents = {static_cast<int64_t>(cuts_.size() * kPoints.size())};
  std::vector<double> points;
  for (size_t i = 0; i < cuts_.size(); ++i)
    points.insert(points.end(), kPoints.begin(), kPoints.end());
  std::unordered_map<const ValueData*, size_t> cut_of;
  for (size_t i = 0; i < cuts_.size(); ++i)
    cut_of.emplace(cuts_[i].data(), i);
  std::unordered_map<const ValueData*, Datum> known = {
      {cuts_.back().data(), narrow<double>(DType::F64, extents, points)}};
  for (Value number : numbers_)
    known.emplace(number.data(), number_tensor(number, Precision::Exact));
  std::vector<bool> finite(points.size(), true);
  try {
    for (const Node* node : nodes_) {
      Data operands;
      for (Value operand : node->operands())
        operands.push_back(known.at(operand.data()));
      Tensor result = evaluate_in(*node, operands, Precision::Exact);
      if (result.extents() != extents)
        return;
      if (is_float(result.dtype())) {
        std::vector<double> numbers = widen<double>(result);
        if (node == nodes_.back()) {
          values_ = std::move(numbers);
          finite_ = std::move(finite);
          return;
        }
        for (size_t i = 0; i < finite.size(); ++i)
          finite[i] = finite[i] && std::isfinite(numbers[i]);
        if (const auto cut = cut_of.find(node->result().data()); cut != cut_of.end()) {
          if (result.dtype() != DType::F64)
            return;
          for (size_t i = cut->second * kPoints.size(), end = i + kPoints.size(); i < end; ++i) {
            numbers[i] = points[i];
            finite[i] = true;
          }
          result = narrow<double>(DType::F64, extents, numbers);
        }
      }
      known.emplace(node->result().data(), std::move(result));
    }
  } catch (const UserError&) {  // it cannot be run, and computes something else
  }
}

}  // namespace tenon
