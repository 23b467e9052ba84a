#include "autodiff/gradient.h"

#include <unordered_map>
#include <unordered_set>

#include "ops/binary.h"
#include "ops/gradient.h"

namespace tenon {
namespace {

// Which values lie on the way from those wanted to an output.
class Path {
 public:
  Path(const Graph& graph, const std::vector<Value>& wanted) {
    for (Value value : wanted)
      depends_.insert(value.data());
    const std::vector<Node*> nodes = graph.nodes();
    for (const Node* node : nodes)
      if (node->op().grad != no_gradient && any_depends(node->operands()))
        for (Value result : node->results())
          if (is_differentiable(result.type()))
            depends_.insert(result.data());
    for (Value output : graph.outputs())
      matters_.insert(output.data());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      if (goes_through(**node))
        for (Value operand : (*node)->operands())
          matters_.insert(operand.data());
  }

  bool depends(Value value) const { return depends_.contains(value.data()); }
  bool goes_through(const Node& node) const {
    return any_depends(node.operands()) && std::ranges::any_of(node.results(), [&](Value result) {
             return depends(result) && matters_.contains(result.data());
           });
  }

 private:
  bool any_depends(const std::vector<Value>& values) const {
    return std::ranges::any_of(values, [&](Value value) { return depends(value); });
  }

  std::unordered_set<ValueData*> depends_;  // on what is wanted
  std::unordered_set<ValueData*> matters_;  // to an output
};

std::string describe_gradient(const Node& node) {
  return fmt::format("{}: the gradient of {}", node.describe(), node.op().name);
}

// Formulas speak of shapes. Only ops whose inference copes with unknown ranks have some that do without those
// of operands that need no gradient.
void check_ranks(const Node& node, const Path& path) {
  for (Value operand : node.operands()) {
    if (!operand.type().is_tensor() || operand.shape().ranked())
      continue;
    if (path.depends(operand))
      throw unsupported("an operand of unknown rank has no gradient");
    if (!node.op().traits.takes_unranked)
      throw unsupported("the ranks of its operands must be known");
  }
}

// Replaces what has no formula of its own on the path; true when there was such a node. What takes its place
// may need the same, or leave a node off the path that has neither.
bool decompose(Graph& graph, const std::vector<Value>& wanted) {
  const Path path(graph, wanted);
  bool any = false;
  const Node* lacking = nullptr;
  for (Node* node : graph.nodes()) {
    if (node->op().grad != nullptr || !path.goes_through(*node))
      continue;
    if (node->op().decompose == nullptr) {
      lacking = lacking == nullptr ? node : lacking;
      continue;
    }
    const InsertBefore here(node);
    const WithSources sources(*node);
    graph.replace(node, with_context([&] { return describe_gradient(*node); },
                                     [&] {
                                       check_ranks(*node, path);
                                       return node->op().decompose(*node);
                                     }));
    any = true;
  }
  if (!any && lacking != nullptr)
    throw unsupported("{}: {} has no gradient", lacking->describe(), lacking->op().name);
  return any;
}

// Gradients by value; several of one value add up.
class GradientSums {
 public:
  void add(Value value, Value gradient) {
    Value& sum = sums_[value.data()];
    sum = sum ? sum + gradient : gradient;
  }
  Value of(Value value) const {
    const auto it = sums_.find(value.data());
    return it == sums_.end() ? Value() : it->second;
  }
  std::vector<Value> of(const std::vector<Value>& values) const {
    std::vector<Value> gradients;
    for (Value value : values)
      gradients.push_back(of(value));
    return gradients;
  }

