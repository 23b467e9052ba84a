#include "verify/sample_inputs.h"

#include <cmath>

#include "base/error.h"
#include "tensor/wide.h"
#include "verify/index_bounds.h"

namespace tenon {

namespace {

template <class Symbols>
std::map<std::string, int64_t> ones(const Symbols& symbols) {
  std::map<std::string, int64_t> ones;
  for (const std::string& symbol : symbols)
    ones.emplace(symbol, 1);
  return ones;
}

int64_t sample_size(const Dim& dim) {
  const std::optional<int64_t> size = dim.is_unknown() ? 1 : dim.evaluate(ones(dim.symbols()));
  if (!size)
    throw user_error("the dimension {} has no size where every symbol is 1", dim);
  if (*size < 0)
    throw user_error("the dimension {} is {} where every symbol is 1", dim, *size);
  return *size;
}

// The sizes of the inputs that are made up for a graph.
std::map<std::string, int64_t> sample_sizes(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    symbols.merge(symbols_of(input.type()));
  return ones(symbols);
}

// How many different integers are made up for an input.
int64_t integers_for(Value input, const std::map<std::string, int64_t>& sizes) {
  int64_t integers = kIntegers;
  for_each_reader(input, [&](const Node& user, Value value) {
    if (names_places(user, value))
      integers = std::min(integers, places_to_name(user, sizes).value_or(kIntegers));
  });
  return std::max<int64_t>(integers, 1);
}

}  // namespace

Tensor sample_input(const TensorType& type, int64_t integers) {
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
    values[i] = type.dtype == DType::Bool ? 1 : i * 7919 % static_cast<uint64_t>(integers);
  return narrow<uint64_t>(type.dtype, extents, values);
}

Data sample_inputs(const Graph& graph) {
  const std::map<std::string, int64_t> sizes = sample_sizes(graph);
  Data inputs;
  for (Value input : graph.inputs())
    with_context([&] { return fmt::format("input {} of type {}", input.name(), input.type()); },
                 [&] {
                   if (!input.type().is_tensor())
                     throw user_error("no value can be made up for it");
                   inputs.emplace_back(sample_input(input.type().as_tensor(), integers_for(input, sizes)));
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
