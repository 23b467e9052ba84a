// pool.cpp — PyTorch's pools.
#include "ops/pool.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/window.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

using Ints = std::vector<int64_t>;

// max_pool2d, adaptive_avg_pool3d: the digit says how many dimensions are spatial.
int64_t spatial_rank(const NodeView& n) {
  const size_t digit = n.op().find_first_of("123");
  CHECK(digit != std::string_view::npos, "{} has no dimensions in its name", n.op());
  return n.op()[digit] - '0';
}

// Pools an input with or without a batch; `pool` sees it with one.
template <class F>
std::vector<Value> with_batch(const NodeView& n, const F& pool) {
  const Value x = n.tensor(n.has("input") ? "input" : "self");
  const bool single = n.rank_of(x) == spatial_rank(n) + 1;
  if (!single && x.rank() != spatial_rank(n) + 2)
    throw user_error("{}: its input is {}", n.op(), x.type());
  std::vector<Value> results = pool(single ? unsqueeze(x, {0}) : x);
  if (single)
    for (Value& result : results)
      result = squeeze(result, {0});
  return results;
}

Attributes window_of(const NodeView& n) {
  const auto rank = static_cast<size_t>(spatial_rank(n));
  const Ints kernel = for_each_axis(n, "kernel_size", rank, {}), ones(rank, 1), zeros(rank, 0);
  return {{"kernel", kernel},
          {"strides", for_each_axis(n, "stride", rank, kernel)},
          {"dilations", for_each_axis(n, "dilation", rank, ones)},
          {"pads", on_both_sides(for_each_axis(n, "padding", rank, zeros))},
          {"round_up", n.flag("ceil_mode", false)}};
}

// Our indices count all elements, PyTorch's those of one plane.
Value in_plane(const NodeView& n, Value x, Value indices) {
  Dim plane = 1;
  for (int64_t axis = 2; axis < x.rank(); ++axis)
    plane = plane * x.dim(axis);
  if (!plane.is_constant())
    throw unsupported("{}: indices of planes of dynamic size", n.op());
  return mod(indices, constant(n.graph(), Tensor::scalar(*plane.constant())));
}

std::vector<Value> max_pooled(const NodeView& n, bool with_indices) {
  return with_batch(n, [&](Value x) {
    const std::vector<Value> both = n.make("max_pool", {{"x", x}}, window_of(n));
    return with_indices ? std::vector<Value>{both[0], in_plane(n, x, both[1])} : std::vector<Value>{both[0]};
  });
}
std::vector<Value> convert_max_pool(const NodeView& n) { return max_pooled(n, false); }
std::vector<Value> convert_max_pool_with_indices(const NodeView& n) { return max_pooled(n, true); }

// With so many zeros behind the elements that the last windows end with them: all have as many elements then.
// A window that would begin with them is none.
Ints pads_to_the_end(const NodeView& n, Value x, const Attributes& window) {
  const auto of = [&](std::string_view name) { return window.find(name)->second.as<Ints>(); };
  const Ints kernel = of("kernel"), strides = of("strides"), pads = of("pads");
  Ints result = pads;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto size = x.dim(static_cast<int64_t>(i) + 2).constant();
    if (!size)
      throw unsupported("{}: a divisor_override for {}", n.op(), x.type());
    const int64_t before = pads[i], reach = *size + 2 * before - kernel[i];
    int64_t windows = (reach + strides[i] - 1) / strides[i] + 1;
    if ((windows - 1) * strides[i] >= *size + before)
      --windows;
    result[kernel.size() + i] = (windows - 1) * strides[i] + kernel[i] - *size - before;
  }
  return result;
}

std::vector<Value> convert_avg_pool(const NodeView& n) {
  Attributes attributes = window_of(n);
  attributes.emplace("count_padding", n.flag("count_include_pad", true));
  if (!n.has("divisor_override"))
    return with_batch(n, [&](Value x) { return n.make("average_pool", {{"x", x}}, attributes); });
  // The mean of as many elements as the kernel has, times that number, is their sum.
  attributes.insert_or_assign("count_padding", true);
  double cells = 1;
  for (int64_t size : attributes.find("kernel")->second.as<Ints>())
    cells *= static_cast<double>(size);
  return with_batch(n, [&](Value x) -> std::vector<Value> {
    const double divisor = n.real("divisor_override");
    if (n.flag("ceil_mode", false))
      attributes.insert_or_assign("pads", pads_to_the_end(n, x, attributes));
    attributes.insert_or_assign("round_up", false);
    return {n.make_one("average_pool", {{"x", x}}, attributes) * (cells / divisor)};
  });
}

// --- pools to a size: cell i of m sees the elements from floor(i·n/m) to before ceil((i+1)·n/m)

