#include "tensor/join.h"

#include <algorithm>

namespace tenon {

namespace {

Tensor join_strings(const std::vector<Tensor>& pieces, const Extents& extents, size_t dim) {
  std::vector<std::string> strings;
  const int64_t outer = element_count(Extents(extents.begin(), extents.begin() + static_cast<int64_t>(dim)));
  for (int64_t i = 0; i < outer; ++i)
    for (const Tensor& piece : pieces) {
      const int64_t row = piece.count() / outer;
      const auto begin = piece.strings().begin() + i * row;
      strings.insert(strings.end(), begin, begin + row);
    }
  return Tensor::strings(std::move(strings), extents);
}

}  // namespace

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
  if (pieces.front().dtype() == DType::String)
    return join_strings(pieces, extents, dim);
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
