#include "views/hlo_window.h"

#include <algorithm>
#include <cmath>

#include "views/axes.h"
#include "views/hlo_reduce.h"
#include "views/hlo_types.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

bool is_all(const Ints& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t element) { return element == wanted; });
}

// One element for each dimension of x.
struct Window {
  explicit Window(int64_t rank) : size(static_cast<size_t>(rank), 1), stride(size), dilate(size) {
    before.resize(size.size());
    after.resize(size.size());
  }

  // {size=1x3 stride=1x2 pad=0_0x1_1 rhs_dilate=1x2}, without what is as usual.
  std::string text() const {
    std::string text = fmt::format("{{size={}", fmt::join(size, "x"));
    if (!is_all(stride, 1))
      text += fmt::format(" stride={}", fmt::join(stride, "x"));
    if (is_padded()) {
      std::vector<std::string> pads;
      for (size_t i = 0; i < size.size(); ++i)
        pads.push_back(fmt::format("{}_{}", before[i], after[i]));
      text += fmt::format(" pad={}", fmt::join(pads, "x"));
    }
    if (!is_all(dilate, 1))
      text += fmt::format(" rhs_dilate={}", fmt::join(dilate, "x"));
    return text + "}";
  }

  bool is_padded() const { return !is_all(before, 0) || !is_all(after, 0); }

  Ints size, stride, dilate, before, after;
};

std::string reduce_window(HloComputation& out, const std::string& x, const Type& result, const Window& window,
                          std::string_view instruction, double start) {
  const DType dtype = result.as_tensor().dtype;
  return out.emit("reduce-window", result,
                  fmt::format("reduce-window({}, {}), window={}, to_apply={}", x, hlo_start(dtype, start),
                              window.text(), out.module().scalar_computation(instruction, dtype)));
}

// The window of a pool; nothing when its padding depends on the sizes of x.
std::optional<Window> pool_window(const Node& node) {
  if (node.attr("padding").as<std::string>() != "explicit" || node.attr("round_up"))
    return std::nullopt;
  const Ints &kernel = node.attr("kernel"), &strides = node.attr("strides"),
             &dilations = node.attr("dilations"), &pads = node.attr("pads");
  Window window(node.in("x").rank());
  for (size_t i = 0; i < kernel.size(); ++i) {
    window.size[i + 2] = kernel[i];
    window.stride[i + 2] = strides[i];
    window.dilate[i + 2] = dilations[i];
    window.before[i + 2] = pads[i];
    window.after[i + 2] = pads[kernel.size() + i];
  }
  return window;
}

bool write_max_pool(HloComputation& out, const Node& node) {
  const auto window = pool_window(node);
  if (!window || node.result(1).use_count() != 0)
    return false;
  const Value y = node.result();
  out.define(y, reduce_window(out, out.use(node.in("x")), y.type(), *window, "maximum", -HUGE_VAL));
  return true;
}

// The sum divided by the number of elements a window sees, which is a sum too where padding does not count.
bool write_average_pool(HloComputation& out, const Node& node) {
  const auto window = pool_window(node);
  if (!window)
    return false;
  const Value x = node.in("x");
  const Type& type = node.result().type();
  const std::string sum = reduce_window(out, out.use(x), type, *window, "add", 0);
  double cells = 1;
  for (const int64_t size : window->size)
    cells *= static_cast<double>(size);
  const std::string count = window->is_padded() && !node.attr("count_padding")
                                ? reduce_window(out, hlo_splat(1, x.type()), type, *window, "add", 0)
                                : hlo_splat(cells, type);
  out.define(node.result(), out.emit("divide", type, fmt::format("divide({}, {})", sum, count)));
  return true;
}

// A window as long as the axis, which must be known, that ends at each element in turn; one less where the
// element leaves itself out.
bool write_cumulative_sum(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const int64_t axis = from_the_front(node.attr("axis").as<int64_t>(), x.rank());
  if (!x.dim(axis).is_constant() || x.dim(axis) == Dim(0))
    return false;
  const int64_t size = *x.dim(axis).constant(), own = node.attr("exclusive") ? 0 : 1;
  const auto place = static_cast<size_t>(axis);
  Window window(x.rank());
  window.size[place] = size;
  window.before[place] = size - own;
  window.after[place] = own - 1;
  if (node.attr("reverse"))
    std::swap(window.before[place], window.after[place]);
  out.define(node.result(), reduce_window(out, out.use(x), x.type(), window, "add", 0));
  return true;
}

}  // namespace

bool write_hlo_window(HloComputation& out, const Node& node) {
  if (node.is("max_pool"))
    return write_max_pool(out, node);
  if (node.is("average_pool"))
    return write_average_pool(out, node);
  return node.is("cumulative_sum") && write_cumulative_sum(out, node);
}

}  // namespace tenon
