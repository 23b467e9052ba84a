#include "ops/cumulative.h"

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
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/trace.h"

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
  };
  return ops;
}

Value cumulative_sum(Value x, int64_t axis) { return apply("cumulative_sum", x, axis); }
Value cumulative_prod(Value x, int64_t axis) { return apply("cumulative_prod", x, axis); }

}  // namespace tenon
