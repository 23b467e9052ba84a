#include "ir/size_checks.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/not_a_tensor.h"
#include "ir/print.h"

namespace tenon {
namespace {

constexpr size_t kMostPassed = 16;

void add_symbols(const std::optional<Content>& content, std::set<std::string>& symbols) {
  if (content && content->dims)
    for (const Dim& dim : *content->dims)
      for (std::string& symbol : dim.symbols())
        symbols.insert(std::move(symbol));
}

std::set<std::string> symbols_of_operands(const Node& node) {
  std::set<std::string> symbols;
  for (Value operand : node.operands()) {
    symbols.merge(symbols_of(operand.type()));
    add_symbols(operand.data()->content, symbols);
  }
  return symbols;
}

// The types of sequences that are empty stand in attributes, and whether they fit is checked when running.
bool is_checked(const Node& node) {
  return node.regions().empty() &&
         std::none_of(node.attributes().begin(), node.attributes().end(),
                      [](const auto& attribute) { return attribute.second.kind() == AttributeKind::Type; });
}

void append(std::string& text, const std::optional<Content>& content) {
  if (!content)
    return;
  if (content->dims)
    text += fmt::format("{{{}}}", fmt::join(*content->dims, ","));
  else if (content->tensor->dtype() != DType::String)
    for (std::byte byte : content->tensor->bytes())
      text += static_cast<char>(byte);
}

// All that infer may look at: two nodes with one text are alike.
std::string text_of(const Node& node) {
  std::string text(node.op().name);
  std::vector<std::string_view> names = node.late_names();
  for (const OperandDecl& decl : node.op().operands)
    names.push_back(decl.name);
  for (std::string_view name : names)
    for (Value operand : node.ins(name)) {
      text += fmt::format(" {}: {}", name, operand.type());
      append(text, operand.data()->content);
    }
  for (const auto& [name, attribute] : node.attributes())
    text += fmt::format(" {}={}", name, print(attribute));
  return text;
}

Content substitute(Content content, const std::map<std::string, Dim>& sizes) {
  if (content.dims)
    for (Dim& dim : *content.dims)
      dim = dim.substitute(sizes);
  return content;
}

}  // namespace

SizeChecks::SizeChecks(const Graph& graph) {
  std::unordered_set<std::string> known;
  for (const Node* node : graph.nodes())
    if (is_checked(*node) && !symbols_of_operands(*node).empty() && known.insert(text_of(*node)).second)
      parts_.push_back(make_part(*node));
}

SizeChecks::Part SizeChecks::make_part(const Node& node) {
  Part part{.graph = std::make_unique<Graph>(),
            .node = nullptr,
            .types = {},
            .contents = {},
            .symbols = {},
            .passed = {}};
  std::map<Value, Value> inputs;
  for (Value operand : node.operands()) {
    if (inputs.contains(operand))
      continue;
    const Value input = part.graph->add_input(operand.type(), operand.name());
    input.data()->content = operand.data()->content;
    inputs.emplace(operand, input);
    part.types.push_back(operand.type());
    part.contents.push_back(operand.data()->content);
  }
  part.node = part.graph->copy_node(node, [&](Value value) { return inputs.at(value); });
  number_symbols(part);
  return part;
}

void SizeChecks::number_symbols(Part& part) {
  for (const std::string& symbol : symbols_of_operands(*part.node))
    part.symbols.push_back(symbols_.emplace(symbol, symbols_.size()).first->second);
}

void SizeChecks::infer(const Part& part, const std::map<std::string, Dim>& sizes) {
  for (int64_t i = 0; i < part.graph->input_count(); ++i) {
    ValueData& input = *part.graph->input(i).data();
    input.type = substitute(part.types[static_cast<size_t>(i)], sizes);
    if (const std::optional<Content>& content = part.contents[static_cast<size_t>(i)])
      input.content = substitute(*content, sizes);
  }
  with_context([&] { return part.node->describe(); },
               [&] { naming_op(part.node->op().name, [&] { return infer_types(*part.node); }); });
}

std::vector<SizeCondition> SizeChecks::conditions() const {
  const std::lock_guard lock(mutex_);
  std::vector<SizeCondition> all;
  for (const Part& part : parts_) {
    const AssumedConditions assumed;
    infer(part, {});
    for (SizeCondition condition : assumed.conditions()) {
      condition.described = fmt::format("{}: {}", part.node->describe(), part.node->op().name);
      const auto is_same = [&](const SizeCondition& known) {
        return known.kind == condition.kind && known.a == condition.a && known.b == condition.b;
      };
      if (std::ranges::none_of(all, is_same))
        all.push_back(std::move(condition));
    }
  }
  return all;
}

void SizeChecks::check(const Bindings& sizes) {
  const std::lock_guard lock(mutex_);
  const std::map<std::string, Dim> dims(sizes.begin(), sizes.end());
  std::vector<std::optional<int64_t>> bound(symbols_.size());
  for (const auto& [symbol, number] : symbols_)
    if (const auto found = sizes.find(symbol); found != sizes.end())
      bound[number] = found->second;
  std::vector<int64_t> values;
  for (Part& part : parts_) {
    values.clear();
    for (size_t symbol : part.symbols)
      if (bound[symbol])
        values.push_back(*bound[symbol]);
    if (values.size() < part.symbols.size() ||
        std::find(part.passed.begin(), part.passed.end(), values) != part.passed.end())
      continue;
    infer(part, dims);
    if (part.passed.size() == kMostPassed)
      part.passed.erase(part.passed.begin());
    part.passed.push_back(values);
  }
}

}  // namespace tenon
