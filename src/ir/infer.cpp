#include "ir/infer.h"

#include <algorithm>

namespace tenon {
namespace {

// Says which operand is at fault the way the user sees it: op, operand, its type.
void check_type(const Node& node, std::string_view operand, std::string_view wanted, const Type& got,
                std::map<std::string_view, std::pair<DType, std::string_view>>& variables) {
  const OpDef& op = node.op();
  if (wanted == "any")
    return;
  if (wanted == "seq" || wanted == "opt") {
    if (!(wanted == "seq" ? got.is_sequence() : got.is_optional()))
      throw user_error("{}: {} must be {}, but is {}", op.name, operand,
                       wanted == "seq" ? "a sequence" : "an optional", got);
    return;
  }
  if (!got.is_tensor())
    throw user_error("{}: {} must be a tensor, but is {}", op.name, operand, got);
  const DType dtype = got.as_tensor().dtype;
  if (const std::optional<DType> fixed = parse_dtype(wanted)) {
    if (dtype != *fixed)
      throw user_error("{}: {} must be {}, but is {}", op.name, operand, *fixed, got);
    return;
  }
  for (const TypeVariable& variable : op.types)
    if (variable.name == wanted && !variable.allowed.contains(dtype))
      throw user_error("{}: {} is {}, but only {} will do", op.name, operand, got,
                       variable.allowed.to_string());
  const auto [it, first] = variables.emplace(wanted, std::pair(dtype, operand));
  if (!first && it->second.first != dtype)
    throw user_error("{}: {} is {}, but must have the dtype of {}, {}", op.name, operand, got,
                     it->second.second, it->second.first);
}

bool has_unknown_rank(const Type& type) {
  return type.is_tensor() ? !type.as_tensor().shape.ranked() : has_unknown_rank(type.element());
}

DType declared_dtype(const Node& node, std::string_view type) {
  if (type.starts_with('$'))
    return node.attr(type.substr(1));
  if (const std::optional<DType> fixed = parse_dtype(type))
    return *fixed;
  for (const OperandDecl& operand : node.op().operands)
    if (operand.type == type)
      for (Value value : node.ins(operand.name))
        return value.dtype();
  CHECK(false, "{}: nothing says the dtype of a result of type {}", node.op().name, type);
}

}  // namespace

void check_against_declaration(const Node& node) {
  const OpDef& op = node.op();
  std::map<std::string_view, std::pair<DType, std::string_view>> variables;
  for (const OperandDecl& decl : op.operands) {
    const std::vector<Value> values = node.ins(decl.name);
    if (decl.arity == Arity::One && values.size() != 1)
      throw user_error("{}: {} is missing", op.name, decl.name);
    if (decl.arity == Arity::Optional && values.size() > 1)
      throw user_error("{}: {} takes one value, not {}", op.name, decl.name, values.size());
    for (Value value : values)
      check_type(node, decl.name, decl.type, value.type(), variables);
  }
  for (const AttributeDecl& decl : op.attributes) {
    const auto it = node.attributes().find(decl.name);
    const bool late = node.is_late(decl.name);
    if (it == node.attributes().end() && !late)
      throw user_error("{}: attribute {} is missing", op.name, decl.name);
    if (it != node.attributes().end() && it->second.kind() != decl.kind)
      throw user_error("{}: attribute {} must be of kind {}, but is of kind {}", op.name, decl.name,
                       name(decl.kind), name(it->second.kind()));
    if (late && (decl.binding != Binding::Late || !is_integer(node.late(decl.name).dtype())))
      throw user_error("{}: attribute {} cannot be given by a value of type {}", op.name, decl.name,
                       node.late(decl.name).type());
  }
  if (node.regions().size() != op.regions.size())
    throw user_error("{}: {} nested graphs were given, but it takes {}", op.name, node.regions().size(),
                     op.regions.size());
}

Types infer_types(const Node& node) {
  const std::vector<Value> operands = node.operands();
  const bool blind =
      !node.late_names().empty() || std::any_of(operands.begin(), operands.end(),
                                                [](Value value) { return has_unknown_rank(value.type()); });
  if (!blind || node.op().traits.takes_unranked)
    return node.op().infer(node);
  Types types;
  for (const ResultDecl& result : node.op().results) {
    if (result.type == "any" || result.arity != Arity::One)
      throw unsupported("{}: the ranks of its operands must be known", node.op().name);
    types.push_back(Type::tensor(declared_dtype(node, result.type), Shape::unranked()));
  }
  return types;
}

Type complete(const Type& inferred, const Type& declared) {
  if (inferred.index() != declared.index())
    return inferred;
  if (!inferred.is_tensor()) {
    Type element = complete(inferred.element(), declared.element());
    return inferred.is_sequence() ? Type::sequence(element) : Type::optional(element);
  }
  const auto& [dtype, shape] = inferred.as_tensor();
  const auto& [declared_dtype, declared_shape] = declared.as_tensor();
  if (dtype != declared_dtype || !declared_shape.ranked())
    return inferred;
  if (!shape.ranked())
    return Type::tensor(dtype, declared_shape);
  if (shape.rank() != declared_shape.rank())
    return inferred;
  std::vector<Dim> dims;
  for (int64_t i = 0; i < shape.rank(); ++i)
    dims.push_back(shape[i].is_unknown() ? declared_shape[i] : shape[i]);
  return Type::tensor(dtype, dims);
}

}  // namespace tenon
