#include "ops/nested.h"

#include <algorithm>

#include "base/error.h"

namespace tenon {
namespace {

const std::vector<Dim>& dims_of(const Type& type) { return type.as_tensor().shape.dims(); }

// Binds the symbols that stand alone in `wanted`. False when the types differ in more than their dimensions.
bool bind(const Type& wanted, const Type& given, Sizes& sizes) {
  if (wanted.index() != given.index())
    return false;
  if (!wanted.is_tensor())
    return bind(wanted.element(), given.element(), sizes);
  const auto& [dtype, shape] = wanted.as_tensor();
  const auto& [given_dtype, given_shape] = given.as_tensor();
  if (dtype != given_dtype)
    return false;
  if (!shape.ranked())
    return true;
  if (!given_shape.ranked() || given_shape.rank() != shape.rank())
    return false;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape[i].is_symbol() && !given_shape[i].is_unknown())
      sizes.emplace(shape[i].symbols().front(), given_shape[i]);
  return true;
}

// Whether every dimension is what `sizes` makes of the wanted one. A symbol they lack is known outside by the
// same name.
bool is_instance(const Type& wanted, const Type& given, Sizes& sizes) {
  if (!wanted.is_tensor())
    return is_instance(wanted.element(), given.element(), sizes);
  if (!wanted.as_tensor().shape.ranked())
    return true;
  for (size_t i = 0; i < dims_of(wanted).size(); ++i) {
    const Dim& dim = dims_of(wanted)[i];
    if (dim.is_unknown())
      continue;
    if (!provably_equal(dim.substitute(sizes), dims_of(given)[i]))
      return false;
    for (const std::string& symbol : dim.symbols())
      sizes.emplace(symbol, Dim::symbol(symbol));
  }
  return true;
}

std::string where(const Type& type, const Sizes& sizes) {
  std::string text;
  if (type.is_tensor() && type.as_tensor().shape.ranked())
    for (const Dim& dim : dims_of(type))
      for (const std::string& symbol : dim.symbols())
        if (const auto it = sizes.find(symbol); it != sizes.end() && !(it->second == Dim::symbol(symbol)))
          text += fmt::format("{}{} = {}", text.empty() ? ", where " : ", ", symbol, it->second);
  return text;
}

}  // namespace

Types types_of(const std::vector<Value>& values) {
  Types types;
  for (Value value : values)
    types.push_back(value.type());
  return types;
}

std::vector<Fed> fed(std::string_view what, const Types& types) {
  std::vector<Fed> all;
  for (const Type& type : types)
    all.push_back({fmt::format("{} {}", what, all.size()), type});
  return all;
}

Sizes feed(const Node& n, std::string_view region, const std::vector<Fed>& all) {
  const Graph& graph = n.region(region);
  if (static_cast<size_t>(graph.input_count()) != all.size())
    throw user_error("{}: {} takes {} values, but is given {}", n.op().name, region, graph.input_count(),
                     all.size());
  const auto mismatch = [&](size_t i, const Sizes& sizes) {
    const Type& wanted = graph.input(static_cast<int64_t>(i)).type();
    return user_error("{}: {} takes {} as {}{}, but is given {}", n.op().name, region, wanted, all[i].what,
                      where(wanted, sizes), all[i].type);
  };
  Sizes sizes;
  for (size_t i = all.size(); i-- > 0;)
    if (!bind(graph.input(static_cast<int64_t>(i)).type(), all[i].type, sizes))
      throw mismatch(i, {});
  for (size_t i = 0; i < all.size(); ++i)
    if (!is_instance(graph.input(static_cast<int64_t>(i)).type(), all[i].type, sizes))
      throw mismatch(i, sizes);
  return sizes;
}

Type seen_outside(const Type& type, const Sizes& sizes) {
  if (type.is_sequence())
    return Type::sequence(seen_outside(type.element(), sizes));
  if (type.is_optional())
    return Type::optional(seen_outside(type.element(), sizes));
  if (!type.as_tensor().shape.ranked())
    return type;
  std::vector<Dim> dims = dims_of(type);
  for (Dim& dim : dims) {
    const std::vector<std::string> symbols = dim.symbols();
    const bool told = std::all_of(symbols.begin(), symbols.end(),
                                  [&](const std::string& symbol) { return sizes.contains(symbol); });
    dim = told ? dim.substitute(sizes) : Dim();
  }
  return Type::tensor(type.as_tensor().dtype, dims);
}

Extents extents_when_fed(const Graph& region, const Types& inputs, const Type& type) {
  Sizes sizes;
  for (size_t i = 0; i < inputs.size(); ++i)
    bind(region.input(static_cast<int64_t>(i)).type(), inputs[i], sizes);
  const Type outside = seen_outside(type, sizes);
  Extents extents;
  if (outside.as_tensor().shape.ranked())
    for (const Dim& dim : dims_of(outside))
      extents.push_back(dim.constant().value_or(0));
  return extents;
}

}  // namespace tenon
