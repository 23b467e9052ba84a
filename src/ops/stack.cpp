#include "ops/stack.h"

#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {

Tensor concatenate(std::string_view op, const std::vector<Tensor>& parts, int64_t axis) {
  const Tensor& first = parts.at(0);
  const auto along = static_cast<size_t>(checked_axis(op, axis, first.rank()));
  Extents extents = first.extents();
  extents[along] = 0;
  for (const Tensor& part : parts) {
    Extents others = part.extents();
    if (others.size() == extents.size())
      others[along] = first.extents()[along];
    if (others != first.extents() || part.dtype() != first.dtype())
      throw user_error("{}: {} and {} cannot be joined along axis {}", op, type_of(first), type_of(part),
                       along);
    if (__builtin_add_overflow(extents[along], part.extents()[along], &extents[along]))
      throw user_error("{}: the size of axis {} overflows", op, along);
  }
  Tensor result(first.dtype(), extents);
  const int64_t outer =
      element_count(Extents(extents.begin(), extents.begin() + static_cast<int64_t>(along)));
  if (result.count() == 0)
    return result;
  with_storage(result.dtype(), [&]<class T>(T) {
    auto out = mutable_stored<T>(result).begin();
    for (int64_t block = 0; block < outer; ++block)
      for (const Tensor& part : parts) {
        const int64_t size = part.count() / outer;
        out = std::copy_n(stored<T>(part).begin() + block * size, size, out);
      }
  });
  return result;
}

Tensor stack(std::string_view op, const std::vector<Tensor>& parts, int64_t axis) {
  std::vector<Tensor> layers;
  for (const Tensor& part : parts) {
    Extents extents = part.extents();
    extents.insert(extents.begin() + checked_axis(op, axis, part.rank() + 1), 1);
    layers.push_back(part.reshaped(extents));
  }
  for (const Tensor& part : parts)
    if (part.extents() != parts.front().extents())
      throw user_error("{}: {} and {} cannot be stacked", op, type_of(parts.front()), type_of(part));
  return concatenate(op, layers, checked_axis(op, axis, layers.front().rank()));
}

}  // namespace tenon
