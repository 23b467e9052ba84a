#include "verify/sample_inputs.h"

#include <cmath>

#include "base/error.h"
#include "tensor/wide.h"

namespace tenon {

namespace {

int64_t sample_size(const Dim& dim) {
  std::map<std::string, int64_t> ones;
  for (const std::string& symbol : dim.symbols())
    ones.emplace(symbol, 1);
  const std::optional<int64_t> size = dim.is_unknown() ? 1 : dim.evaluate(ones);
  if (!size)
    throw user_error("the dimension {} has no size where every symbol is 1", dim);
  if (*size < 0)
    throw user_error("the dimension {} is {} where every symbol is 1", dim, *size);
  return *size;
}

}  // namespace

Tensor sample_input(const TensorType& type) {
  if (!type.shape.ranked())
    throw user_error("its rank is unknown, so no value can be made up for it");
  Extents extents;
  for (const Dim& dim : type.shape.dims())
    extents.push_back(sample_size(dim));
  if (kind(type.dtype) == DTypeKind::String || kind(type.dtype) == DTypeKind::Complex)
    return Tensor(type.dtype, extents);
  // Tensors, not vectors: they refuse what no memory holds.
  if (is_float(type.dtype)) {
    Tensor wide(DType::F64, extents);
    const std::span<double> values = wide.mutable_data<double>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<double>(i) * 0.37) + 0.1;
    return narrow<double>(type.dtype, extents, values);
  }
  Tensor wide(DType::U64, extents);
  const std::span<uint64_t> values = wide.mutable_data<uint64_t>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = type.dtype == DType::Bool ? 1 : i * 7919 % 1000;
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

std::string dims_to_bind(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    symbols.merge(symbols_of(input.type()));
  std::vector<std::string> options;
  for (const std::string& symbol : symbols)
    options.push_back(fmt::format("--dim {}=…", symbol));
  return fmt::format("{}", fmt::join(options, " "));
}

}  // namespace tenon
