// nested_probes.h — what the nested regions of one root make of a few numbers, in one run for all of them.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "ir/graph.h"

namespace tenon {

// Of elementwise regions without fixed values, in Exact precision. A chain of functions ends in as many
// regions as it has links, and each may be one of many functions: run one by one, they would take a time that
// grows with the square of the chain.
class NestedProbes {
 public:
  // The first few tell most functions apart, and are among those that all functions are compared at; the
  // others are what attributes are guessed from.
  static constexpr std::array kPoints = {0.0, 1.0, -1.0, -0.5, 3.0, 300.0, -1e3, 0x1p-10};
  static constexpr size_t kTelling = 5;

  // `nodes` are those of the largest region, in the graph's order; `cuts` the x of all, the nearest first.
  NestedProbes(std::vector<Value> cuts, std::vector<Node*> nodes, std::vector<Value> numbers)
      : cuts_(std::move(cuts)), nodes_(std::move(nodes)), numbers_(std::move(numbers)) {}

  // What the region of a cut gives at a point; nothing where it was not run there, or cannot be.
  std::optional<double> value_at(size_t cut, double x) const;

  // Whether the region may be a function that is `wanted` at the telling points, up to this relative
  // rounding: false only where it is not. Where it has NaN or infinities on the way, nothing is compared.
  bool may_be(size_t cut, std::span<const double> wanted, double rounding) const;

 private:
  void run() const;

  std::vector<Value> cuts_;
  std::vector<Node*> nodes_;
  std::vector<Value> numbers_;
  // For each cut one after another, for each point; empty where they cannot be run.
  mutable bool was_run_ = false;
  mutable std::vector<double> values_;
  mutable std::vector<bool> finite_;  // on the way
};

}  // namespace tenon
