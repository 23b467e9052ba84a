// control.cpp — ONNX control flow: If, Loop, Scan.
#include "ops/control.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

std::vector<Value> choose(const NodeView& n) {
  const Value condition = n.in(0);
  const GraphProto &then = n.graph_proto("then_branch"), &otherwise = n.graph_proto("else_branch");
  // Exporters guard a squeeze by a look at the shape. Where that is known, the branch not taken need not even
  // be valid.
  if (const Tensor* known = condition.known_tensor(); known != nullptr && known->count() == 1)
    return n.inlined(as_int(*known) != 0 ? then : otherwise);
  Captures captures;
  Region first = n.region(then, {}, captures);
  Region second = n.region(otherwise, {}, captures);
  NodeView::add_missing_captures(*first, 0, captures);
  return if_else(condition, captures.outer, std::move(first), std::move(second));
}

// Imports the body of a loop. The inputs from `first_input` on are carried from turn to turn: where a turn
// changes the shape of one, its type is widened until it holds for every turn.
Region loop_body(const NodeView& n, std::vector<RegionInput> inputs, size_t first_input, size_t first_output,
                 size_t carried, Captures& captures) {
  while (true) {
    captures.outer.clear();
    Region body = n.region(n.graph_proto("body"), inputs, captures);
    const Types outputs = body->output_types();
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

std::vector<Value> loop(const NodeView& n) {
  Loop loop = {.trip_count = n.maybe(0), .condition = n.maybe(1), .carried = n.ins(2)};
  // The condition, as a body sees it, holds: else there would be no turn.
  std::vector<RegionInput> inputs = {Type::tensor(DType::I64, {}), Tensor::scalar(true)};
  for (Value value : loop.carried)
    inputs.emplace_back(value.type());
  Captures captures;
  Region body = loop_body(n, inputs, 2, 1, loop.carried.size(), captures);
  loop.captured = captures.outer;
  return while_loop(n.graph(), loop, std::move(body));
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
  Region body = loop_body(n, inputs, 0, 0, carried.size(), captures);
  scan.captured = captures.outer;
  const size_t outputs = body->outputs().size();
  const auto collected = zeros(outputs < carried.size() ? 0 : outputs - carried.size());
  scan.output_axes = n.integers("scan_output_axes", collected);
  scan.output_reversed = n.integers("scan_output_directions", collected);
  return tenon::scan(n.graph(), scan, std::move(body));
}

// Opset 8: everything has a batch dimension in front, and each example is scanned on its own.
std::vector<Value> scan_batch(const NodeView& n) {
  if (n.maybe(0))
    throw unsupported("Scan: lengths of the sequences in a batch");
  const auto [carried, scanned] = ScanInputs(n, n.ins(1));
  std::vector<RegionInput> inputs;
  for (Value value : carried)
    inputs.emplace_back(without_axis(value.type(), 0));
  for (Value value : scanned)
    inputs.emplace_back(without_axis(without_axis(value.type(), 0), 0));
  Captures captures;
  Region body = loop_body(n, inputs, 0, 0, carried.size(), captures);

  Region example = n.graph().make_region("example");
  const auto example_inputs = [&](const std::vector<Value>& values) {
    std::vector<Value> slices;
    for (Value value : values)
      slices.push_back(example->add_input(without_axis(value.type(), 0), value.name()));
    return slices;
  };
  Scan steps = {.carried = example_inputs(carried), .scanned = example_inputs(scanned)};
  for (Value value : captures.outer)
    steps.captured.push_back(example->add_input(value.type(), value.name()));
  steps.axes = zeros(scanned.size());
  steps.reversed = n.integers("directions", zeros(scanned.size()));
  const size_t outputs = body->outputs().size();
  steps.output_axes = steps.output_reversed = zeros(outputs < carried.size() ? 0 : outputs - carried.size());
  example->set_outputs(tenon::scan(*example, steps, std::move(body)));

  Scan examples = {.scanned = carried, .captured = captures.outer};
  examples.scanned.insert(examples.scanned.end(), scanned.begin(), scanned.end());
  examples.axes = examples.reversed = zeros(examples.scanned.size());
  examples.output_axes = examples.output_reversed = zeros(outputs);
  return tenon::scan(n.graph(), examples, std::move(example));
}

std::vector<Value> scan_any(const NodeView& n) { return n.opset() >= 9 ? scan_slices(n) : scan_batch(n); }

}  // namespace

const Conversions& control_conversions() {
  static const Conversions conversions = {
      {"If", choose},
      {"Loop", loop},
      {"Scan", scan_any},
  };
  return conversions;
}

}  // namespace tenon::onnx
