// strided.cpp — PyTorch's ops on strides: what they read or write in memory, as elements of a tensor whose
// memory is known.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

using Ints = std::vector<int64_t>;

Ints known(const NodeView& n, const std::vector<SymInt>& sizes) {
  Ints numbers;
  for (const SymInt& size : sizes) {
    if (!size.is_constant())
      throw unsupported("{}: a tensor of dynamic sizes or strides", n.op());
    numbers.push_back(*size.constant());
  }
  return numbers;
}

// A tensor whose elements fill its memory, in the order that its strides say.
struct Memory {
  Value x;
  Ints order;  // of the dimensions, the one with the greatest stride first
  int64_t offset = 0;

  Memory(const NodeView& n, Value x) : x(x) {
    const TensorMeta* meta = n.argument_meta("self");
    if (meta == nullptr)
      throw unsupported("{}: a tensor whose strides the file does not say", n.op());
    const Ints sizes = known(n, meta->sizes), strides = known(n, meta->strides);
    offset = known(n, {meta->storage_offset}).front();
    order.resize(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    const auto stride = [&](int64_t axis) { return strides[static_cast<size_t>(axis)]; };
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
    int64_t expected = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      const int64_t size = sizes[static_cast<size_t>(*axis)];
      if (size != 1 && stride(*axis) != expected)
        throw unsupported("{}: of {} with strides [{}], which have gaps or overlap", n.op(), x.type(),
                          fmt::join(strides, ","));
      expected *= size;
    }
  }

  bool is_row_major() const { return std::ranges::is_sorted(order); }
  Value flat() const { return reshape(is_row_major() ? x : transpose(x, order), {-1}); }
  Value shaped(Value flat) const {
    if (is_row_major())
      return reshape(flat, shape_of(x));
    Ints back(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return transpose(reshape(flat, shape_of(transpose(x, order))), back);
  }
};

// Which elements of the memory a view has.
struct Strided {
  Ints sizes, strides, places;

  Strided(const NodeView& n, const Memory& memory)
      : sizes(n.integers("size")), strides(n.integers("stride")) {
    if (sizes.size() != strides.size())
      throw user_error("{}: {} sizes, but {} strides", n.op(), sizes.size(), strides.size());
    const int64_t count = element_count(sizes);
    constexpr int64_t most = int64_t{1} << 28;
    if (count > most)
      throw unsupported("{}: {} elements", n.op(), count);
    const int64_t first = n.integer("storage_offset", memory.offset) - memory.offset;
    places.reserve(static_cast<size_t>(count));
    Ints at(sizes.size(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, place = first;
      for (size_t axis = sizes.size(); axis-- > 0;) {
        place += rest % sizes[axis] * strides[axis];
        rest /= sizes[axis];
      }
      places.push_back(place);
    }
  }
  // All of so many elements, one after the other.
  bool is_all(const Dim& elements) const {
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] != static_cast<int64_t>(i))
        return false;
    return elements == Dim(static_cast<int64_t>(places.size()));
  }
};

std::vector<Value> convert_as_strided(const NodeView& n) {
  const Memory memory(n, n.tensor("self"));
  const Strided view(n, memory);
  const Value flat = memory.flat();
  if (view.is_all(flat.dim(0)))
    return {reshape(flat, view.sizes)};
  return {reshape(gather(flat, int_vector(n.graph(), view.places), 0), view.sizes)};
}

Value with_strided(const NodeView& n, Value x, Value updated) {
  const Memory memory(n, x);
  const Strided view(n, memory);
  const Value values = reshape(in_dtype(updated, x.dtype()), {-1});
  const Value places = reshape(int_vector(n.graph(), view.places), {-1, 1});
  return memory.shaped(scatter_nd(memory.flat(), places, values));
}
std::vector<Value> convert_as_strided_scatter(const NodeView& n) {
  return {with_strided(n, n.tensor("self"), n.tensor("src"))};
}

// As many elements as fit; what nobody wrote is 0.
std::vector<Value> convert_resize(const NodeView& n) {
  const Memory memory(n, n.tensor("self"));
  const Ints sizes = n.integers("size");
  const int64_t count = element_count(sizes);
  const Value flat = memory.flat();
  const auto there = flat.dim(0).constant();
  if (!there)
    throw unsupported("{}: of {}", n.op(), memory.x.type());
  const Value zeros =
      fill(int_vector(n.graph(), {std::max<int64_t>(count - *there, 0)}), filled(memory.x.dtype(), {}, 0));
  const Value all = count > *there ? concat({flat, zeros}, 0) : slice(flat, 0, 0, count);
  return {reshape(all, sizes)};
}

}  // namespace

const Conversions& strided_conversions() {
  static const Conversions conversions = {
      {"as_strided", convert_as_strided, Sharing::View, with_strided},
      {"as_strided_copy", convert_as_strided},
      {"as_strided_scatter", convert_as_strided_scatter},
      {"resize", convert_resize},
  };
  return conversions;
}

}  // namespace tenon::torch
