// control.cpp — ONNX control flow: If, Loop, Scan.
#include "ops/control.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/sequence.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_if(const NodeView& n) {
  const Value condition = n.in(0);
  const GraphProto &then = n.graph_proto("then_branch"), &otherwise = n.graph_proto("else_branch");
  // Exporters guard a squeeze by a look at the shape. Where that is known, the branch not taken need not even
  // be valid.
  if (const auto known = condition.known_ints(); known && known->size() == 1)
    return n.inlined(known->front() != 0 ? then : otherwise);
  Captures captures;
  Region first = n.region(then, {}, captures);
  Region second = n.region(otherwise, {}, captures);
  NodeView::add_missing_captures(*first, 0, captures);
  return if_else(condition, captures.outer, std::move(first), std::move(second));
}

// The body of a loop, imported; with which of its carried values are optionals only when they come in: it
// then hands on an optional, too.
struct Body {
  Region graph;
  std::vector<bool> fills = {};
};

void fill_optionals(Body& body, const std::vector<RegionInput>& inputs, size_t first_input,
                    size_t first_output, size_t carried) {
  std::vector<Value> outputs = body.graph->outputs();
  for (size_t i = 0; i < carried && first_output + i < outputs.size(); ++i) {
    Value& output = outputs[first_output + i];
    body.fills.push_back(std::get<Type>(inputs[first_input + i]).is_optional() &&
                         !output.type().is_optional());
    if (body.fills.back())
      output = optional_of(output);
  }
  body.graph->set_outputs(outputs, body.graph->output_names());
}

// The inputs from `first_input` on are carried from iteration to iteration: where an iteration changes the
// shape of one, its type is widened until it holds for every iteration.
Body loop_body(const NodeView& n, std::vector<RegionInput> inputs, size_t first_input, size_t first_output,
               size_t carried, Captures& captures) {
  while (true) {
    captures.outer.clear();
    Body body = {n.region(n.graph_proto("body"), inputs, captures)};
    fill_optionals(body, inputs, first_input, first_output, carried);
    const Types outputs = body.graph->output_types();
    bool holds = true;
    for (size_t i = 0; i < carried && first_output + i < outputs.size(); ++i) {
      Type& type = std::get<Type>(inputs[first_input + i]);
      const std::optional<Type> wider = join(type, outputs[first_output + i]);
      if (wider && !(*wider == type)) {
        type = *wider;
        holds = false;
      }
    }
    if (holds)
      return body;
  }
}

std::vector<Value> convert_loop(const NodeView& n) {
  Loop loop = {.trip_count = n.maybe(0), .condition = n.maybe(1), .carried = n.ins(2)};
  // The condition, as a body sees it, holds: else there would be no iteration.
  std::vector<RegionInput> inputs = {Type::tensor(DType::I64, {}), Tensor::scalar(true)};
  for (Value value : loop.carried)
    inputs.emplace_back(value.type());
  Captures captures;
  Body body = loop_body(n, inputs, 2, 1, loop.carried.size(), captures);
  loop.captured = captures.outer;
  std::vector<Value> results = while_loop(n.graph(), loop, std::move(body.graph));
  for (size_t i = 0; i < body.fills.size(); ++i)
    if (body.fills[i])
      results[i] = optional_get(results[i]);
  return results;
}

Type without_axis(const Type& type, int64_t axis) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return type;
  const int64_t rank = type.as_tensor().shape.rank();
  if (axis < -rank || axis >= rank)
    throw user_error("Scan: axis {} is out of range for {}", axis, type);
  std::vector<Dim> dims = type.as_tensor().shape.dims();
  dims.erase(dims.begin() + (axis < 0 ? axis + rank : axis));
  return Type::tensor(type.as_tensor().dtype, dims);
}

// The values of a Scan node, which come without a name: first the carried ones, then the scanned.
struct ScanInputs {
  std::vector<Value> carried, scanned;

  ScanInputs(const NodeView& n, const std::vector<Value>& values) {
    const int64_t count = n.integer("num_scan_inputs"), all = static_cast<int64_t>(values.size());
    if (count < 1 || count > all)
      throw user_error("Scan: num_scan_inputs is {}, but there are {} inputs", count, all);
    carried.assign(values.begin(), values.end() - count);
    scanned.assign(values.end() - count, values.end());
  }
};

