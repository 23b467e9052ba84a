#include "ops/cumulative.h"

#include <cmath>
#include <functional>
#include <limits>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lanes.h"
#include "ops/lower.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.shape().ranked() && !n.is_late("axis"))
    checked_axis(n.op().name, n.attr("axis"), x.rank());
  return {x.type()};
}

template <auto combine, int neutral>
Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const Lanes lanes(x.extents(), checked_axis(c.node().op().name, c.attr("axis"), x.rank()));
  const bool exclusive = c.attr("exclusive"), reverse = c.attr("reverse");
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    std::vector<T> values = widen<T>(x);
    lanes.for_each([&](size_t start) {
      T total = neutral;
      for (int64_t i = 0; i < lanes.length; ++i) {
        const int64_t at = reverse ? lanes.length - 1 - i : i;
        T& value = values[start + static_cast<size_t>(at * lanes.stride)];
        const T before = total;
        total = combine(total, value);
        value = exclusive ? before : total;
      }
    });
    return {narrow<T>(x.dtype(), x.extents(), values)};
  });
}

// Along the axis one after the other; floats in f64, as the errors add up.
template <int neutral>
void lower(LowerContext& c) {
  const Value x = c.node().in("x");
  const auto axis = static_cast<size_t>(checked_axis(c.node().op().name, c.node().attr("axis"), x.rank()));
  const bool exclusive = c.node().attr("exclusive"), reverse = c.node().attr("reverse");
  const DType dtype = is_float(x.dtype()) ? DType::F64 : x.dtype();
  std::vector<loops::Axis> others = LowerContext::axes(x.shape().dims(), "i");
  Index at = loops::variables_of(others);
  const std::vector<loops::Axis> along = {others[axis]};
  others.erase(others.begin() + static_cast<int64_t>(axis));
  if (reverse)
    at[axis] = Scalar::index(x.dim(static_cast<int64_t>(axis)) - 1) - at[axis];
  const loops::Place total{"total", {}}, result{LowerContext::result_name(0), at};
  const Scalar value = Scalar::cast(dtype, c.stored(x, at));
  const loops::Assign add{.places = {total}, .combine = neutral == 0 ? "+" : "*", .values = {value}};
  const loops::Assign write{.places = {result},
                            .combine = "",
                            .values = {Scalar::cast(x.dtype(), Scalar::load("total", dtype, {}))}};
  std::vector<loops::Statement> step = {add, write};
  if (exclusive)
    std::swap(step[0], step[1]);
  std::vector<loops::Statement> lane = LowerContext::around(along, loops::Mark::Serial, std::move(step));
  lane.insert(lane.begin(),
              {loops::Local{{.name = "total", .dtype = dtype}},
               loops::Assign{.places = {total}, .combine = "", .values = {loops::constant(dtype, neutral)}}});
  c.nest(LowerContext::around(others, loops::Mark::Parallel, std::move(lane)));
}

// --- gradients ---

std::vector<Operand> grad_sum(const GradContext& n) {
  Attributes attributes = n.node().attributes();
  attributes.insert_or_assign("reverse", !n.attr("reverse").as<bool>());
  std::vector<Operand> operands = {{"x", n.dy()}};
  if (const Value axis = n.node().late("axis"))
    operands.emplace_back("axis", axis);
  return {{"x", n.graph().create("cumulative_sum", operands, attributes)->result()}};
}

