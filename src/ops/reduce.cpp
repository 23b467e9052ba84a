#include "ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"

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

// How the elements of x fall on those of the result.
struct Reduction {
  explicit Reduction(const Call& c) : x(c.in("x")) {
    const Axes axes = checked_axes(c.node().op().name, c.attr("axes"), x.rank());
    Extents kept = x.extents(), reduced;
    for (int64_t axis : axes) {
      reduced.push_back(x.extent(axis));
      kept[static_cast<size_t>(axis)] = 1;
    }
    reduced_count = element_count(reduced);
    for (int64_t i = 0; i < x.rank(); ++i)
      if (c.attr("keep_dims") || !std::binary_search(axes.begin(), axes.end(), i))
        extents.push_back(kept[static_cast<size_t>(i)]);
    // Reading the result with broadcast strides sends every element to its place.
    strides = broadcast_strides(kept, x.extents());
  }

  // Calls f(index of an element of x, index of the result's element it falls on), in row-major order of x.
  template <class F>
  void for_each(F&& f) const {
    size_t from = 0;
    walk<1>(x.extents(), {strides},
            [&](const std::array<int64_t, 1>& to) { f(from++, static_cast<size_t>(to[0])); });
  }

  template <class T>
  std::vector<T> make_result(T initial) const {
    return zeros<T>(extents, initial);
  }

  const Tensor& x;
  Extents extents, strides;
  int64_t reduced_count = 0;
};

// Every element of x is combined into the result element it falls on, starting from `initial`.
template <class T, class Combine, class Finish>
Data reduce(const Call& c, T initial, Combine&& combine, Finish&& finish) {
  const Reduction reduction(c);
  const std::vector<T> values = widen<T>(reduction.x);
  std::vector<T> result = reduction.make_result(initial);
  reduction.for_each([&](size_t from, size_t to) { result[to] = combine(result[to], values[from]); });
  for (T& each : result)
    each = finish(each, reduction.reduced_count);
  return {narrow<T>(reduction.x.dtype(), reduction.extents, result)};
}

constexpr auto as_it_is = [](auto value, int64_t) { return value; };

Data eval_sum(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) { return reduce<T>(c, 0, sum_of, as_it_is); });
}

Data eval_prod(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) { return reduce<T>(c, 1, product_of, as_it_is); });
}

