#include "ir/op.h"

#include <algorithm>
#include <map>

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

size_t OpDef::operand_index(std::string_view wanted) const {
  const OperandDecl* decl = find_operand(wanted);
  CHECK(decl != nullptr, "{} has no operand {}", name, wanted);
  return static_cast<size_t>(decl - operands.data());
}

size_t OpDef::result_index(std::string_view wanted) const {
  const auto it =
      std::find_if(results.begin(), results.end(), [&](const auto& r) { return r.name == wanted; });
  CHECK(it != results.end(), "{} has no result {}", name, wanted);
  return static_cast<size_t>(it - results.begin());
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
    if (attribute.default_value)
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

std::map<std::string_view, const OpDef*>& registry() {
  static std::map<std::string_view, const OpDef*> ops;
  return ops;
}

}  // namespace

void register_op(const OpDef& op) {
  CHECK(op.infer != nullptr && op.eval != nullptr, "op {} lacks infer or eval", op.name);
  CHECK(registry().emplace(op.name, &op).second, "op {} is registered twice", op.name);
}

const OpDef* find_op(std::string_view name) {
  const auto it = registry().find(name);
  return it == registry().end() ? nullptr : it->second;
}

const OpDef& require_op(std::string_view name) {
  const OpDef* op = find_op(name);
  CHECK(op != nullptr, "there is no op {}", name);
  return *op;
}

std::vector<const OpDef*> registered_ops() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : registry())
    ops.push_back(op);
  return ops;
}

std::string_view closest_name(std::string_view wanted, const std::vector<std::string_view>& names) {
  // Edit distance; a name counts as near when at most a third of the wanted one would have to change.
  std::string_view best;
  size_t best_distance = wanted.size() / 3 + 1;
  for (std::string_view candidate : names) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j)
      row[j] = j;
    for (size_t i = 1; i <= wanted.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substituted = diagonal + (wanted[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace tenon
