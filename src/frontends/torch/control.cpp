// control.cpp — PyTorch's higher-order ops: control flow, and graphs that are called in another mode.
#include "ops/control.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/truth.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

std::vector<Value> inputs_like(Graph& region, const std::vector<Value>& values) {
  std::vector<Value> inputs;
  for (Value value : values)
    inputs.push_back(region.add_input(value.type(), value.name()));
  return inputs;
}

// The type of one slice along axis 0.
Type slice_type(Value x) {
  if (x.rank() == 0)
    throw user_error("a scalar cannot be scanned");
  std::vector<Dim> dims = x.shape().dims();
  dims.erase(dims.begin());
  return Type::tensor(x.dtype(), dims);
}

std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Value scalar_truth(Value x) {
  return x.rank() == 0 ? truth_of(x) : reshape(truth_of(x), std::vector<int64_t>{});
}

// cond(condition, then, otherwise, operands)
std::vector<Value> convert_cond(const NodeView& n) {
  const std::vector<Value> condition = n.values(0), operands = n.values(3);
  if (condition.size() != 1)
    throw user_error("cond: its condition must be one truth");
  const GraphSpec &then = n.nested(1), &otherwise = n.nested(2);
  const Value truth = scalar_truth(condition.front());
  if (const Tensor* known = truth.known_tensor())
    return n.import_into(n.graph(), as_int(*known) != 0 ? then : otherwise, operands);
  const auto branch = [&](const GraphSpec& spec, const char* name) {
    Region region = n.graph().make_region(name);
    region->set_outputs(n.import_into(*region, spec, inputs_like(*region, operands)));
    return region;
  };
  Region first = branch(then, "then"), second = branch(otherwise, "otherwise");
  return if_else(truth, operands, std::move(first), std::move(second));
}

// while_loop(condition, body, carried, captured). Our body says after its iteration whether to go on: the
// condition is computed once before the loop, and then at the end of each iteration.
std::vector<Value> convert_while_loop(const NodeView& n) {
  const GraphSpec &condition = n.nested(0), &body = n.nested(1);
  Loop loop = {.carried = n.values(2), .captured = n.values(3)};
  const auto goes_on = [&](Graph& graph, const std::vector<Value>& carried,
                           const std::vector<Value>& captured) {
    const std::vector<Value> truth = n.import_into(graph, condition, joined(carried, captured));
    if (truth.size() != 1)
      throw user_error("while_loop: its condition gives {} values, but one was wanted", truth.size());
    return scalar_truth(truth.front());
  };
  loop.condition = goes_on(n.graph(), loop.carried, loop.captured);
  Region region = n.graph().make_region("body");
  region->add_input(Type::tensor(DType::I64, {}), "iteration");
  const std::vector<Value> carried = inputs_like(*region, loop.carried),
                           captured = inputs_like(*region, loop.captured);
  const std::vector<Value> next = n.import_into(*region, body, joined(carried, captured));
  if (next.size() != carried.size())
    throw user_error("while_loop: its body gives {} values for {} that are carried", next.size(),
                     carried.size());
  region->set_outputs(joined({goes_on(*region, next, captured)}, next));
  return while_loop(n.graph(), loop, std::move(region));
}

std::vector<Value> scanned(const NodeView& n, const GraphSpec& body, Scan scan) {
  Region region = n.graph().make_region("body");
  std::vector<Value> inputs = inputs_like(*region, scan.carried);
  for (Value value : scan.scanned)
    inputs.push_back(region->add_input(slice_type(value), value.name()));
  inputs = joined(inputs, inputs_like(*region, scan.captured));
  const std::vector<Value> outputs = n.import_into(*region, body, inputs);
  if (outputs.size() < scan.carried.size())
    throw user_error("{}: its body gives {} values, but carries {}", n.op(), outputs.size(),
                     scan.carried.size());
  region->set_outputs(outputs);
  scan.axes = scan.reversed = std::vector<int64_t>(scan.scanned.size(), 0);
  scan.output_axes = scan.output_reversed = std::vector<int64_t>(outputs.size() - scan.carried.size(), 0);
  return tenon::scan(n.graph(), scan, std::move(region));
}

// scan(body, carried, scanned, captured), along axis 0
std::vector<Value> convert_scan(const NodeView& n) {
  return scanned(n, n.nested(0), {.carried = n.values(1), .scanned = n.values(2), .captured = n.values(3)});
}
// map_impl(body, scanned, captured)
std::vector<Value> convert_map(const NodeView& n) {
  return scanned(n, n.nested(0), {.scanned = n.values(1), .captured = n.values(2)});
}

// A graph that is called as it stands: what follows it are its inputs.
std::vector<Value> call_nested(const NodeView& n) {
  size_t at = 0;
  while (at < n.argument_count() && !std::holds_alternative<Nested>(n.argument(at)))
    ++at;
  const GraphSpec& body = n.nested(at);
  std::vector<Value> inputs;
  for (size_t i = at + 1; i < n.argument_count(); ++i)
    inputs = joined(inputs, n.values(i));
  return n.import_into(n.graph(), body, inputs);
}

// wrap_with_autocast(device, dtype, enabled, cached, body, inputs…)
std::vector<Value> convert_autocast(const NodeView& n) {
  const auto* enabled = n.argument_count() > 2 ? std::get_if<bool>(&n.argument(2)) : nullptr;
  if (enabled == nullptr || *enabled)
    throw unsupported("{}: automatic casts\n  hint: export the model outside of torch.autocast", n.op());
  return call_nested(n);
}

// Whether gradients are recorded says nothing about values.
std::vector<Value> convert_mode(const NodeView& n) {
  n.ignore_all();
  return {};
}

}  // namespace

const Conversions& control_conversions() {
  static const Conversions conversions = {
      {"higher_order.cond", convert_cond},
      {"higher_order.invoke_subgraph", call_nested},
      {"higher_order.map_impl", convert_map},
      {"higher_order.scan", convert_scan},
      {"higher_order.while_loop", convert_while_loop},
      {"higher_order.wrap_with_autocast", convert_autocast},
      {"higher_order.wrap_with_set_grad_enabled", call_nested},
      {"torch._C._set_grad_enabled", convert_mode},
  };
  return conversions;
}

}  // namespace tenon::torch
