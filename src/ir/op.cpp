#include "ir/op.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/edit_distance.h"
#include "base/error.h"
#include "ir/print.h"

namespace tenon {

std::string_view name(Category category) {
  constexpr std::string_view names[] = {"compute", "data", "shape", "control", "memory"};
  return names[static_cast<size_t>(category)];
}

std::string DTypeSet::to_string() const {
  constexpr std::pair<std::string_view, DTypeSet> named[] = {
      {"any dtype", AnyDType}, {"numbers and bool", NumbersAndBool}, {"numbers", Numbers}, {"floats", Floats},
      {"integers", Integers},  {"signed integers", SignedIntegers}};
  for (const auto& [set_name, set] : named)
    if (*this == set)
      return std::string(set_name);
  std::string text;
  for (const DTypeInfo& dtype : all_dtypes())
    if (contains(dtype.dtype))
      text += fmt::format("{}{}", text.empty() ? "" : " ", dtype.name);
  return text;
}

const OperandDecl* OpDef::find_operand(std::string_view wanted) const {
  const auto it =
      std::find_if(operands.begin(), operands.end(), [&](const auto& o) { return o.name == wanted; });
  return it == operands.end() ? nullptr : &*it;
}

const AttributeDecl* OpDef::find_attribute(std::string_view wanted) const {
  const auto it =
      std::find_if(attributes.begin(), attributes.end(), [&](const auto& a) { return a.name == wanted; });
  return it == attributes.end() ? nullptr : &*it;
}

std::string OpDef::signature() const {
  constexpr std::string_view marks[] = {"", "?", "..."};
  std::string text = fmt::format("{}(", name);
  std::string_view separator = "";
  for (const OperandDecl& operand : operands) {
    text += fmt::format("{}{}{}: {}", separator, operand.name, marks[static_cast<size_t>(operand.arity)],
                        operand.type);
    separator = ", ";
  }
  for (const AttributeDecl& attribute : attributes) {
    text += fmt::format("{}{}: {}", separator, attribute.name, tenon::name(attribute.kind));
    if (attribute.computed_default)
      text += fmt::format(" = {}", attribute.computed_default->doc);
    else if (attribute.default_value)
      text += fmt::format(" = {}", print(*attribute.default_value));
    separator = ", ";
  }
  text += ") -> (";
  separator = "";
  for (const ResultDecl& result : results) {
    text += fmt::format("{}{}{}: {}", separator, result.name, marks[static_cast<size_t>(result.arity)],
                        result.type);
    separator = ", ";
  }
  text += ")";
  separator = " where ";
  for (const TypeVariable& variable : types) {
    text += fmt::format("{}{} in {}", separator, variable.name, variable.allowed.to_string());
    separator = ", ";
  }
  return text;
}

namespace {

// Ops may be added while others are looked up.
struct Registry {
  std::shared_mutex mutex;
  std::map<std::string_view, const OpDef*> ops;
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

void register_op(const OpDef& op) {
  CHECK(op.infer != nullptr && op.eval != nullptr, "op {} lacks infer or eval", op.name);
  const std::lock_guard lock(registry().mutex);
  CHECK(registry().ops.emplace(op.name, &op).second, "op {} is registered twice", op.name);
}

const OpDef* find_op(std::string_view name) {
  const std::shared_lock lock(registry().mutex);
  const auto it = registry().ops.find(name);
  return it == registry().ops.end() ? nullptr : it->second;
}

const OpDef& require_op(std::string_view name) {
  const OpDef* op = find_op(name);
  CHECK(op != nullptr, "there is no op {}", name);
  return *op;
}

std::vector<const OpDef*> registered_ops() {
  const std::shared_lock lock(registry().mutex);
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : registry().ops)
    ops.push_back(op);
  return ops;
}

const OpDef& wanted_op(std::string_view name) {
  if (const OpDef* op = find_op(name))
    return *op;
  std::vector<std::string_view> names;
  for (const OpDef* op : registered_ops())
    names.push_back(op->name);
  const std::string hint = did_you_mean(name, names);
  throw user_error("there is no op {}{}", name, hint.empty() ? "\n  hint: tenon ops lists them" : hint);
}

UserError OpDef::unknown_name(std::string_view wanted) const {
  std::vector<std::string_view> names;
  for (const OperandDecl& operand : operands)
    names.push_back(operand.name);
  for (const AttributeDecl& attribute : attributes)
    names.push_back(attribute.name);
  return user_error("{}: there is no operand or attribute {}{}", name, wanted, did_you_mean(wanted, names));
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names) {
  // A name is near when at most a third of the wanted one would have to change.
  std::string_view best;
  size_t best_distance = wanted.size() / 3 + 1;
  for (std::string_view candidate : names)
    if (const size_t distance = edit_distance(wanted, candidate); distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  // Or when it says more than the wanted one does: unfused, where fused is wanted.
  constexpr size_t kTelling = 4;  // letters
  for (std::string_view candidate : names)
    if (best.empty() && wanted.size() >= kTelling && candidate.find(wanted) != std::string_view::npos)
      best = candidate;
  return best.empty() ? "" : fmt::format("\n  hint: did you mean {}?", best);
}

}  // namespace tenon