// Which sizes are wanted; -1 keeps a size. A gradient has them, too.
Ints wanted_sizes(const NodeView& n, Value x) {
  Ints wanted;
  if (n.has("grad_output")) {
    const Value dy = n.tensor("grad_output");
    for (int64_t axis = dy.rank() - spatial_rank(n); axis < dy.rank(); ++axis) {
      const auto size = dy.dim(axis).constant();
      if (!size)
        throw unsupported("{}: a gradient {}", n.op(), dy.type());
      wanted.push_back(*size);
    }
    return wanted;
  }
  const std::vector<Size> given = n.sizes("output_size");
  const bool same = given.size() == 1;
  if (!same && static_cast<int64_t>(given.size()) != spatial_rank(n))
    throw user_error("{}: output_size has {} numbers for {} spatial dimensions", n.op(), given.size(),
                     spatial_rank(n));
  for (int64_t i = 0; i < spatial_rank(n); ++i) {
    const auto* size = std::get_if<int64_t>(&given[same ? 0 : static_cast<size_t>(i)]);
    if (size == nullptr)
      throw unsupported("{}: a dynamic output_size", n.op());
    const auto own = x.dim(i + 2).constant();
    wanted.push_back(*size < 0 && own ? *own : *size);
  }
  return wanted;
}

// The mean along one axis, as a product with a matrix of weights.
Value averaged_along(const NodeView& n, Value x, int64_t axis, int64_t wanted) {
  const auto size = x.dim(axis).constant();
  if (!size)
    throw unsupported("{}: {} to {} cells", n.op(), x.type(), wanted);
  if (*size == wanted)
    return x;
  std::vector<double> weights(static_cast<size_t>(*size * wanted), 0);
  for (int64_t cell = 0; cell < wanted; ++cell) {
    const int64_t first = cell * *size / wanted, end = ((cell + 1) * *size + wanted - 1) / wanted;
    for (int64_t element = first; element < end; ++element)
      weights[static_cast<size_t>(element * wanted + cell)] = 1 / static_cast<double>(end - first);
  }
  const Value matrix = constant(n.graph(), narrow<double>(x.dtype(), {*size, wanted}, weights));
  Ints last = axes_between(0, x.rank());
  std::swap(last[static_cast<size_t>(axis)], last.back());
  return transpose(matmul(transpose(x, last), matrix), last);
}

// Equal windows, where the sizes divide.
std::optional<Ints> even_windows(Value x, const Ints& wanted) {
  Ints kernel;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto size = x.dim(static_cast<int64_t>(i) + 2).constant();
    if (!size || wanted[i] < 1 || *size % wanted[i] != 0)
      return std::nullopt;
    kernel.push_back(*size / wanted[i]);
  }
  return kernel;
}

std::vector<Value> pool_evenly(const NodeView& n, std::string_view op, Value x, const Ints& kernel) {
  return n.make(op, {{"x", x}},
                {{"kernel", kernel},
                 {"strides", kernel},
                 {"dilations", Ints(kernel.size(), 1)},
                 {"pads", Ints(2 * kernel.size(), 0)}});
}

std::vector<Value> convert_adaptive_avg_pool(const NodeView& n) {
  return with_batch(n, [&](Value x) -> std::vector<Value> {
    const Ints wanted = wanted_sizes(n, x);
    if (wanted == Ints(wanted.size(), 1))
      return {reduce_mean(x, axes_between(2, x.rank()), Keep::Dims)};
    if (const auto kernel = even_windows(x, wanted))
      return {*kernel == Ints(kernel->size(), 1) ? x : pool_evenly(n, "average_pool", x, *kernel).front()};
    for (size_t i = 0; i < wanted.size(); ++i)
      x = averaged_along(n, x, static_cast<int64_t>(i) + 2, wanted[i]);
    return {x};
  });
}

// Where the cells differ in size, they are filled up with the elements that they begin with: along one axis,
// the element that stands at each place of each cell.
struct Cells {
  Ints elements;
  int64_t longest = 0;

  Cells(int64_t size, int64_t wanted) {
    const auto first = [&](int64_t cell) { return cell * size / wanted; };
    const auto length = [&](int64_t cell) { return ((cell + 1) * size + wanted - 1) / wanted - first(cell); };
    for (int64_t cell = 0; cell < wanted; ++cell)
      longest = std::max(longest, length(cell));
    for (int64_t cell = 0; cell < wanted; ++cell)
      for (int64_t place = 0; place < longest; ++place)
        elements.push_back(first(cell) + (place < length(cell) ? place : 0));
  }
};

