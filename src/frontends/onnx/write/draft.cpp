#include "frontends/onnx/write/draft.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/write/custom_call.h"
#include "frontends/onnx/write/schemas.h"
#include "frontends/onnx/write/spell.h"
#include "ops/control.h"
#include "ops/data.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// A name that is taken gets a number: relu, relu_1, relu_2.
class UniqueNames {
 public:
  std::string take(const std::string& wanted) {
    if (taken_.insert(wanted).second)
      return wanted;
    int64_t& number = repeats_[wanted];
    std::string name;
    do {
      name = fmt::format("{}_{}", wanted, ++number);
    } while (!taken_.insert(name).second);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> repeats_;
};

// A node of a graph that something needs, and its call; none for those with nested graphs.
struct Step {
  const Node* node;
  std::optional<OnnxCall> call;
};

// From which of its outputs on ONNX lets a node leave out those that nothing uses.
std::optional<size_t> first_optional_output(std::string_view op_type) {
  if (op_type == "LSTM" || op_type == "GRU" || op_type == "RNN")
    return 0;
  return op_type == "MaxPool" || op_type == "Unique" ? std::optional<size_t>(1) : std::nullopt;
}

class Drafter {
 public:
  Drafter(ConstantExpressions& constants, const OpsetChoice& choice)
      : constants_(constants), asked_(choice.asked), wanted_(choice.wanted) {}

