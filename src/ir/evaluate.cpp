#include "ir/evaluate.h"

#include <unordered_map>

#include "base/error.h"
#include "ir/fit.h"
#include "ir/infer.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

Data run_node(const Node& node, std::span<const Datum> operands, RandomGenerator& random) {
  return with_context([&] { return node.describe(); },
                      [&] {
                        Data results = node.op().eval(Call(node, operands, random));
                        CHECK(static_cast<int64_t>(results.size()) == node.result_count(),
                              "{}: eval gave {} results, not {}", node.op().name, results.size(),
                              node.result_count());
                        return results;
                      });
}

// A result of another type than it should have. Where that type is not the inferred one, the model declares
// what is not so; where it is, infer and eval contradict each other. But inference takes sizes for more than
// 0: a reshape to one that turns out to be 0 means something else.
[[noreturn]] void refuse_result(Value result, const Datum& datum, Bindings& bindings) {
  const Node& node = *result.node();
  const auto describe = [&](const Type& type) {
    return fmt::format("{}: {}: result {} should be {}{}, but came out as {}", node.describe(),
                       node.op().name, result.index(), type, bindings_text(type, bindings), type_of(datum));
  };
  const Type inferred = infer_types(node)[static_cast<size_t>(result.index())];
  if (!fits(datum, inferred, bindings) && !is_empty(inferred, bindings))
    throw InternalError(describe(inferred));
  throw UserError(describe(result.type()));
}

Data run_graph(const Graph& graph, const Data& inputs, RandomGenerator& random,
               const std::function<void(const Node&)>& before_node = nullptr) {
  Bindings bindings = bind_inputs(graph, inputs);
  // What is alive, with how many of its uses are still to come.
  std::unordered_map<const ValueData*, std::pair<Datum, int64_t>> alive;
  for (int64_t i = 0; i < graph.input_count(); ++i) {
    const Value input = graph.input(i);
    alive.emplace(input.data(), std::pair(inputs[static_cast<size_t>(i)], input.use_count()));
  }
  const auto take = [&](Value value) {
    const auto it = alive.find(value.data());
    CHECK(it != alive.end(), "a value is used before it is made");
    if (--it->second.second > 0)
      return it->second.first;
    Datum last = std::move(it->second.first);
    alive.erase(it);
    return last;
  };
  for (const Node* node : graph.nodes()) {
    Data operands;
    for (Value operand : node->operands())
      operands.push_back(take(operand));
    if (before_node)
      before_node(*node);
    Data results = run_node(*node, operands, random);
    for (int64_t i = 0; i < node->result_count(); ++i) {
      const Value result = node->result(i);
      Datum& datum = results[static_cast<size_t>(i)];
      if (!fits(datum, result.type(), bindings) &&
          (node->regions().empty() || !resize_empty(datum, result.type(), bindings)))
        refuse_result(result, datum, bindings);
      if (result.use_count() > 0)
        alive.emplace(result.data(), std::pair(std::move(datum), result.use_count()));
    }
  }
  Data outputs;
  for (Value output : graph.outputs())
    outputs.push_back(take(output));
  return outputs;
}

}  // namespace

std::span<const Datum> Call::all(std::string_view name) const {
  const auto [begin, count] = node_.segment(name);
  return operands_.subspan(begin, count);
}

const Datum& Call::datum(std::string_view name) const {
  const std::span<const Datum> data = all(name);
  CHECK(data.size() == 1, "{}: {} holds {} values", node_.op().name, name, data.size());
  return data.front();
}

std::vector<Tensor> Call::tensors(std::string_view name) const {
  std::vector<Tensor> tensors;
  for (const Datum& datum : all(name))
    tensors.push_back(datum.tensor());
  return tensors;
}

Attribute Call::attr(std::string_view name) const {
  if (!node_.is_late(name))
    return node_.attr(name);
  const std::vector<int64_t> ints = as_ints(in(name));
  if (node_.op().find_attribute(name)->kind == AttributeKind::Ints)
    return ints;
  if (ints.size() != 1)
    throw user_error("{}: {} must be one number, but {} were given", node_.op().name, name, ints.size());
  return ints.front();
}

Data Call::run(std::string_view region, const Data& inputs) const {
  return run_region_ != nullptr ? (*run_region_)(region, inputs)
                                : run_graph(node_.region(region), inputs, random_);
}

Data evaluate(const Graph& graph, const Data& inputs, const EvaluateOptions& options) {
  RandomGenerator random(options.seed);
  return run_graph(graph, inputs, random, options.before_node);
}

Data evaluate_node(const Node& node, std::span<const Datum> operands) {
  RandomGenerator random(0);
  return run_node(node, operands, random);
}

}  // namespace tenon