// The greatest element of each cell and where in its plane it stands.
std::vector<Value> pool_unevenly(const NodeView& n, Value x, const Ints& wanted) {
  const auto rank = static_cast<int64_t>(wanted.size());
  Ints split = {0, 0}, order = {0, 1}, joined = {0, 0};  // 0 keeps a size
  Value positions = constant(n.graph(), Tensor::scalar(int64_t{0}));
  for (int64_t i = 0; i < rank; ++i) {
    const auto size = x.dim(i + 2).constant();
    const int64_t cells = wanted[static_cast<size_t>(i)];
    if (!size || *size == 0 || cells == 0)
      throw unsupported("{}: {} to [{}]", n.op(), x.type(), fmt::join(wanted, ","));
    const Cells along(*size, cells);
    x = gather(x, int_vector(n.graph(), along.elements), i + 2);
    Ints shape(static_cast<size_t>(2 * rank), 1);
    shape[static_cast<size_t>(i)] = cells;
    shape[static_cast<size_t>(rank + i)] = along.longest;
    positions =
        positions * static_cast<double>(*size) + reshape(int_vector(n.graph(), along.elements), shape);
    split.insert(split.end(), {cells, along.longest});
    joined.push_back(cells);
  }
  for (int64_t first : {2, 3})
    for (int64_t i = 0; i < rank; ++i)
      order.push_back(first + 2 * i);
  joined.push_back(-1);
  const Value cells = reshape_copying(transpose(reshape_copying(x, split), order), joined);
  Ints flat(wanted.begin(), wanted.end());
  flat.push_back(-1);
  const Value chosen = arg_max(cells, -1, Keep::Dims);
  const Value at = gather_elements(broadcast_to(reshape(positions, flat), shape_of(cells)), chosen, rank + 2);
  return {reduce_max(cells, {rank + 2}), squeeze(at, {rank + 2})};
}

std::vector<Value> convert_adaptive_max_pool(const NodeView& n) {
  return with_batch(n, [&](Value x) -> std::vector<Value> {
    const Ints wanted = wanted_sizes(n, x);
    const auto kernel = even_windows(x, wanted);
    if (!kernel && wanted == Ints(wanted.size(), 1))
      return {reduce_max(x, axes_between(2, x.rank()), Keep::Dims), Value()};
    if (!kernel)
      return pool_unevenly(n, x, wanted);
    const std::vector<Value> both = pool_evenly(n, "max_pool", x, *kernel);
    return {both[0], in_plane(n, x, both[1])};
  });
}

// --- gradients

// Each element of dy belongs to the element of x whose place in its plane the indices say.
std::vector<Value> convert_max_pool_backward(const NodeView& n) {
  const Value x = n.tensor("self"), dy = n.tensor("grad_output");
  for (std::string_view name : {"kernel_size", "stride", "padding", "dilation", "ceil_mode", "output_size"})
    n.ignore(name);
  const int64_t planes = n.rank_of(x) - spatial_rank(n);
  Ints flat(static_cast<size_t>(planes), 0);
  flat.push_back(-1);
  const Value zeros = reshape_copying(zeros_like(x), flat);
  const Value sums = scatter_elements(zeros, reshape_copying(n.tensor("indices"), flat),
                                      reshape_copying(dy, flat), planes, "add");
  return {reshape(sums, shape_of(x))};
}

}  // namespace

const Conversions& pool_conversions() {
  static const Conversions conversions = {
      {"_adaptive_avg_pool2d", convert_adaptive_avg_pool},
      {"_adaptive_avg_pool2d_backward", gradient_of(convert_adaptive_avg_pool)},
      {"_adaptive_avg_pool3d", convert_adaptive_avg_pool},
      {"_adaptive_avg_pool3d_backward", gradient_of(convert_adaptive_avg_pool)},
      {"adaptive_avg_pool1d", convert_adaptive_avg_pool},
      {"adaptive_avg_pool2d", convert_adaptive_avg_pool},
      {"adaptive_avg_pool3d", convert_adaptive_avg_pool},
      {"adaptive_max_pool1d", convert_adaptive_max_pool},
      {"adaptive_max_pool2d", convert_adaptive_max_pool},
      {"adaptive_max_pool2d_backward", convert_max_pool_backward},
      {"adaptive_max_pool3d", convert_adaptive_max_pool},
      {"adaptive_max_pool3d_backward", convert_max_pool_backward},
      {"avg_pool1d", convert_avg_pool},
      {"avg_pool2d", convert_avg_pool},
      {"avg_pool2d_backward", gradient_of(convert_avg_pool)},
      {"avg_pool3d", convert_avg_pool},
      {"avg_pool3d_backward", gradient_of(convert_avg_pool)},
      {"max_pool1d", convert_max_pool},
      {"max_pool1d_with_indices", convert_max_pool_with_indices},
      {"max_pool2d", convert_max_pool},
      {"max_pool2d_with_indices", convert_max_pool_with_indices},
      {"max_pool2d_with_indices_backward", convert_max_pool_backward},
      {"fractional_max_pool2d_backward", convert_max_pool_backward},
      {"max_pool3d", convert_max_pool},
      {"max_pool3d_with_indices", convert_max_pool_with_indices},
      {"max_pool3d_with_indices_backward", convert_max_pool_backward},
      {"fractional_max_pool3d_backward", convert_max_pool_backward},
  };
  return conversions;
}

}  // namespace tenon::torch
