#include "ops/reduce.h"

#include <algorithm>
#include <limits>

#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const bool keep = n.attr("keep_dims");
  if (!x.shape().ranked() || (n.is_late("axes") && !keep))
    return {Type::tensor(x.dtype(), Shape::unranked())};
  if (n.is_late("axes"))
    return {Type::tensor(x.dtype(), Shape::unknown(x.rank()))};
  const Axes axes = checked_axes(n.op().name, n.attr("axes"), x.rank());
  std::vector<Dim> dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    if (!reduced || keep)
      dims.push_back(reduced ? Dim(1) : x.dim(i));
  }
  return {Type::tensor(x.dtype(), dims)};
}

// What a reduction starts from, and what it gives for no elements at all.
template <class T>
T least(DType dtype) {
  if constexpr (std::is_same_v<T, double>)
    return -std::numeric_limits<double>::infinity();
  else if constexpr (std::is_same_v<T, int64_t>)
    return std::numeric_limits<int64_t>::min() >> (64 - info(dtype).bits);
  else
    return 0;
}
template <class T>
T greatest(DType dtype) {
  if constexpr (std::is_same_v<T, double>)
    return std::numeric_limits<double>::infinity();
  else if (dtype == DType::Bool)
    return 1;
  else
    return std::numeric_limits<T>::max() >> (64 - info(dtype).bits);
}

// Every element of x is combined into the result element it falls on, in row-major order, starting from
// `initial`.
template <class T, class Combine, class Finish>
Data reduce(const Call& c, T initial, Combine&& combine, Finish&& finish) {
  const Tensor& x = c.in("x");
  const Axes axes = checked_axes(c.node().op().name, c.attr("axes"), x.rank());
  Extents kept = x.extents(), extents;
  int64_t reduced_count = 1;
  for (int64_t axis : axes) {
    reduced_count *= x.extent(axis);
    kept[static_cast<size_t>(axis)] = 1;
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    if (c.attr("keep_dims") || !std::binary_search(axes.begin(), axes.end(), i))
      extents.push_back(kept[static_cast<size_t>(i)]);
  const std::vector<T> values = widen<T>(x);
  std::vector<T> result(static_cast<size_t>(element_count(kept)), initial);
  auto value = values.begin();
  // Reading the result with broadcast strides sends every element to its place.
  walk<1>(x.extents(), {broadcast_strides(kept, x.extents())}, [&](const std::array<int64_t, 1>& at) {
    T& into = result[static_cast<size_t>(at[0])];
    into = combine(into, *value++);
  });
  for (T& each : result)
    each = finish(each, reduced_count);
  return {narrow<T>(x.dtype(), extents, result)};
}

// Sums of integers wrap around.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a * b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

constexpr auto as_it_is = [](auto value, int64_t) { return value; };

Data eval_sum(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) { return reduce<T>(c, 0, plus<T>, as_it_is); });
}

Data eval_prod(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) { return reduce<T>(c, 1, times<T>, as_it_is); });
}

Data eval_mean(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) {
    return reduce<T>(c, 0, plus<T>, [](T sum, int64_t count) -> T {
      if constexpr (std::is_same_v<T, double>)
        return sum / static_cast<double>(count);  // 0 / 0 is NaN, the mean of nothing
      else
        return count == 0 ? 0 : sum / static_cast<T>(count);
    });
  });
}

// NaN, once met, stays.
Data eval_max(const Call& c) {
  const DType dtype = c.in("x").dtype();
  return with_wide(dtype, [&]<class T>(T) {
    return reduce<T>(
        c, least<T>(dtype), [](T a, T b) { return a != a || !(a < b || b != b) ? a : b; }, as_it_is);
  });
}

Data eval_min(const Call& c) {
  const DType dtype = c.in("x").dtype();
  return with_wide(dtype, [&]<class T>(T) {
    return reduce<T>(
        c, greatest<T>(dtype), [](T a, T b) { return a != a || !(b < a || b != b) ? a : b; }, as_it_is);
  });
}

std::optional<std::vector<Dim>> prod_content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  if (!dims || n.in("x").rank() > 1)
    return std::nullopt;
  Dim product = 1;
  for (const Dim& dim : *dims)
    product = product * dim;
  return std::vector<Dim>{product};
}

OpDef reduction(std::string_view name, std::string_view doc, DTypeSet allowed, EvalFunction eval,
                ContentFunction content = nullptr) {
  return {
      .name = name,
      .doc = doc,
      .operands = {{"x", "T"}},
      .attributes = {{"axes", AttributeKind::Ints, "the axes that are reduced", std::nullopt, Binding::Late},
                     {"keep_dims", AttributeKind::Bool, "whether reduced dimensions stay, with size 1",
                      false}},
      .results = {{"y", "T"}},
      .types = {{"T", allowed}},
      .traits = {.takes_unranked = true},
      .infer = infer,
      .content = content,
      .eval = eval};
}

Value apply(std::string_view op, Value x, const Axes& axes, Keep keep) {
  return x.graph().create(op, {{"x", x}}, {{"axes", axes}, {"keep_dims", keep == Keep::Dims}})->result();
}

}  // namespace

const Family& reduce_ops() {
  static const Family ops = {
      reduction("reduce_sum", "the sum along axes; 0 for none", Numbers, eval_sum),
      reduction("reduce_mean", "the mean along axes; NaN for none", Numbers, eval_mean),
      reduction("reduce_prod", "the product along axes; 1 for none", Numbers, eval_prod, prod_content),
      reduction("reduce_max", "the greatest along axes; the least value of the dtype for none, NaN if any is",
                NumbersAndBool, eval_max),
      reduction("reduce_min", "the least along axes; the greatest value of the dtype for none, NaN if any is",
                NumbersAndBool, eval_min),
  };
  return ops;
}

Value reduce_sum(Value x, const Axes& axes, Keep keep) { return apply("reduce_sum", x, axes, keep); }
Value reduce_mean(Value x, const Axes& axes, Keep keep) { return apply("reduce_mean", x, axes, keep); }
Value reduce_prod(Value x, const Axes& axes, Keep keep) { return apply("reduce_prod", x, axes, keep); }
Value reduce_max(Value x, const Axes& axes, Keep keep) { return apply("reduce_max", x, axes, keep); }
Value reduce_min(Value x, const Axes& axes, Keep keep) { return apply("reduce_min", x, axes, keep); }

}  // namespace tenon
