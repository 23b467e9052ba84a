#include "ir/fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

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
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const Dim& dim = shape[i];
    if (dim.is_symbol())
      bindings.emplace(dim.symbols().front(), tensor.extent(i));
    const std::optional<int64_t> expected = dim.evaluate(bindings);
    if (expected && *expected != tensor.extent(i))
      return false;
  }
  return true;
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