Data eval_mean(const Call& c) {
  return with_wide(c.in("x").dtype(), [&]<class T>(T) {
    return reduce<T>(c, 0, sum_of, [](T sum, int64_t count) -> T {
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
  return with_wide(dtype, [&]<class T>(T) { return reduce<T>(c, least<T>(dtype), greater_of, as_it_is); });
}

Data eval_min(const Call& c) {
  const DType dtype = c.in("x").dtype();
  return with_wide(dtype, [&]<class T>(T) { return reduce<T>(c, greatest<T>(dtype), lesser_of, as_it_is); });
}

// Shifted by the greatest element, so that exp does not overflow. An infinite one is no shift: exp(x) is inf
// or 0 by itself there.
Data eval_log_sum_exp(const Call& c) {
  const Reduction reduction(c);
  const std::vector<double> values = widen<double>(reduction.x);
  std::vector<double> shifts = reduction.make_result(-std::numeric_limits<double>::infinity());
  reduction.for_each([&](size_t from, size_t to) { shifts[to] = std::fmax(shifts[to], values[from]); });
  for (double& shift : shifts)
    shift = std::isinf(shift) ? 0 : shift;
  std::vector<double> result = reduction.make_result(0.0);
  reduction.for_each([&](size_t from, size_t to) { result[to] += std::exp(values[from] - shifts[to]); });
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = shifts[i] + std::log(result[i]);
  return {narrow<double>(reduction.x.dtype(), reduction.extents, result)};
}

template <auto combine>
std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  if (!dims || dims->empty() || n.in("x").rank() > 1 || n.is_late("axes"))
    return std::nullopt;
  if (n.attr("axes").as<Attribute::Ints>().empty())
    return dims;
  Dim result = dims->front();
  for (size_t i = 1; i < dims->size(); ++i)
    result = combine(result, (*dims)[i]);
  return std::vector<Dim>{result};
}

// --- lowering ---

// The elements of x that fall on an element of the result, combined: a formula to define the result by.
class LoweredReduction {
 public:
  explicit LoweredReduction(LowerContext& c)
      : c_(c), x_(c.node().in("x")), kept_(c.node().attr("keep_dims")) {
    axes_ = checked_axes(c.node().op().name, c.node().attr("axes"), x_.rank());
    for (int64_t axis : axes_)
      reduced_.push_back(x_.dim(axis));
  }

  DType dtype() const { return wide_dtype(x_.dtype()); }
  Scalar count(DType dtype) const {
    return Scalar::cast(dtype, Scalar::index(Shape(reduced_).element_count()));
  }

  // Of value(element, place of the result).
  LowerContext::Formula operator()(std::string_view combine, const Scalar& initial,
                                   const std::function<Scalar(const Scalar&, const Index&)>& value) const {
    return c_.reduce(
        c_.node().result().shape().dims(), reduced_, combine, initial,
        [&](const Index& at, const Index& over) { return value(c_.in(x_, whole(at, over)), at); });
  }
  LowerContext::Formula operator()(std::string_view combine, const Scalar& initial) const {
    return (*this)(combine, initial, [](const Scalar& element, const Index&) { return element; });
  }

 private:
  Index whole(const Index& at, const Index& over) const {
    Index index;
    size_t kept = 0, reduced = 0;
    for (int64_t i = 0; i < x_.rank(); ++i)
      if (std::binary_search(axes_.begin(), axes_.end(), i)) {
        index.push_back(over[reduced++]);
        kept += kept_ ? 1 : 0;
      } else {
        index.push_back(at[kept++]);
      }
    return index;
  }

  LowerContext& c_;
  Value x_;
  bool kept_;
  Axes axes_;
  std::vector<Dim> reduced_;
};

void lower_sum(LowerContext& c) {
  const LoweredReduction reduction(c);
  c.define(reduction("+", Scalar::zero(reduction.dtype())));
}

void lower_prod(LowerContext& c) {
  const LoweredReduction reduction(c);
  c.define(reduction("*", loops::constant(reduction.dtype(), 1)));
}

// Integers are summed without wrapping around, and divide towards zero; the mean of none is 0.
void lower_mean(LowerContext& c) {
  const LoweredReduction reduction(c);
  const DType own = reduction.dtype();
  const DType dtype = is_float(own) ? own : is_signed(own) ? DType::I64 : DType::U64;
  const Scalar count = reduction.count(dtype), zero = Scalar::zero(dtype);
  const auto sum =
      reduction("+", zero, [&](const Scalar& element, const Index&) { return Scalar::cast(dtype, element); });
  c.define([&](const Index& at) {
    return is_float(dtype) ? sum(at) / count : select(equal(count, zero), zero, sum(at) / count);
  });
}

template <auto limit>
Scalar limit_of(DType dtype) {
  return with_wide(dtype,
                   [&]<class T>(T) { return Scalar::number(dtype, limit.template operator()<T>(dtype)); });
}
constexpr auto lowest = []<class T>(DType dtype) { return least<T>(dtype); };
constexpr auto highest = []<class T>(DType dtype) { return greatest<T>(dtype); };

void lower_max(LowerContext& c) {
  const LoweredReduction reduction(c);
  c.define(reduction(reduction.dtype() == DType::Bool ? "or" : "max", limit_of<lowest>(reduction.dtype())));
}

void lower_min(LowerContext& c) {
  const LoweredReduction reduction(c);
  c.define(reduction(reduction.dtype() == DType::Bool ? "and" : "min", limit_of<highest>(reduction.dtype())));
}

void lower_log_sum_exp(LowerContext& c) {
  const LoweredReduction reduction(c);
  if (!is_float(reduction.dtype()))
    return;
  const Scalar zero = Scalar::zero(reduction.dtype());
  const auto greatest = reduction("max", loops::constant(reduction.dtype(), -INFINITY));
  const auto shift = [&](const Index& at) {  // where it is finite, and no NaN
    return select(equal(greatest(at) - greatest(at), zero), greatest(at), zero);
  };
  const auto sum =
      reduction("+", zero, [&](const Scalar& element, const Index& at) { return exp(element - shift(at)); });
  c.define([&](const Index& at) { return shift(at) + log(sum(at)); });
}

// --- gradients ---

// The same reduction of another value.
Value reduce_like(const GradContext& n, std::string_view op, Value x) {
  if (const Value axes = n.node().late("axes"))
    return n.graph().create(op, {{"x", x}, {"axes", axes}}, {{"keep_dims", true}})->result();
  return n.graph().create(op, {{"x", x}}, {{"axes", n.attr("axes")}, {"keep_dims", true}})->result();
}

// The result or its gradient with the dimensions that were reduced, with size 1.
Value with_dims(const GradContext& n, Value y) {
  if (n.attr("keep_dims"))
    return y;
  if (const Value axes = n.node().late("axes"))
    return n.graph().create("unsqueeze", {{"x", y}, {"axes", axes}})->result();
  return unsqueeze(y, checked_axes(n.node().op().name, n.attr("axes"), n.in("x").rank()));
}

Value spread(const GradContext& n, Value dy) { return broadcast_to(with_dims(n, dy), shape_of(n.in("x"))); }

std::vector<Operand> grad_sum(const GradContext& n) { return {{"x", spread(n, n.dy())}}; }

std::vector<Operand> grad_mean(const GradContext& n) {
  const Value x = n.in("x");
  const Value axes = n.node().late("axes");
  const Value count =
      axes ? cast(reduce_prod(gather(shape_of(x), axes, 0), {0}), x.dtype()) : count_along(x, n.attr("axes"));
  return {{"x", spread(n, n.dy() / count)}};
}

// For each element the product of the others. By division, but for zeros: beside one zero, it is the product
// of what is not zero; beside two, it is 0.
std::vector<Operand> grad_prod(const GradContext& n) {
  const Value x = n.in("x"), nothing = scalar(n.graph(), x.dtype(), 0), one = nothing + 1.0;
  const Value is_zero = equal(x, nothing), factors = where(is_zero, one, x);
  const Value zeros = reduce_like(n, "reduce_sum", cast(is_zero, x.dtype()));
  const Value product = reduce_like(n, "reduce_prod", factors);
  const Value others = where(equal(zeros - cast(is_zero, x.dtype()), nothing), product / factors, nothing);
  return {{"x", with_dims(n, n.dy()) * others}};
}

// Equal ones share it evenly.
std::vector<Operand> grad_extreme(const GradContext& n) {
  const Value x = n.in("x");
  const Value chosen = cast(equal(x, with_dims(n, n.out())), x.dtype());
  return {{"x", with_dims(n, n.dy()) * chosen / reduce_like(n, "reduce_sum", chosen)}};
}

std::vector<Operand> grad_log_sum_exp(const GradContext& n) {
  return {{"x", with_dims(n, n.dy()) * exp(n.in("x") - with_dims(n, n.out()))}};
}

OpDef reduction(std::string_view name, std::string_view doc, DTypeSet allowed, EvalFunction eval,
                LowerFunction lower, GradFunction grad, ContentFunction content = nullptr) {
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
      .eval = eval,
      .lower = lower,
      .grad = grad};
}

Value apply(std::string_view op, Value x, const Axes& axes, Keep keep) {
  return x.graph().create(op, {{"x", x}}, {{"axes", axes}, {"keep_dims", keep == Keep::Dims}})->result();
}

}  // namespace

const Family& reduce_ops() {
  static const Family ops = {
      reduction("reduce_sum", "the sum along axes; 0 for none", Numbers, eval_sum, lower_sum, grad_sum,
                content<dim_sum>),
      reduction("reduce_mean", "the mean along axes; NaN for none", Numbers, eval_mean, lower_mean,
                grad_mean),
      reduction("reduce_prod", "the product along axes; 1 for none", Numbers, eval_prod, lower_prod,
                grad_prod, content<dim_product>),
      reduction("reduce_max", "the greatest along axes; the least value of the dtype for none, NaN if any is",
                NumbersAndBool, eval_max, lower_max, grad_extreme, content<dim_maximum>),
      reduction("reduce_min", "the least along axes; the greatest value of the dtype for none, NaN if any is",
                NumbersAndBool, eval_min, lower_min, grad_extreme, content<dim_minimum>),
      reduction("reduce_log_sum_exp", "log(sum(exp(x))) along axes; -inf for none", Numbers, eval_log_sum_exp,
                lower_log_sum_exp, grad_log_sum_exp),
  };
  return ops;
}

Value reduce_sum(Value x, const Axes& axes, Keep keep) { return apply("reduce_sum", x, axes, keep); }
Value reduce_mean(Value x, const Axes& axes, Keep keep) { return apply("reduce_mean", x, axes, keep); }
Value reduce_prod(Value x, const Axes& axes, Keep keep) { return apply("reduce_prod", x, axes, keep); }
Value reduce_max(Value x, const Axes& axes, Keep keep) { return apply("reduce_max", x, axes, keep); }
Value reduce_min(Value x, const Axes& axes, Keep keep) { return apply("reduce_min", x, axes, keep); }
Value reduce_log_sum_exp(Value x, const Axes& axes, Keep keep) {
  return apply("reduce_log_sum_exp", x, axes, keep);
}

}  // namespace tenon
