#include "frontends/onnx/write/constants.h"

#include <algorithm>

#include "frontends/onnx/write/parts.h"
#include "ir/evaluate.h"
#include "ops/data.h"
#include "tensor/packing.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kSmall = int64_t{1} << 20;  // bytes that no constant is too small to grow to

// What the model holds already: of a splat or an iota, next to nothing.
int64_t stored_size(const Literal& literal) {
  if (literal.dtype() == DType::String)
    return literal.count();
  return literal.is_stored() ? static_cast<int64_t>(packed_size(literal.dtype(), literal.count())) : 0;
}

std::optional<int64_t> size_of(Value value) {
  const auto extents = value.type().is_tensor() ? value.shape().extents() : std::nullopt;
  if (!extents)
    return std::nullopt;
  const int64_t count = element_count(*extents);
  return value.dtype() == DType::String ? count : static_cast<int64_t>(packed_size(value.dtype(), count));
}

}  // namespace

bool ConstantExpressions::is_computable(Value value) {
  if (value.is_input())
    return false;
  const Node& node = *value.node();
  if (const auto it = computable_.find(&node); it != computable_.end())
    return it->second;
  const std::vector<Value> operands = node.operands();
  const bool is_computable =
      !node.op().traits.random && node.regions().empty() &&
      std::ranges::all_of(operands, [&](Value operand) { return this->is_computable(operand); });
  computable_.emplace(&node, is_computable);
  return is_computable;
}

// Whether nothing is left of the node in the file, because it is computed, and so are its users up to some
// that are small.
bool ConstantExpressions::disappears(const Node& node) {
  const std::vector<Value> results = node.results();
  if (!results.empty() && std::ranges::all_of(results, [](Value v) { return v.use_count() == 0; }))
    return true;
  if (results.empty() || !is_computable(results.front()))
    return false;
  int64_t size = 0;
  for (Value result : results)
    size += size_of(result).value_or(kSmall);
  if (size < kSmall)
    return true;
  return std::ranges::all_of(results, [&](Value result) {
    return std::ranges::all_of(result.users(), [&](const Node* user) { return disappears(*user); });
  });
}

bool ConstantExpressions::is_stored_for_others(Value value, const Node& node) {
  return std::ranges::any_of(value.users(),
                             [&](const Node* user) { return user != &node && !disappears(*user); });
}

bool ConstantExpressions::contains(Value value) {
  if (value.is_input() || !value.type().is_tensor())
    return false;
  const Node& node = *value.node();
  if (const auto it = known_.find(&node); it != known_.end())
    return it->second;
  const bool is_constant = find_out(node);
  known_.emplace(&node, is_constant);
  return is_constant;
}

bool ConstantExpressions::find_out(const Node& node) {
  if (node.is("dequantize"))
    return false;
  int64_t size = 0, stored = 0;
  for (Value result : node.results()) {
    const auto bytes = size_of(result);
    if (!bytes)
      return false;
    size += *bytes;
  }
  if (const Literal* literal = literal_of(node)) {
    stored = stored_size(*literal);
  } else {
    const std::vector<Value> operands = node.operands();
    if (node.op().traits.random || !node.regions().empty() ||
        !std::ranges::all_of(operands, [&](Value operand) { return contains(operand); }))
      return false;
    for (Value operand : operands)
      stored += is_stored_for_others(operand, node) ? 0 : *size_of(operand);
  }
  const int64_t growth = size - stored;
  if (growth > kSmall || growth > growth_left_)
    return false;
  growth_left_ -= std::max<int64_t>(growth, 0);
  return true;
}

uint64_t size_in_file(Value value) {
  return packed_size(value.dtype(), element_count(*value.shape().extents()));
}

Tensor compute(Value value) {
  const Node& node = *value.node();
  if (const Literal* literal = literal_of(node))
    return literal->tensor();
  Data operands;
  for (Value operand : node.operands())
    operands.emplace_back(compute(operand));
  return evaluate_node(node, operands)[static_cast<size_t>(value.index())].tensor();
}

void with_packed(Value value, const std::function<void(std::span<const std::byte>)>& use) {
  if (const Literal* literal = literal_of(*value.node()))
    if (const auto* slice = std::get_if<Literal::FileSlice>(&literal->form()))
      return read_in_parts(slice->file->bytes().subspan(slice->offset, slice->size), use);
  if (info(value.dtype()).bits % 8 == 0)
    return compute_in_parts(value, [&](const Tensor& part) { use(part.bytes()); });
  use(pack(compute(value)));
}

}  // namespace tenon::onnx
