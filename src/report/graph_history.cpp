#include "report/graph_history.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "ir/print.h"
#include "ops/data.h"
#include "passes/running_nodes.h"

namespace tenon {
namespace {

constexpr size_t kMostCharacters = 400;  // of attributes; a string or list of the user's may be longer

std::string text_of(const Attribute& attribute) {
  const auto* literal = attribute.kind() == AttributeKind::Literal ? &attribute.as<Literal>() : nullptr;
  // Where a large constant lies in which file, or its hash, tells nobody anything.
  if (literal != nullptr && element_count(literal->extents()) > kPrintedElements)
    return "";
  return print(attribute);
}

std::string attributes_of(const Node& node) {
  std::string text;
  for (const AttributeDecl& decl : node.op().attributes) {
    if (node.is_late(decl.name))
      continue;
    const Attribute& attribute = node.attr(decl.name);
    if (decl.default_value && attribute == *decl.default_value)
      continue;
    if (const std::string value = text_of(attribute); !value.empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", decl.name, value);
  }
  const std::string_view shown = first_characters(text, kMostCharacters);
  return shown.size() < text.size() ? std::string(shown) + "…" : text;
}

std::string types_of(const std::vector<Value>& values) {
  std::vector<std::string> types;
  for (Value value : values)
    types.push_back(fmt::format("{}", value.type()));
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string name_of(const Node& node) {
  if (!node.sources().empty())
    return node.sources().front();
  return node.result_count() > 0 && !node.result().name().empty() ? node.result().name()
                                                                  : std::string(node.op().name);
}

std::string kind_of(const Node& node) {
  return literal_of(node) != nullptr ? std::string(node.op().name) : std::string(name(node.op().category));
}

// Another node may have got the memory of one that was erased.
bool is_same(const SeenNode& before, const SeenNode& now, const std::string& type_before) {
  const auto is_kept = [&](const std::string& source) {
    return std::find(now.sources.begin(), now.sources.end(), source) != now.sources.end();
  };
  const bool is_literal = now.kind == "constant" || now.kind == "parameter";
  return before.op == now.op && before.attributes == now.attributes && before.parent == now.parent &&
         before.region == now.region && (!now.sources.empty() || before.name == now.name) &&
         (!is_literal || type_before == now.type) &&
         std::all_of(before.sources.begin(), before.sources.end(), is_kept);
}

}  // namespace

void GraphHistory::record(std::string stage, const Graph& graph) {
  const std::vector<const Node*> running = running_nodes(graph);
  running_ = {running.begin(), running.end()};
  stages_.push_back({.name = std::move(stage), .nodes = static_cast<int64_t>(running.size())});
  before_ = std::exchange(now_, {});
  see_graph(graph, -1, "");
  std::set<int64_t> numbers;
  for (const auto& [key, known] : now_)
    numbers.insert(known.number);
  for (const auto& [key, known] : before_)
    if (!numbers.contains(known.number))
      stages_.back().removed.push_back(known.number);
  std::sort(stages_.back().removed.begin(), stages_.back().removed.end());
}

void GraphHistory::see_graph(const Graph& graph, int64_t parent, const std::string& region) {
  // An input or an output, whose kind is its op, too.
  const auto end_of_graph = [&](const char* kind, const std::string& name, Value value,
                                std::vector<SeenValue> inputs) -> SeenNode {
    return {.op = kind,
            .name = name,
            .type = fmt::format("{}", value.type()),
            .inputs = std::move(inputs),
            .attributes = {},
            .sources = {},
            .kind = kind,
            .parent = parent,
            .region = region};
  };
  for (Value input : graph.inputs())
    see({input.data(), 0}, end_of_graph("input", input.name(), input, {}), false);
  for (const Node* node : graph.nodes())
    see_node(*node, parent, region);
  const std::vector<Value> outputs = graph.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    see({graph.return_node(), i},
        end_of_graph("output", graph.output_names()[i], outputs[i], seen({outputs[i]})), false);
}

void GraphHistory::see_node(const Node& node, int64_t parent, const std::string& region) {
  const int64_t number = see({&node, 0},
                             {.op = std::string(node.op().name),
                              .name = name_of(node),
                              .type = types_of(node.results()),
                              .inputs = seen(node.operands()),
                              .attributes = attributes_of(node),
                              .sources = node.sources(),
                              .kind = kind_of(node),
                              .parent = parent,
                              .region = region},
                             !running_.contains(&node));
  for (size_t i = 0; i < node.regions().size(); ++i)
    see_graph(*node.regions()[i], number, std::string(node.op().regions[i]));
}

int64_t GraphHistory::see(Key key, SeenNode seen, bool is_fixed) {
  GraphStage& stage = stages_.back();
  const auto known = before_.find(key);
  if (known == before_.end() ||
      !is_same(nodes_[static_cast<size_t>(known->second.number)], seen, known->second.type)) {
    const auto number = static_cast<int64_t>(nodes_.size());
    now_[key] = {number, seen.inputs, seen.type, is_fixed};
    nodes_.push_back(std::move(seen));
    stage.added.push_back(number);
    if (is_fixed)
      stage.fixed.push_back(number);
    return number;
  }
  const int64_t number = known->second.number;
  if (known->second.inputs != seen.inputs)
    stage.rewired.emplace_back(number, seen.inputs);
  if (known->second.type != seen.type)
    stage.retyped.emplace_back(number, seen.type);
  if (known->second.is_fixed != is_fixed)
    (is_fixed ? stage.fixed : stage.unfixed).push_back(number);
  nodes_[static_cast<size_t>(number)].sources = std::move(seen.sources);
  now_[key] = {number, std::move(seen.inputs), std::move(seen.type), is_fixed};
  return number;
}

std::vector<SeenValue> GraphHistory::seen(const std::vector<Value>& values) const {
  std::vector<SeenValue> all;
  for (Value value : values)
    if (value) {
      const auto known =
          now_.find({value.is_input() ? static_cast<const void*>(value.data()) : value.node(), 0});
      CHECK(known != now_.end(), "a value is read before it is made");
      all.push_back({known->second.number, value.is_input() ? 0 : value.index()});
    }
  return all;
}

}  // namespace tenon
