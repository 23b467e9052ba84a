#include "frontends/torch/conversions.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/error.h"
#include "frontends/torch/added_ops.h"
#include "frontends/torch/families.h"

namespace tenon::torch {
namespace {

const std::map<std::string_view, const Conversion*>& table() {
  static const auto conversions = [] {
    std::map<std::string_view, const Conversion*> all;
    for (const Conversions* family :
         {&activation_conversions(), &arithmetic_conversions(), &attention_conversions(),
          &control_conversions(),    &convolve_conversions(),   &elementwise_conversions(),
          &external_conversions(),   &generate_conversions(),   &image_conversions(),
          &index_conversions(),      &join_conversions(),       &linear_conversions(),
          &loss_conversions(),       &normalise_conversions(),  &number_conversions(),
          &pool_conversions(),       &recurrent_conversions(),  &reduce_conversions(),
          &reshape_conversions(),    &scatter_conversions(),    &select_conversions(),
          &sort_conversions(),       &random_conversions(),     &strided_conversions()})
      for (const Conversion& conversion : *family)
        CHECK(all.emplace(conversion.op, &conversion).second, "{} is converted in two places", conversion.op);
    return all;
  }();
  return conversions;
}

struct AddedConversion {
  const OpDef* op = nullptr;
  Conversion conversion = {};
};

struct AddedConversions {
  std::shared_mutex mutex;
  std::map<std::string, AddedConversion, std::less<>> by_name;  // which the conversions view
};

AddedConversions& added() {
  static AddedConversions all;
  return all;
}

const Conversion* find(std::string_view op) {
  if (const auto it = table().find(op); it != table().end())
    return it->second;
  const std::shared_lock lock(added().mutex);
  const auto it = added().by_name.find(op);
  return it == added().by_name.end() ? nullptr : &it->second.conversion;
}

Attribute attribute_of(const NodeView& n, const AttributeDecl& decl) {
  switch (decl.kind) {
    case AttributeKind::Bool:
      return n.flag(decl.name, false);
    case AttributeKind::Int:
      return n.integer(decl.name);
    case AttributeKind::Float:
      return n.real(decl.name);
    case AttributeKind::String:
      return n.text(decl.name);
    case AttributeKind::Ints:
      return n.integers(decl.name);
    case AttributeKind::Floats:
      return n.reals(decl.name);
    case AttributeKind::Strings:
      return n.texts(decl.name);
    default:
      throw unsupported("{}: attribute {} is of a kind that PyTorch does not have", n.op(), decl.name);
  }
}

// A node of an op that was added, by the names of its operands and attributes.
std::vector<Value> convert_added(const OpDef& op, const NodeView& n) {
  std::vector<Operand> operands;
  for (const OperandDecl& decl : op.operands)
    if (decl.arity == Arity::Many)
      operands.emplace_back(decl.name, n.tensors(decl.name));
    else
      operands.emplace_back(decl.name,
                            decl.arity == Arity::One ? n.tensor(decl.name) : n.maybe_tensor(decl.name));
  Attributes attributes;
  for (const AttributeDecl& decl : op.attributes)
    if (n.has(decl.name))
      attributes.emplace(decl.name, attribute_of(n, decl));
  return n.graph().create(op, std::move(operands), std::move(attributes))->results();
}

}  // namespace

void add_torch_name(const OpDef& op, std::string_view name) {
  const size_t colons = name.find("::");
  if (colons == std::string_view::npos || name.substr(0, colons) == "aten" || name.find('.') != name.npos)
    throw user_error("an op that is added is called NAMESPACE::NAME in PyTorch, but not {}", name);
  const std::lock_guard lock(added().mutex);
  const auto [it, is_new] =
      added().by_name.try_emplace(fmt::format("{}.{}", name.substr(0, colons), name.substr(colons + 2)));
  if (!is_new && it->second.op != &op)
    throw user_error("PyTorch's {} is read as the op {} already", name, it->second.op->name);
  if (is_new)  // else others may be reading it
    it->second = {.op = &op, .conversion = {.op = it->first, .convert = [&op](const NodeView& n) {
                                              return convert_added(op, n);
                                            }}};
}

std::string op_of(std::string_view target) {
  for (std::string_view prefix : {"torch.ops.aten.", "torch.ops."})
    if (target.starts_with(prefix))
      return std::string(target.substr(prefix.size()));
  return std::string(target);
}

Found find_conversion(std::string_view op) {
  if (const Conversion* exact = find(op))
    return {exact, false};
  const size_t dot = op.rfind('.');
  const std::string_view base = op.substr(0, dot),
                         overload = dot == std::string_view::npos ? "" : op.substr(dot);
  if (const Conversion* general = find(base))
    return {general, false};
  if (!base.ends_with('_') || base.ends_with("__"))
    return {};
  const std::string_view functional = base.substr(0, base.size() - 1);
  if (const Conversion* exact = find(std::string(functional) + std::string(overload)))
    return {exact, true};
  return {find(functional), true};
}

Found find_complex_conversion(std::string_view op) {
  const auto find_exact = [](std::string_view name) {
    const Conversions& all = complex_conversions();
    const auto it = std::ranges::find(all, name, &Conversion::op);
    return it == all.end() ? nullptr : &*it;
  };
  const Conversion* exact = find_exact(op);
  return {exact != nullptr ? exact : find_exact(op.substr(0, op.rfind('.'))), false};
}

std::vector<std::string_view> known_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, conversion] : table())
    ops.push_back(op);
  for (const Conversion& conversion : complex_conversions())
    if (!table().contains(conversion.op))
      ops.push_back(conversion.op);
  return ops;
}

}  // namespace tenon::torch