  Draft run(const Graph& graph) {
    plan(graph);
    draft_.opset = asked_.value_or(std::max(needed_, wanted_));
    if (draft_.opset > newest_)
      throw unsupported("{} is kept unchanged, which no opset after {} has, but {} is needed", oldest_op_,
                        newest_, draft_.opset);
    draft_.graph.name = graph.name();
    for (Value input : graph.inputs()) {
      const std::string& name = values_[input.data()] = fresh_name(input);
      draft_.graph.inputs.push_back({name, input.type()});
    }
    const std::vector<Value> outputs = graph.outputs();
    const std::vector<std::string> names = output_names(graph);
    // An output that is made by a node, and is no other output, is that node's.
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i].is_input() && !constants_.contains(outputs[i]))
        values_.try_emplace(outputs[i].data(), names[i]);
    add_nodes(graph, draft_.graph);
    for (size_t i = 0; i < outputs.size(); ++i)
      add_output(draft_.graph, outputs[i], names[i]);
    return std::move(draft_);
  }

 private:
  // --- which nodes are written, as what, and in which opset

  void plan(const Graph& graph) {
    std::unordered_set<const ValueData*> needed;
    for (Value output : graph.outputs()) {
      const bool is_met = !needed.insert(output.data()).second;
      if (is_met || output.is_input() || constants_.contains(output))
        note_opset({"Identity", {{output}}, {}}, {output.type()}, *graph.return_node());
    }
    std::vector<Node*> nodes = graph.nodes();
    std::vector<Step>& steps = steps_[&graph];
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const Node& node = **it;
      const std::vector<Value> results = node.results();
      if (!std::ranges::any_of(results, [&](Value v) { return needed.contains(v.data()); }) ||
          constants_.contains(node.result()))
        continue;
      steps.push_back({&node, node.regions().empty() ? spell(node, constants_) : std::nullopt});
      if (const auto& call = steps.back().call) {
        add_inputs(*call, needed);
        note_opset(*call, node.result_types(), node);
      } else {
        for (Value operand : node.operands())
          needed.insert(operand.data());
        note_opset(control_call(node), node.result_types(), node);
      }
      for (const auto& region : node.regions())
        plan(*region);
    }
    std::ranges::reverse(steps);
    for (const ValueData* value : needed)
      needed_values_.insert(value);
  }

  static void add_inputs(const OnnxCall& call, std::unordered_set<const ValueData*>& needed) {
    for (const OnnxInput& input : call.inputs)
      if (input.value)
        needed.insert(input.value.data());
  }

  void note_opset(const OnnxCall& call, const Types& outputs, const Node& node) {
    const auto opset = needed_opset(call, outputs);
    if (!opset)
      throw unsupported("{}: no opset of ONNX has {} for {}", node.describe(), call.name,
                        fmt::join(outputs, ", "));
    const std::string domain(split_name(call).domain);
    const bool is_standard = domain.empty();
    if (is_standard && asked_ && *opset > *asked_)
      throw unsupported("{}: {} needs opset {}, but opset {} is asked for", node.describe(), call.name,
                        *opset, *asked_);
    if (is_standard && *opset > needed_)
      draft_.newest_op = call.name;
    int64_t& needed = is_standard ? needed_ : draft_.other_opsets[domain];
    needed = std::max(needed, *opset);
    if (is_standard && call.foreign && call.foreign->newest < newest_)
      std::tie(newest_, oldest_op_) = std::pair(call.foreign->newest, call.name);
  }

  // A node with nested graphs, but for these: what they capture is no input.
  static OnnxCall control_call(const Node& node) {
    if (node.is("if"))
      return {"If", {{node.in("condition")}}, {}};
    const bool is_while = node.is("while");
    CHECK(is_while || node.is("scan"), "{} has nested graphs", node.op().name);
    OnnxCall call = {is_while ? "Loop" : "Scan", {}, {}};
    if (is_while)
      call.inputs = {{node.in("trip_count")}, {node.in("condition")}};
    for (std::string_view name : {"carried", "scanned"})
      if (node.op().find_operand(name) != nullptr)
        for (Value value : node.ins(name))
          call.inputs.push_back({value});
    return call;
  }

  // --- names

  std::string fresh_name(Value value) {
    if (!value.name().empty())
      return names_.take(value.name());
    return names_.take(value.is_input() ? "input" : std::string(value.node()->op().name));
  }

  // Those of the graph, but where one is missing, or another value has it.
  std::vector<std::string> output_names(const Graph& graph) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < graph.return_node()->operand_count(); ++i) {
      const Value value = graph.return_node()->operand(i);
      const std::string& wanted = graph.output_names()[static_cast<size_t>(i)];
      const bool is_met = std::ranges::count(names, wanted) > 0;
      const bool is_the_input = value.is_input() && values_.at(value.data()) == wanted && !is_met;
      names.push_back(is_the_input ? wanted : names_.take(wanted.empty() ? "output" : wanted));
    }
    return names;
  }

  // A weight that is computed when it is written is still called as it was.
  std::string constant_name(Value value) {
    const Node& node = *value.node();
    if (node.is("parameter"))
      return names_.take(node.attr("name"));
    const auto is_written = [&](Value operand) { return needed_values_.contains(operand.data()); };
    const std::string origin = value.name().empty() ? name_by_origin(value, is_written) : "";
    return origin.empty() ? fresh_name(value) : names_.take(origin);
  }

  const std::string& name_of(Value value) {
    const auto it = values_.find(value.data());
    if (it != values_.end())
      return it->second;
    CHECK(constants_.contains(value), "%{} is used before it is written", value.name());
    const std::string name = constant_name(value);
    draft_.initializers.push_back({name, value, *value.shape().extents()});
    return values_[value.data()] = name;
  }

  // A constant expression as a vector: another weight than the value as it is.
  std::string flat_name_of(Value value) {
    std::string& name = flat_[value.data()];
    if (name.empty()) {
      name = constant_name(value);
      draft_.initializers.push_back({name, value, {element_count(*value.shape().extents())}});
    }
    return name;
  }

  std::string name_of(const OnnxInput& input) {
    if (input.constant)
      return name_of(*input.constant);
    if (input.flat)
      return flat_name_of(input.value);
    return input.value ? name_of(input.value) : "";
  }

  // Equal ones are written once.
  std::string name_of(const Attribute& constant) {
    const auto* ints = constant.kind() == AttributeKind::Ints ? &constant.as<Attribute::Ints>() : nullptr;
    CHECK(ints != nullptr || constant.kind() == AttributeKind::Int, "an input of kind {}",
          name(constant.kind()));
    const Tensor tensor = ints != nullptr ? Tensor::of(*ints) : Tensor::scalar(constant.as<int64_t>());
    std::string& name = small_[{ints == nullptr, as_ints(tensor)}];
    if (name.empty()) {
      name = names_.take("constant");
      draft_.initializers.push_back({name, Value(), tensor.extents(), tensor});
    }
    return name;
  }

  std::string node_name(const Node& node) {
    return node_names_.take(node.sources().empty() ? name_of(node.result()) : node.sources().front());
  }

  // --- nodes

  void add_nodes(const Graph& graph, DraftGraph& to) {
    for (const Step& step : steps_.at(&graph)) {
      for (Value result : step.node->results())
        if (!values_.contains(result.data()))
          values_[result.data()] = fresh_name(result);
      if (step.call)
        add_call(*step.node, in_opset(*step.call, draft_.opset), to);
      else if (step.node->is("if"))
        add_if(*step.node, to);
      else
        add_loop(*step.node, to);
    }
  }

  DraftNode make_node(const Node& node, std::string_view op_type) {
    DraftNode made = {node_name(node), std::string(op_type), "", {}, {}};
    made.sources = node.sources();
    for (Value result : node.results())
      made.outputs.push_back(values_.at(result.data()));
    return made;
  }

  void add_call(const Node& node, const OnnxCall& call, DraftGraph& to) {
    const OpName op = split_name(call);
    DraftNode made = make_node(node, op.op_type);
    made.domain = op.domain;
    made.attributes = call.attributes;
    for (const OnnxInput& input : call.inputs)
      made.inputs.push_back(name_of(input));
    if (node.is("custom"))
      keep_custom(node, made, to);
    else if (const auto optional = call.foreign ? std::nullopt : first_optional_output(op.op_type))
      for (size_t i = *optional; i < made.outputs.size(); ++i)
        if (!needed_values_.contains(node.result(static_cast<int64_t>(i)).data()))
          made.outputs[i].clear();
    while (!made.outputs.empty() && made.outputs.back().empty())
      made.outputs.pop_back();
    to.nodes.push_back(std::move(made));
  }

  // What nobody can tell without the op: its outputs have types, and places.
  static void keep_custom(const Node& node, DraftNode& made, DraftGraph& to) {
    for (size_t i = 0; i < made.outputs.size(); ++i)
      if (const Value result = node.result(static_cast<int64_t>(i)); !is_output(result))
        to.values.push_back({made.outputs[i], result.type()});
    with_context([&] { return node.describe(); },
                 [&] {
                   made.outputs = with_omitted_outputs(node, std::move(made.outputs));
                   made.messages = messages_of(node);
                 });
  }

  static bool is_output(Value value) {
    return std::ranges::any_of(value.users(),
                               [&](const Node* user) { return user == value.graph().return_node(); });
  }

  void add_if(const Node& node, DraftGraph& to) {
    DraftNode made = make_control_node(node);
    constexpr std::string_view branches[] = {"then_branch", "else_branch"};
    for (size_t i = 0; i < 2; ++i) {
      const Graph& branch = *node.regions()[i];
      use_names(branch.inputs(), node.ins("inputs"));
      made.graphs.emplace_back(branches[i], body_of(branch, {}));
    }
    to.nodes.push_back(std::move(made));
  }

  DraftNode make_control_node(const Node& node) {
    const OnnxCall call = control_call(node);
    DraftNode made = make_node(node, call.name);
    for (const OnnxInput& input : call.inputs)
      made.inputs.push_back(name_of(input));
    while (!made.inputs.empty() && made.inputs.back().empty())
      made.inputs.pop_back();
    return made;
  }

  void add_loop(const Node& node, DraftGraph& to) {
    DraftNode made = make_control_node(node);
    if (node.is("scan"))
      made.attributes = {{"num_scan_inputs", static_cast<int64_t>(node.ins("scanned").size())},
                         {"scan_input_axes", node.attr("axes")},
                         {"scan_input_directions", node.attr("reversed")},
                         {"scan_output_axes", node.attr("output_axes")},
                         {"scan_output_directions", node.attr("output_reversed")}};
    const LoopBody body(node);
    std::vector<DraftValue> inputs = inputs_of(node, body);
    use_names(body.captured, node.ins("captured"));
    made.graphs.emplace_back("body", body_of(body.graph, std::move(inputs)));
    to.nodes.push_back(std::move(made));
  }

  // A loop tells its body, after the number of the iteration, that its condition holds, in the shape that it
  // came in.
  std::vector<DraftValue> inputs_of(const Node& loop, const LoopBody& body) {
    std::vector<DraftValue> inputs;
    for (Value input : body.varying()) {
      values_[input.data()] = fresh_name(input);
      inputs.push_back({values_[input.data()], input.type()});
      if (input == body.iteration)
        inputs.push_back({names_.take("condition"), loop.has("condition") ? loop.in("condition").type()
                                                                          : Type::tensor(DType::Bool, {})});
    }
    return inputs;
  }

  // A nested graph of ONNX sees the values around it: some of its inputs are only other names for them.
  void use_names(const std::vector<Value>& inputs, const std::vector<Value>& of) {
    for (size_t i = 0; i < inputs.size(); ++i)
      values_[inputs[i].data()] = name_of(of[i]);
  }

  std::unique_ptr<DraftGraph> body_of(const Graph& graph, std::vector<DraftValue> inputs) {
    auto body = std::make_unique<DraftGraph>();
    body->name = graph.name().empty() ? "body" : graph.name();
    body->inputs = std::move(inputs);
    add_nodes(graph, *body);
    std::unordered_set<const ValueData*> met;
    for (Value output : graph.outputs()) {
      const bool is_own =
          !output.is_input() && !constants_.contains(output) && met.insert(output.data()).second;
      add_output(*body, output, is_own ? name_of(output) : names_.take("output"));
    }
    return body;
  }

  // A value that has another name already, or is not made here, goes out through an Identity.
  void add_output(DraftGraph& to, Value value, const std::string& name) {
    if (const std::string& own = name_of(value); own != name) {
      DraftNode identity = {node_names_.take(name), "Identity", "", {own}, {name}};
      to.nodes.push_back(std::move(identity));
    }
    to.outputs.push_back({name, value.type()});
  }

  ConstantExpressions& constants_;
  std::optional<int64_t> asked_;
  int64_t wanted_;
  int64_t needed_ = kOldestWritten, newest_ = kNewestOpset;  // that nodes allow
  std::string oldest_op_;                                    // the one that allows no newer
  Draft draft_;
  UniqueNames names_, node_names_;
  std::unordered_map<const Graph*, std::vector<Step>> steps_;
  std::unordered_set<const ValueData*> needed_values_;
  std::unordered_map<const ValueData*, std::string> values_, flat_;
  std::map<std::pair<bool, std::vector<int64_t>>, std::string> small_;
};

}  // namespace

Draft make_draft(const Graph& graph, ConstantExpressions& constants, const OpsetChoice& choice) {
  return Drafter(constants, choice).run(graph);
}

int64_t count_nodes(const DraftGraph& graph) {
  auto count = static_cast<int64_t>(graph.nodes.size());
  for (const DraftNode& node : graph.nodes)
    for (const auto& [name, nested] : node.graphs)
      count += count_nodes(*nested);
  return count;
}

}  // namespace tenon::onnx