// x_j is a factor of every product from its own on. With P_j the product of those before it and S_j the sum
// of dy_k times the product of those between j and k, dx_j = P_j · S_j; and S comes from a scan against the
// direction of the product:
//   S_j = dy_j + x_{j+1} · S_{j+1}, or, where an element leaves itself out, S_j = dy_{j+1} + x_{j+1} ·
//   S_{j+1}
std::vector<Operand> grad_prod(const GradContext& n) {
  if (n.node().is_late("axis"))
    throw n.decline("the axis must be known before the graph runs");
  const Value x = n.in("x");
  const int64_t axis = checked_axis("cumulative_prod", n.attr("axis"), x.rank());
  const bool exclusive = n.attr("exclusive"), reverse = n.attr("reverse");
  const Value start =
      squeeze(slice(zeros_like(pad(x, int_vector(n.graph(), {0, 1}), {axis})), axis, 0, 1), {axis});
  const Type slice_type = start.type();
  auto body =
      trace_region(n.graph(), "body", {{slice_type, "carried"}, {slice_type, "x"}, {slice_type, "dy"}},
                   [&](Value carried, Value factor, Value dy) -> std::vector<Value> {
                     const Value sum = dy + (exclusive ? factor * carried : carried);
                     return {exclusive ? sum : factor * sum, exclusive ? carried : sum};
                   });
  const int64_t backwards = reverse ? 0 : 1;
  const Value sums = scan(n.graph(),
                          {.carried = {start},
                           .scanned = {x, n.dy()},
                           .axes = {axis, axis},
                           .reversed = {backwards, backwards},
                           .output_axes = {axis},
                           .output_reversed = {backwards}},
                          std::move(body))
                         .back();
  const Value before =
      n.graph()
          .create("cumulative_prod", {{"x", x}}, {{"axis", axis}, {"exclusive", true}, {"reverse", reverse}})
          ->result();
  return {{"x", before * sums}};
}

// --- the greatest or least so far ---

Types infer_extreme(const Node& n) {
  const Type x = infer(n).front();
  return {x, Type::tensor(DType::I64, x.as_tensor().shape)};
}

// Of equal ones the last counts; NaN is preferred to every number, and stays.
template <bool greatest>
Data eval_extreme(const Call& c) {
  const Tensor& x = c.in("x");
  const Lanes lanes(x.extents(), checked_axis(c.node().op().name, c.attr("axis"), x.rank()));
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    std::vector<T> values = widen<T>(x);
    std::vector<int64_t> places(values.size());
    lanes.for_each([&](size_t start) {
      int64_t place = 0;
      for (int64_t i = 0; i < lanes.length; ++i) {
        const size_t at = start + static_cast<size_t>(i * lanes.stride);
        const T best = values[start + static_cast<size_t>(place * lanes.stride)], value = values[at];
        if (value != value || (best == best && (greatest ? value >= best : value <= best)))
          place = i;
        places[at] = place;
      }
      for (int64_t i = lanes.length - 1; i >= 0; --i) {
        const size_t at = start + static_cast<size_t>(i * lanes.stride);
        values[at] = values[start + static_cast<size_t>(places[at] * lanes.stride)];
      }
    });
    return {narrow<T>(x.dtype(), x.extents(), values), narrow<int64_t>(DType::I64, x.extents(), places)};
  });
}

// One element after the other along the axis: `steps` says what happens at each, `start` before the first.
void lower_along(LowerContext& c, const std::function<std::vector<loops::Statement>(const Index& at)>& steps,
                 const std::vector<loops::Statement>& start) {
  const Value x = c.node().in("x");
  const auto axis = static_cast<size_t>(checked_axis(c.node().op().name, c.node().attr("axis"), x.rank()));
  std::vector<loops::Axis> others = LowerContext::axes(x.shape().dims(), "i");
  Index at = loops::variables_of(others);
  const std::vector<loops::Axis> along = {others[axis]};
  others.erase(others.begin() + static_cast<int64_t>(axis));
  if (const AttributeDecl* reverse = c.node().op().find_attribute("reverse");
      reverse != nullptr && c.node().attr("reverse"))
    at[axis] = Scalar::index(x.dim(static_cast<int64_t>(axis)) - 1) - at[axis];
  std::vector<loops::Statement> lane = LowerContext::around(along, loops::Mark::Serial, steps(at));
  lane.insert(lane.begin(), start.begin(), start.end());
  c.nest(LowerContext::around(others, loops::Mark::Parallel, std::move(lane)));
}

