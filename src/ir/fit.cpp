#include "ir/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon {
namespace {

// The size that a dimension must have, where it is `actual`. This is asked for every input of every run.
int64_t size_of(const Dim& dim, int64_t actual, Bindings& bindings) {
  if (dim.is_symbol())
    return bindings.try_emplace(get_atom(dim)->name, actual).first->second;
  return dim.is_constant() ? *dim.constant() : dim.evaluate(bindings).value_or(actual);
}

// Whether a size must be what symbols say that stand alone elsewhere.
bool has_expressions(const Type& type) {
  if (!type.is_tensor())
    return has_expressions(type.element());
  const Shape& shape = type.as_tensor().shape;
  return shape.ranked() && std::any_of(shape.dims().begin(), shape.dims().end(),
                                       [](const Dim& dim) { return !dim.is_constant() && !dim.is_symbol(); });
}

}  // namespace

bool fits(const Datum& datum, const Type& type, Bindings& bindings) {
  if (type.is_sequence()) {
    if (!std::holds_alternative<Sequence>(datum))
      return false;
    for (const Datum& element : datum.sequence().elements)
      if (!fits(element, type.element(), bindings))
        return false;
    return true;
  }
  if (type.is_optional()) {
    if (!std::holds_alternative<Optional>(datum))
      return false;
    return !datum.optional().element || fits(*datum.optional().element, type.element(), bindings);
  }
  if (!std::holds_alternative<Tensor>(datum))
    return false;
  const auto& [dtype, shape] = type.as_tensor();
  const Tensor& tensor = datum.tensor();
  if (tensor.dtype() != dtype)
    return false;
  if (!shape.ranked())
    return true;
  if (tensor.rank() != shape.rank())
    return false;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (size_of(shape[i], tensor.extent(i), bindings) != tensor.extent(i))
      return false;
  return true;
}

Bindings bind_inputs(const std::string& name, const std::vector<InputPort>& ports, const Data& inputs) {
  if (inputs.size() != ports.size())
    throw user_error("graph {} takes {} inputs, but {} were given", name, ports.size(), inputs.size());
  Bindings bindings;
  const auto check = [&](size_t i) {
    const auto& [port, type, is_read] = ports[i];
    if (is_read && !fits(inputs[i], type, bindings))
      throw user_error("input {} must be {}{}, but is {}", port, type, bindings_text(type, bindings),
                       type_of(inputs[i]));
  };
  for (size_t i = 0; i < ports.size(); ++i)
    check(i);
  // Symbols may stand alone only in inputs that come after others which mention them.
  for (size_t i = 0; i < ports.size(); ++i)
    if (has_expressions(ports[i].type))
      check(i);
  return bindings;
}

std::string bindings_text(const Type& type, const Bindings& bindings) {
  std::string text;
  if (type.is_tensor() && type.as_tensor().shape.ranked())
    for (const Dim& dim : type.as_tensor().shape.dims())
      for (const std::string& symbol : dim.symbols())
        if (const auto it = bindings.find(symbol); it != bindings.end())
          text += fmt::format("{}{} = {}", text.empty() ? ", where " : ", ", symbol, it->second);
  return text;
}

bool is_empty(const Type& type, const Bindings& bindings) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return false;
  const std::vector<Dim>& dims = type.as_tensor().shape.dims();
  return std::any_of(dims.begin(), dims.end(), [&](const Dim& dim) { return dim.evaluate(bindings) == 0; });
}

bool resize_empty(Datum& datum, const Type& type, const Bindings& bindings) {
  if (!std::holds_alternative<Tensor>(datum) || !is_empty(type, bindings))
    return false;
  const auto& [dtype, shape] = type.as_tensor();
  const Tensor& tensor = datum.tensor();
  if (tensor.dtype() != dtype || tensor.count() != 0 || tensor.rank() != shape.rank())
    return false;
  Extents extents;
  for (int64_t i = 0; i < shape.rank(); ++i)
    extents.push_back(shape[i].evaluate(bindings).value_or(tensor.extent(i)));
  datum = tensor.reshaped(extents);
  return true;
}

}  // namespace tenon
