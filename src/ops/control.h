// control.h — control flow: if, while, scan. Their nested graphs are closed: what they use from outside is
// handed to them as operands.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& control_ops();

using Region = std::unique_ptr<Graph>;

// Both branches take all inputs.
std::vector<Value> if_else(Value condition, const std::vector<Value>& inputs, Region then, Region otherwise);

// A loop: body(iteration: i64[], carried…, captured…) → (go on: bool[], carried…, collected…). It ends after
// `trip_count` iterations, or when `condition`, at first, or the body, after its iteration, says so; either
// may be left out. Gives the carried values as they are in the end, and what was collected, stacked along a
// new axis 0.
struct Loop {
  Value trip_count = {}, condition = {};
  std::vector<Value> carried = {}, captured = {};
};
std::vector<Value> while_loop(Graph& graph, const Loop& loop, Region body);

// A loop over slices: body(carried…, slices…, captured…) → (carried…, collected…).
struct Scan {
  std::vector<Value> carried = {}, scanned = {}, captured = {};
  // One per scanned or collected value: the axis along which it is sliced or stacked, and whether from the
  // end.
  std::vector<int64_t> axes = {}, reversed = {}, output_axes = {}, output_reversed = {};
};
std::vector<Value> scan(Graph& graph, const Scan& scan, Region body);

// The inputs and outputs of the body of a while or a scan, by what they are.
struct LoopBody {
  explicit LoopBody(const Node& loop);
  std::vector<Value> varying() const;  // the inputs but those captured, in their order

  const Graph& graph;
  Value iteration;  // its number; a scan takes none
  std::vector<Value> carried, slices, captured;
  Value go_on;                         // a scan gives none
  std::vector<Value> next, collected;  // next: what is carried to the next iteration
};

// Whether a loop has as many iterations as its count says, or a scan slices: nothing can end it before.
bool ends_by_count(const Node& loop);

}  // namespace tenon
