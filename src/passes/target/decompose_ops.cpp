#include "passes/target/decompose_ops.h"

#include <algorithm>

#include "base/error.h"
#include "loops/parallel_regions.h"
#include "ops/data.h"
#include "ops/select.h"

namespace tenon {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }
bool is_narrow(Value value) { return value.type().is_tensor() && is_narrow(value.dtype()); }
// A result may be narrow without any operand: dequantize says of which dtype it is.
bool is_narrow(const Node& node) {
  const std::vector<Value> operands = node.operands();
  return is_narrow(node.result()) &&
         std::any_of(operands.begin(), operands.end(), [](Value operand) { return is_narrow(operand); });
}

// The same node on f32, and its results rounded.
void widen(Graph& graph, Journal& journal, Node* node) {
  std::map<Value, Value> wide;
  const auto widened = [&](Value value) {
    if (!is_narrow(value))
      return value;
    const auto [it, fresh] = wide.emplace(value, value);
    if (fresh)
      it->second = cast(value, DType::F32);
    return it->second;
  };
  const Node* copy = graph.copy_node(*node, widened);
  std::vector<Value> results;
  for (int64_t i = 0; i < node->result_count(); ++i)
    results.push_back(copy->result(i).dtype() == node->result(i).dtype()
                          ? copy->result(i)
                          : cast(copy->result(i), node->result(i).dtype()));
  journal.applied("compute-in-f32", {node}, Numerics::Reassociates);
  graph.replace(node, results);
}

bool have_types_of(const Node& node, const std::vector<Value>& values) {
  const std::vector<Value> results = node.results();
  return std::equal(values.begin(), values.end(), results.begin(), results.end(),
                    [](Value a, Value b) { return a.type() == b.type(); });
}

}  // namespace

bool has_code(const Type& type) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked() || !loops::has_code(type.as_tensor().dtype))
    return false;
  // Nor may several dimensions together have more elements than can be counted.
  const std::vector<Dim>& dims = type.as_tensor().shape.dims();
  Dim first = 1, last = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    first = first * dims[i];
    last = dims[dims.size() - 1 - i] * last;
    if (dims[i].is_unknown() || first.is_unknown() || last.is_unknown())
      return false;
  }
  return true;
}

bool has_code(const Node& node) {
  const auto all = [](const std::vector<Value>& values) {
    return std::all_of(values.begin(), values.end(), [](Value value) { return has_code(value.type()); });
  };
  return node.late_names().empty() && all(node.operands()) && all(node.results());
}

void decompose_ops(Graph& graph, Journal& journal, const std::set<std::string_view>& staying) {
  Node* before = nullptr;  // the last node that stays as it is
  // What a node is made of may be made of others in turn.
  for (Node* node = graph.first(); node != graph.return_node();
       node = before == nullptr ? graph.first() : before->next()) {
    if (node->op().lower != nullptr || node->op().decompose == nullptr || !has_code(*node) ||
        staying.contains(node->op().name)) {
      before = node;
      continue;
    }
    if (!journal.is_open())
      return;
    const InsertBefore here(node);
    const WithSources sources(graph, labels_of(*node));
    try {
      if (is_narrow(*node) && !node->op().traits.rounds_steps) {
        widen(graph, journal, node);
        continue;
      }
      const std::vector<Value> parts = node->op().decompose(*node);
      if (have_types_of(*node, parts)) {
        journal.applied("decompose", {node}, Numerics::Reassociates);
        graph.replace(node, parts);
      } else {
        before = node;  // some operand may broadcast to more than the node gives, which eval refuses
      }
    } catch (const UnsupportedError&) {
      before = node;  // as it is; what was made of it so far is dead
    }
  }
}

std::vector<std::string> labels_of(const Node& node) {
  if (!node.sources().empty())
    return node.sources();
  for (Value result : node.results())
    if (!result.name().empty())
      return {"%" + result.name()};
  return {std::string(node.op().name)};
}

}  // namespace tenon