std::vector<int64_t> zeros(size_t count) { return std::vector<int64_t>(count, 0); }

std::vector<Value> scan_slices(const NodeView& n) {
  const auto [carried, scanned] = ScanInputs(n, n.ins());
  Scan scan = {.carried = carried, .scanned = scanned};
  scan.axes = n.integers("scan_input_axes", zeros(scanned.size()));
  scan.reversed = n.integers("scan_input_directions", zeros(scanned.size()));
  if (scan.axes.size() != scanned.size())
    throw user_error("Scan: scan_input_axes has {} numbers for {} scanned inputs", scan.axes.size(),
                     scanned.size());
  std::vector<RegionInput> inputs;
  for (Value value : carried)
    inputs.emplace_back(value.type());
  for (size_t i = 0; i < scanned.size(); ++i)
    inputs.emplace_back(without_axis(scanned[i].type(), scan.axes[i]));
  Captures captures;
  Region body = loop_body(n, inputs, 0, 0, carried.size(), captures).graph;
  scan.captured = captures.outer;
  const size_t outputs = body->outputs().size();
  const auto collected = zeros(outputs < carried.size() ? 0 : outputs - carried.size());
  scan.output_axes = n.integers("scan_output_axes", collected);
  scan.output_reversed = n.integers("scan_output_directions", collected);
  return tenon::scan(n.graph(), scan, std::move(body));
}

// Of opset 8: everything has a batch dimension in front, each example is scanned on its own, and its sequence
// may end earlier than others, which leaves zeros in what is collected.
std::vector<Value> scan_batch(const NodeView& n) {
  const auto [carried, scanned] = ScanInputs(n, n.ins(1));
  std::vector<RegionInput> inputs;
  for (Value value : carried)
    inputs.emplace_back(without_axis(value.type(), 0));
  for (Value value : scanned)
    inputs.emplace_back(without_axis(without_axis(value.type(), 0), 0));
  Captures captures;
  Region body = loop_body(n, inputs, 0, 0, carried.size(), captures).graph;
  const size_t outputs = body->outputs().size();

  Region example = n.graph().make_region("example");
  Scan examples = {.captured = captures.outer};
  const auto take = [&](Value value) {
    examples.scanned.push_back(value);
    return example->add_input(without_axis(value.type(), 0), value.name());
  };
  Scan steps;
  std::transform(carried.begin(), carried.end(), std::back_inserter(steps.carried), take);
  std::transform(scanned.begin(), scanned.end(), std::back_inserter(steps.scanned), take);
  const Value length = n.maybe(0) ? reshape(take(n.in(0)), {1}) : Value();
  for (Value value : captures.outer)
    steps.captured.push_back(example->add_input(value.type(), value.name()));
  const Value zero = int_vector(*example, {0}),
              missing = length ? size_along(steps.scanned[0], 0) - length : Value();
  if (length)
    for (Value& value : steps.scanned)
      value = slice(value, zero, length, {0});
  steps.axes = zeros(scanned.size());
  steps.reversed = n.integers("directions", zeros(scanned.size()));
  steps.output_axes = steps.output_reversed = zeros(outputs < carried.size() ? 0 : outputs - carried.size());
  std::vector<Value> results = tenon::scan(*example, steps, std::move(body));
  if (length)
    for (size_t i = carried.size(); i < results.size(); ++i)
      results[i] = pad(results[i], concat({zero, missing}, 0), {0});
  example->set_outputs(results);

  examples.axes = examples.reversed = zeros(examples.scanned.size());
  examples.output_axes = examples.output_reversed = zeros(outputs);
  return tenon::scan(n.graph(), examples, std::move(example));
}

std::vector<Value> convert_scan(const NodeView& n) { return n.opset() >= 9 ? scan_slices(n) : scan_batch(n); }

}  // namespace

const Conversions& control_conversions() {
  static const Conversions conversions = {
      {"If", convert_if},
      {"Loop", convert_loop},
      {"Scan", convert_scan},
  };
  return conversions;
}

}  // namespace tenon::onnx
