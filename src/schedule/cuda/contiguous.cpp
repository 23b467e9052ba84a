#include "schedule/cuda/contiguous.h"

#include <algorithm>

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Scalar;

namespace {

// Of the load's element in its buffer; nothing where data says which it is.
std::optional<Dim> offset_of(const Scalar& load, std::span<const Buffer> buffers) {
  const auto buffer = std::ranges::find(buffers, load.name(), &Buffer::name);
  if (buffer == buffers.end())
    return std::nullopt;
  Dim offset = 0;
  for (size_t i = 0; i < load.operands().size(); ++i) {
    if (load.operands()[i].kind() != Scalar::Kind::Index)
      return std::nullopt;
    offset = offset * buffer->sizes[i] + load.operands()[i].index();
  }
  return offset.is_unknown() ? std::nullopt : std::optional(offset);
}

}  // namespace

int64_t vector_along(const Scalar& load, const Axis& axis, std::span<const Buffer> buffers) {
  const std::optional<Dim> offset = offset_of(load, buffers);
  const Dim along = Dim::symbol(axis.variable);
  if (!offset || offset->substitute({{axis.variable, along + 1}}) - *offset != Dim(1))
    return 0;
  int64_t vector = kVectorBytes / std::max<int64_t>(info(load.dtype()).bytes, 1);
  while (vector > 1 && (!divide_exactly(axis.size, vector) || !divide_exactly(*offset - along, vector)))
    vector /= 2;
  return std::max<int64_t>(vector, 1);
}

}  // namespace tenon::schedule::cuda
