#include "ops/cumulative.h"

#include "ops/arithmetic.h"
#include "ops/elements.h"
#include "ops/lanes.h"
#include "ops/shapes.h"

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

OpDef cumulation(std::string_view name, std::string_view doc, EvalFunction eval) {
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
      .eval = eval};
}

Value apply(std::string_view op, Value x, int64_t axis) {
  return x.graph().create(op, {{"x", x}}, {{"axis", axis}})->result();
}

}  // namespace

const Family& cumulative_ops() {
  static const Family ops = {
      cumulation("cumulative_sum", "the sum of the elements up to each one", eval<sum_of, 0>),
      cumulation("cumulative_prod", "the product of the elements up to each one", eval<product_of, 1>),
  };
  return ops;
}

Value cumulative_sum(Value x, int64_t axis) { return apply("cumulative_sum", x, axis); }
Value cumulative_prod(Value x, int64_t axis) { return apply("cumulative_prod", x, axis); }

}  // namespace tenon
