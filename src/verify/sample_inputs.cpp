#include "verify/sample_inputs.h"

#include <cmath>

#include "base/error.h"
#include "tensor/wide.h"

namespace tenon {

Tensor sample_input(const TensorType& type) {
  if (!type.shape.ranked())
    throw user_error("its rank is unknown, so no value can be made up for it");
  Extents extents;
  for (const Dim& dim : type.shape.dims())
    extents.push_back(dim.constant().value_or(1));
  if (kind(type.dtype) == DTypeKind::String || kind(type.dtype) == DTypeKind::Complex)
    return Tensor(type.dtype, extents);
  const auto count = static_cast<size_t>(element_count(extents));
  if (is_float(type.dtype)) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = std::sin(static_cast<double>(i) * 0.37) + 0.1;
    return narrow<double>(type.dtype, extents, values);
  }
  std::vector<uint64_t> values(count, 1);
  if (type.dtype != DType::Bool)
    for (size_t i = 0; i < count; ++i)
      values[i] = i * 7919 % 1000;
  return narrow<uint64_t>(type.dtype, extents, values);
}

Data sample_inputs(const Graph& graph) {
  Data inputs;
  for (Value input : graph.inputs())
    with_context([&] { return fmt::format("input {} of type {}", input.name(), input.type()); },
                 [&] {
                   if (!input.type().is_tensor())
                     throw user_error("no value can be made up for it");
                   inputs.emplace_back(sample_input(input.type().as_tensor()));
                 });
  return inputs;
}

}  // namespace tenon
