#include "passes/target/constant_pieces.h"

#include <algorithm>

#include "ops/data.h"
#include "tensor/join.h"

namespace tenon {

std::optional<Pieces> pieces_of(Value value) {
  if (const Literal* literal = literal_of(value))
    return Pieces{.literals = {literal}};
  if (value.is_input() || !value.node()->is("concat") || !value.shape().extents() ||
      info(value.dtype()).bytes == 0)
    return std::nullopt;
  const int64_t axis = value.node()->attr("axis");
  Pieces pieces{.literals = {}, .dim = static_cast<size_t>(axis < 0 ? axis + value.rank() : axis)};
  for (Value operand : value.node()->operands()) {
    const Literal* literal = literal_of(operand);
    // One that is repeated, or a number that is, would take more memory than it does now.
    if (literal == nullptr || !literal->is_stored() ||
        std::ranges::find(pieces.literals, literal) != pieces.literals.end())
      return std::nullopt;
    pieces.literals.push_back(literal);
  }
  return pieces;
}

std::vector<Node*> holders_of(Value constant) {
  if (literal_of(constant) != nullptr)
    return {constant.node()};
  std::vector<Node*> holders;
  for (Value operand : constant.node()->operands())
    holders.push_back(operand.node());
  return holders;
}

Tensor join(const Pieces& pieces) {
  std::vector<Tensor> tensors;
  for (const Literal* literal : pieces.literals)
    tensors.push_back(literal->tensor());
  return join(tensors, pieces.dim);
}

}  // namespace tenon