loops::Assign assign(const std::string& name, const Index& at, const Scalar& value) {
  return {.places = {loops::Place{name, at}}, .combine = "", .values = {value}};
}

template <bool greatest>
void lower_extreme(LowerContext& c) {
  const Value x = c.node().in("x");
  const auto axis = static_cast<size_t>(checked_axis(c.node().op().name, c.node().attr("axis"), x.rank()));
  const DType dtype = wide_dtype(x.dtype());
  const Scalar best = Scalar::load("best", dtype, {}), place = Scalar::load("place", DType::I64, {});
  const auto steps = [&](const Index& at) -> std::vector<loops::Statement> {
    const Scalar value = c.in(x, at);
    const Scalar not_worse = greatest ? less_equal(best, value) : less_equal(value, best);
    const Scalar first = less(place, Scalar::zero(DType::I64));
    const Scalar taken =
        is_float(dtype) ? first || is_nan(value) || (!is_nan(best) && not_worse) : first || not_worse;
    return {assign("place", {}, select(taken, at[axis], place)),
            assign("best", {}, select(equal(place, at[axis]), value, best)),
            assign(LowerContext::result_name(0), at, Scalar::cast(x.dtype(), best)),
            assign(LowerContext::result_name(1), at, place)};
  };
  lower_along(
      c, steps,
      {loops::Local{{.name = "best", .dtype = dtype}}, loops::Local{{.name = "place", .dtype = DType::I64}},
       assign("best", {}, Scalar::zero(dtype)), assign("place", {}, loops::constant(DType::I64, -1))});
}

std::vector<Operand> grad_extreme(const GradContext& n) {
  return {{"x", scatter_elements(zeros_like(n.in("x")), n.out(1), n.dy(), n.attr("axis"), "add")}};
}

// --- the logarithm of the sum of exponentials so far ---

double log_sum_exp_of(double a, double b) {
  const double greater_one = greater_of(a, b);
  return std::isinf(greater_one)
             ? greater_one
             : greater_one + std::log(std::exp(a - greater_one) + std::exp(b - greater_one));
}

Data eval_log_sum_exp(const Call& c) {
  const Tensor& x = c.in("x");
  const Lanes lanes(x.extents(), checked_axis(c.node().op().name, c.attr("axis"), x.rank()));
  const bool reverse = c.attr("reverse");
  std::vector<double> values = widen<double>(x);
  lanes.for_each([&](size_t start) {
    double total = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < lanes.length; ++i) {
      const int64_t at = reverse ? lanes.length - 1 - i : i;
      double& value = values[start + static_cast<size_t>(at * lanes.stride)];
      total = value = log_sum_exp_of(total, value);
    }
  });
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

void lower_log_sum_exp(LowerContext& c) {
  const Value x = c.node().in("x");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Scalar total = Scalar::load("total", DType::F64, {}),
               greatest = Scalar::load("greatest", DType::F64, {}),
               value = Scalar::load("value", DType::F64, {});
  const auto steps = [&](const Index& at) -> std::vector<loops::Statement> {
    const Scalar sum = greatest + log(exp(total - greatest) + exp(value - greatest));
    const Scalar is_infinite =
        equal(Scalar::apply(loops::Function::Absolute, {greatest}), loops::constant(DType::F64, infinity));
    return {assign("value", {}, Scalar::cast(DType::F64, c.in(x, at))),
            assign("greatest", {}, Scalar::apply(loops::Function::Maximum, {total, value})),
            assign("total", {}, select(is_infinite, greatest, sum)),
            assign(LowerContext::result_name(0), at, Scalar::cast(x.dtype(), total))};
  };
  lower_along(c, steps,
              {loops::Local{{.name = "total", .dtype = DType::F64}},
               loops::Local{{.name = "greatest", .dtype = DType::F64}},
               loops::Local{{.name = "value", .dtype = DType::F64}},
               assign("total", {}, loops::constant(DType::F64, -infinity)),
               assign("greatest", {}, loops::constant(DType::F64, -infinity)),
               assign("value", {}, loops::constant(DType::F64, -infinity))});
}

