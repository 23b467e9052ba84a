#include "tensor/join.h"

#include <algorithm>

namespace tenon {

Extents joined_extents(const std::vector<Tensor>& pieces, size_t dim) {
  Extents extents = pieces.front().extents();
  for (size_t i = 1; i < pieces.size(); ++i)
    extents[dim] += pieces[i].extents()[dim];
  return extents;
}

Tensor join(const std::vector<Tensor>& pieces, size_t dim) {
  if (pieces.size() == 1)
    return pieces.front();
  const Extents extents = joined_extents(pieces, dim);
  Tensor all(pieces.front().dtype(), extents);
  const auto row_bytes = [&](const Extents& of) {
    return element_count(Extents(of.begin() + static_cast<int64_t>(dim), of.end())) * all.element_size();
  };
  const int64_t row = row_bytes(extents);
  int64_t at = 0;  // of the piece in each row
  for (const Tensor& piece : pieces) {
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
