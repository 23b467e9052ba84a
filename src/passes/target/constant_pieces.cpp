#include "passes/target/constant_pieces.h"

#include <algorithm>

#include "ops/data.h"

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
  const Literal& first = *pieces.literals.front();
  if (pieces.literals.size() == 1)
    return first.tensor();
  Extents extents = first.extents();
  extents[pieces.dim] = 0;
  for (const Literal* literal : pieces.literals)
    extents[pieces.dim] += literal->extents()[pieces.dim];
  Tensor all(first.dtype(), extents);
  const auto row_bytes = [&](const Extents& of) {
    return element_count(Extents(of.begin() + static_cast<int64_t>(pieces.dim), of.end())) *
           all.element_size();
  };
  const int64_t row = row_bytes(extents);
  int64_t at = 0;  // of the piece in each row
  for (const Literal* literal : pieces.literals) {
    const Tensor piece = literal->tensor();
    const int64_t own = row_bytes(piece.extents());
    if (own == 0)
      continue;
    for (int64_t i = 0; i * own < static_cast<int64_t>(piece.bytes().size()); ++i)
      std::copy_n(piece.bytes().begin() + i * own, own, all.mutable_bytes().begin() + i * row + at);
    at += own;
  }
  return all;
}

}  // namespace tenon