// dx_j = exp(x_j) · Σ_k dy_k · exp(-y_k) over all k from j on, with the sums of those dy above and below 0
// each as a logarithm, since exp(-y) may overflow.
std::vector<Operand> grad_log_sum_exp(const GradContext& n) {
  const Value x = n.in("x"), y = n.out(), dy = n.dy();
  const Value zero = scalar(n.graph(), x.dtype(), 0),
              none = scalar(n.graph(), x.dtype(), -std::numeric_limits<double>::infinity());
  const auto part = [&](Value size) {
    const Value counts = greater(size, zero);
    const Value term = where(counts, log(where(counts, size, ones_like(size))) - y, none);
    const Value sums = n.graph()
                           .create("cumulative_log_sum_exp", {{"x", term}},
                                   {{"axis", n.attr("axis")}, {"reverse", !n.attr("reverse").as<bool>()}})
                           ->result();
    return exp(sums + x);
  };
  return {{"x", part(dy) - part(-dy)}};
}

OpDef running_extreme(std::string_view name, std::string_view doc, EvalFunction eval, LowerFunction lower) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = {{"axis", AttributeKind::Int, "the axis along which it runs"}},
          .results = {{"y", "T"}, {"indices", "i64"}},
          .types = {{"T", Numbers}},
          .infer = infer_extreme,
          .eval = eval,
          .lower = lower,
          .grad = grad_extreme};
}

OpDef cumulation(std::string_view name, std::string_view doc, EvalFunction eval, LowerFunction lower,
                 GradFunction grad) {
  return {
      .name = name,
      .doc = doc,
      .operands = {{"x", "T"}},
      .attributes = {{"axis", AttributeKind::Int, "the axis along which it runs", std::nullopt,
                      Binding::Late},
                     {"exclusive", AttributeKind::Bool, "whether an element leaves itself out", false},
                     {"reverse", AttributeKind::Bool, "whether it runs from the end to the front", false}},
      .results = {{"y", "T"}},
      .types = {{"T", Numbers}},
      .traits = {.takes_unranked = true},
      .infer = infer,
      .eval = eval,
      .lower = lower,
      .grad = grad};
}

Value apply(std::string_view op, Value x, int64_t axis) {
  return x.graph().create(op, {{"x", x}}, {{"axis", axis}})->result();
}

}  // namespace

const Family& cumulative_ops() {
  static const Family ops = {
      cumulation("cumulative_sum", "the sum of the elements up to each one", eval<sum_of, 0>, lower<0>,
                 grad_sum),
      cumulation("cumulative_prod", "the product of the elements up to each one", eval<product_of, 1>,
                 lower<1>, grad_prod),
      running_extreme("cumulative_max",
                      "the greatest of the elements up to each one, and where it stands; NaN is greatest",
                      eval_extreme<true>, lower_extreme<true>),
      running_extreme("cumulative_min",
                      "the least of the elements up to each one, and where it stands; NaN is least",
                      eval_extreme<false>, lower_extreme<false>),
      {.name = "cumulative_log_sum_exp",
       .doc = "log(sum(exp(x))) of the elements up to each one",
       .operands = {{"x", "T"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis along which it runs"},
                      {"reverse", AttributeKind::Bool, "whether it runs from the end to the front", false}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer,
       .eval = eval_log_sum_exp,
       .lower = lower_log_sum_exp,
       .grad = grad_log_sum_exp},
  };
  return ops;
}

Value cumulative_sum(Value x, int64_t axis) { return apply("cumulative_sum", x, axis); }
Value cumulative_prod(Value x, int64_t axis) { return apply("cumulative_prod", x, axis); }

}  // namespace tenon
