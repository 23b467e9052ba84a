#include "frontends/onnx/write/words.h"

#include <algorithm>
#include <unordered_map>

#include "frontends/onnx/added_ops.h"
#include "frontends/onnx/write/kinds.h"
#include "frontends/onnx/write/table.h"

namespace tenon::onnx {
namespace {

const std::unordered_map<std::string_view, std::vector<const OnnxWord*>>& words_by_op() {
  static const auto by_op = [] {
    std::unordered_map<std::string_view, std::vector<const OnnxWord*>> made;
    for (const OnnxWord& word : all_onnx_words())
      made[word.op].push_back(&word);
    return made;
  }();
  return by_op;
}

const OnnxAttribute* find_attribute(const OnnxWord& word, std::string_view ours) {
  const auto it = std::ranges::find(word.attributes, ours, &OnnxAttribute::ours);
  return it == word.attributes.end() ? nullptr : &*it;
}

// Whether the word says what the attribute is, which goes without saying for its default.
bool can_tell(const OnnxWord& word, const Node& node, const AttributeDecl& decl) {
  if (std::ranges::count(word.inputs, decl.name) > 0)
    return true;
  if (node.is_late(decl.name))
    return false;
  return find_attribute(word, decl.name) != nullptr ||
         (decl.default_value && node.attr(decl.name) == *decl.default_value);
}

bool can_tell(const OnnxWord& word, const Node& node) {
  return std::ranges::all_of(node.op().attributes,
                             [&](const AttributeDecl& decl) { return can_tell(word, node, decl); }) &&
         (word.is_for == nullptr || word.is_for(node));
}

const OnnxWord* find_word(const Node& node) {
  const auto it = words_by_op().find(node.op().name);
  if (it == words_by_op().end())
    return nullptr;
  const auto found =
      std::ranges::find_if(it->second, [&](const OnnxWord* word) { return can_tell(*word, node); });
  return found == it->second.end() ? nullptr : *found;
}

void add_input(const Node& node, std::string_view name, std::vector<OnnxInput>& inputs) {
  if (name == kLike)
    inputs.push_back({like(node)});
  else if (const OperandDecl* decl = node.op().find_operand(name);
           decl != nullptr && decl->arity == Arity::Many)
    for (Value value : node.ins(name))
      inputs.push_back({value});
  else if (decl != nullptr)
    inputs.push_back({node.in(name)});
  else if (name.empty() || node.is_late(name))
    inputs.push_back({name.empty() ? Value() : node.late(name)});
  else
    inputs.push_back({Value(), node.attr(name)});
}

std::vector<OnnxInput> inputs_of(const OnnxWord& word, const Node& node) {
  std::vector<OnnxInput> inputs;
  for (std::string_view name : word.inputs)
    add_input(node, name, inputs);
  if (word.inputs.empty())
    for (const OperandDecl& decl : node.op().operands)
      add_input(node, decl.name, inputs);
  return inputs;
}

void add_attribute(const Node& node, const OnnxAttribute& attribute, OnnxCall& call) {
  const Attribute& value = node.attr(attribute.ours);
  const auto said = std::ranges::find(attribute.values, value, &Said::ours);
  if (said == attribute.values.end())
    call.attributes.push_back({attribute.theirs, value});
  else if (said->theirs)
    call.attributes.push_back({attribute.theirs, *said->theirs});
}

// Nothing for an op that was not added, or has no name in ONNX.
std::optional<OnnxCall> call_of_added(const Node& node) {
  const AddedOp* added = find_added_op(node.op());
  if (added == nullptr || added->name.op_type.empty() || !node.late_names().empty())
    return std::nullopt;
  OnnxCall call = {.name = std::string(added->name.op_type),
                   .inputs = {},
                   .attributes = {},
                   .foreign = ForeignOp{std::string(added->name.domain), added->name.version}};
  for (const OperandDecl& decl : node.op().operands)
    add_input(node, decl.name, call.inputs);
  for (const auto& [name, value] : node.attributes())
    call.attributes.push_back({name, value});
  return call;
}

}  // namespace

std::optional<OnnxCall> call_in_onnx(const Node& node) {
  const OnnxWord* word = find_word(node);
  if (word == nullptr)
    return call_of_added(node);
  OnnxCall call = {std::string(word->name), inputs_of(*word, node), {}};
  for (const OnnxAttribute& attribute : word->attributes)
    if (!attribute.theirs.empty())
      add_attribute(node, attribute, call);
  if (word->add_attributes != nullptr)
    word->add_attributes(node, call);
  return call;
}

}  // namespace tenon::onnx