 private:
  std::unordered_map<ValueData*, Value> sums_;
};

// Adds the gradients of one node's operands.
void differentiate_node(const Node& node, const Path& path, GradientSums& sums) {
  check_ranks(node, path);
  std::vector<bool> wanted;
  for (Value operand : node.operands())
    wanted.push_back(path.depends(operand));
  const WithSources sources(node);
  const GradContext context(node, sums.of(node.results()), std::move(wanted), backpropagate);
  for (const Operand& gradients : node.op().grad(context)) {
    const std::vector<Value> operands = node.ins(gradients.name);
    CHECK(gradients.values.empty() || gradients.values.size() == operands.size(),
          "{} gradients for {} operands {}", gradients.values.size(), operands.size(), gradients.name);
    for (size_t i = 0; i < gradients.values.size(); ++i)
      if (gradients.values[i] && path.depends(operands[i]))
        sums.add(operands[i], sum_to(gradients.values[i], operands[i]));
  }
}

bool is_unused(const Node& node) {
  return std::ranges::all_of(node.results(), [](Value result) { return result.use_count() == 0; });
}

// A formula gives more than is asked for: erases the nodes that nothing uses, but for those that were there
// before and those that make `kept`.
void erase_unused(Graph& graph, const std::vector<Node*>& before, const std::vector<Value>& kept) {
  std::unordered_set<const Node*> stay(before.begin(), before.end());
  for (Value value : kept)
    if (value)
      stay.insert(value.node());
  const std::vector<Node*> nodes = graph.nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)
    if (!stay.contains(*it) && is_unused(**it))
      graph.erase(*it);
}

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_differentiable(type); }

}  // namespace

std::vector<Value> backpropagate(Graph& graph, const std::vector<Value>& output_gradients,
                                 const std::vector<Value>& wanted) {
  while (decompose(graph, wanted)) {
  }
  const Path path(graph, wanted);
  const std::vector<Value> outputs = graph.outputs();
  CHECK(outputs.size() == output_gradients.size(), "{} gradients for {} outputs", output_gradients.size(),
        outputs.size());
  GradientSums sums;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (output_gradients[i])
      sums.add(outputs[i], output_gradients[i]);

  const std::vector<Node*> nodes = graph.nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node& node = **it;
    const std::vector<Value> gradients = sums.of(node.results());
    if (!path.goes_through(node) || std::ranges::none_of(gradients, [](Value each) { return bool(each); }))
      continue;
    with_context([&] { return describe_gradient(node); }, [&] { differentiate_node(node, path, sums); });
    if (is_unused(node))  // its formula put another in its place
      graph.erase(&node);
  }
  const std::vector<Value> found = sums.of(wanted);
  erase_unused(graph, nodes, found);
  return found;
}

std::vector<Node*> trained_parameters(const Graph& graph) {
  std::vector<Node*> parameters;
  for (Node* node : graph.nodes())
    if (node->is("parameter") && is_float_tensor(node->result().type()))
      parameters.push_back(node);
  return parameters;
}

std::unique_ptr<Graph> differentiate(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  std::vector<Value> wanted;
  std::vector<std::string> names = copy->output_names();
  const auto want = [&](Value value, std::string_view name) {
    wanted.push_back(value);
    names.push_back(fmt::format("grad_{}", name));
  };
  for (Value input : copy->inputs())
    if (is_float_tensor(input.type()))
      want(input, input.name());
  for (const Node* node : trained_parameters(*copy))
    want(node->result(), node->attr("name").as<std::string>());

  const std::vector<Value> plain_outputs = copy->outputs();
  const auto seeded =
      std::ranges::count_if(plain_outputs, [](Value output) { return is_float_tensor(output.type()); });
  std::vector<Value> seeds;
  for (size_t i = 0; i < plain_outputs.size(); ++i) {
    const Type& type = plain_outputs[i].type();
    seeds.emplace_back();
    if (is_float_tensor(type))
      seeds.back() = copy->add_input(type, seeded == 1 ? "grad_seed" : fmt::format("grad_seed_{}", names[i]));
  }
  std::vector<Value> outputs = backpropagate(*copy, seeds, wanted);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!outputs[i])
      outputs[i] = zeros_like(wanted[i]);
  const std::vector<Value> values = copy->outputs();
  outputs.insert(outputs.begin(), values.begin(), values.end());
  copy->set_outputs(outputs, names);
  return copy;
}

}  // namespace tenon
