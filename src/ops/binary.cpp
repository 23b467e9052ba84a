#include "ops/binary.h"

#include <cmath>
#include <functional>
#include <utility>

#include "ops/arithmetic.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"
#include "ops/words.h"

namespace tenon {
namespace {

Types infer_arithmetic(const Node& n) {
  return {Type::tensor(n.in("a").dtype(), broadcast_operands(n, n.operands()))};
}

Types infer_comparison(const Node& n) {
  return {Type::tensor(DType::Bool, broadcast_operands(n, n.operands()))};
}

bool shifts_left(const Node& n) { return named<bool>(n, "direction", {{"left", true}, {"right", false}}); }

Types infer_shift(const Node& n) {
  shifts_left(n);
  return infer_arithmetic(n);
}

// formula: T × T → T for numbers of one dtype.
template <auto formula>
Data eval_arithmetic(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  return with_wide(a.dtype(), [&]<class T>(T) -> Data {
    return {zip<T>(c.node().op().name, a, b, a.dtype(), [](T x, T y) -> T { return formula(x, y); })};
  });
}

template <auto formula>
Data eval_comparison(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  if (a.dtype() == DType::String) {
    const Extents extents = broadcast_extents(c.node().op().name, a.extents(), b.extents());
    std::vector<uint64_t> y;
    walk<2>(extents, {broadcast_strides(a.extents(), extents), broadcast_strides(b.extents(), extents)},
            [&](const std::array<int64_t, 2>& at) {
              y.push_back(
                  formula(a.strings()[static_cast<size_t>(at[0])], b.strings()[static_cast<size_t>(at[1])]));
            });
    return {narrow<uint64_t>(DType::Bool, extents, y)};
  }
  return with_wide(a.dtype(), [&]<class T>(T) -> Data {
    return {
        zip<T>(c.node().op().name, a, b, DType::Bool, [](T x, T y) -> uint64_t { return formula(x, y); })};
  });
}

// --- the formulas ---

// Integers divide towards zero. The one quotient that overflows, MIN / -1, wraps.
constexpr auto quotient = [](auto x, auto y) {
  using T = decltype(x);
  if constexpr (is_real<T>) {
    return x / y;
  } else {
    if (y == 0)
      throw user_error("div: an integer is divided by zero");
    if constexpr (std::is_signed_v<T>)
      if (y == -1)
        return difference_of(T{0}, x);
    return static_cast<T>(x / y);
  }
};

// The remainder with the sign of x (fmod), or with the sign of y.
template <bool sign_of_dividend>
constexpr auto remainder_of = [](auto x, auto y) {
  using T = decltype(x);
  if constexpr (is_real<T>) {
    const double r = std::fmod(x, y);
    if (sign_of_dividend || std::isnan(r))
      return r;
    if (r == 0)
      return std::copysign(0.0, y);
    return (r < 0) != (y < 0) ? r + y : r;
  } else {
    if (y == 0)
      throw user_error("mod: an integer is divided by zero");
    if constexpr (std::is_signed_v<T>) {
      if (y == -1)
        return T{0};
      const T r = x % y;
      return !sign_of_dividend && r != 0 && (r < 0) != (y < 0) ? r + y : r;
    } else {
      return static_cast<T>(x % y);
    }
  }
};

Data eval_mod(const Call& c) {
  return c.attr("sign_of_dividend") ? eval_arithmetic<remainder_of<true>>(c)
                                    : eval_arithmetic<remainder_of<false>>(c);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0)  // truncates towards zero, as 1 / base^-exponent does
    return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return static_cast<int64_t>(result);
}

Data eval_pow(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  if (is_integer(a.dtype()) && is_integer(b.dtype()))
    return {zip<int64_t>("pow", a, b, a.dtype(), integer_power)};
  return {zip<double>("pow", a, b, a.dtype(), [](double x, double y) { return std::pow(x, y); })};
}

// A shift by the width of the type, or more, leaves nothing (or the sign); a negative amount counts as its
// unsigned value, so as too much.
Data eval_shift(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  const bool left = shifts_left(c.node());
  const auto width = static_cast<uint64_t>(info(a.dtype()).bits);
  return with_wide(a.dtype(), [&]<class T>(T) -> Data {
    if constexpr (is_real<T>)
      CHECK(false, "shift of floats");
    else
      return {zip<T>("shift", a, b, a.dtype(), [&](T x, T y) -> T {
        const auto amount = static_cast<uint64_t>(y);
        if (amount >= width)
          return !left && x < 0 ? static_cast<T>(-1) : T{0};
        return left ? static_cast<T>(static_cast<uint64_t>(x) << amount) : static_cast<T>(x >> amount);
      })};
  });
}

// Euclid's algorithm: of MIN there is no absolute value, so the sign goes last, and wraps.
constexpr auto greatest_divisor = [](auto x, auto y) {
  using T = decltype(x);
  if constexpr (is_real<T>) {
    return x;  // never reached: the declaration takes integers only
  } else {
    const auto size = [](T value) {
      return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    };
    uint64_t a = size(x), b = size(y);
    while (b != 0)
      a = std::exchange(b, a % b);
    return static_cast<T>(a);
  }
};

template <auto formula>
Data eval_bits(const Call& c) {
  return {zip<uint64_t>(c.node().op().name, c.in("a"), c.in("b"), c.in("a").dtype(), formula)};
}

// --- shape arithmetic ---

template <auto formula>
std::optional<std::vector<Dim>> content(const Node& n) {
  return map_known_dims(n, [](std::span<const Dim> x) -> Dim { return formula(x[0], x[1]); });
}

bool is_at_least(const Dim& x, int64_t bound) {
  const auto least = x.lower_bound();
  return least && *least >= bound;
}
// Truncation and floor agree, and so do the two signs of a remainder, where neither side can be negative.
constexpr auto dim_quotient = [](const Dim& x, const Dim& y) {
  return is_at_least(x, 0) && is_at_least(y, 1) ? floor_div(x, y) : Dim();
};
constexpr auto dim_remainder = [](const Dim& x, const Dim& y) {
  return is_at_least(x, 0) && is_at_least(y, 1) ? mod(x, y) : Dim();
};
// An unsigned difference below zero wraps around.
std::optional<std::vector<Dim>> content_of_difference(const Node& n) {
  return map_known_dims(n, [wraps = is_unsigned(n.result().dtype())](std::span<const Dim> x) {
    const Dim y = x[0] - x[1];
    return wraps && !is_at_least(y, 0) ? Dim() : y;
  });
}
// A quotient of floats is only known where it is a whole number.
std::optional<std::vector<Dim>> content_of_quotient(const Node& n) {
  if (is_integer(n.result().dtype()))
    return content<dim_quotient>(n);
  return map_known_dims(n, [](std::span<const Dim> x) {
    return dim_remainder(x[0], x[1]) == Dim(0) ? dim_quotient(x[0], x[1]) : Dim();
  });
}

// A comparison is 1 or 0 where it holds for every value of the symbols or for none (n >= 0 is never -1).
constexpr auto dim_less = [](const Dim& x, const Dim& y) {
  return is_at_least(y - x, 1) ? Dim(1) : is_at_least(x - y, 0) ? Dim(0) : Dim();
};
constexpr auto dim_less_equal = [](const Dim& x, const Dim& y) { return Dim(1) - dim_less(y, x); };
constexpr auto dim_greater = [](const Dim& x, const Dim& y) { return dim_less(y, x); };
constexpr auto dim_greater_equal = [](const Dim& x, const Dim& y) { return dim_less_equal(y, x); };
constexpr auto dim_equal = [](const Dim& x, const Dim& y) {
  const Dim gap = x - y;
  return gap == Dim(0) ? Dim(1) : is_at_least(gap, 1) || is_at_least(Dim(0) - gap, 1) ? Dim(0) : Dim();
};

// --- lowering ---

template <loops::Function function>
void lower_function(LowerContext& c) {
  c.define([&](const Index& at) {
    return Scalar::apply(function, {c.broadcast("a", at), c.broadcast("b", at)});
  });
}

void lower_mod(LowerContext& c) {
  const bool sign_of_dividend = c.node().attr("sign_of_dividend");
  c.define([&](const Index& at) {
    const Scalar a = c.broadcast("a", at), b = c.broadcast("b", at);
    const Scalar rest = Scalar::apply(loops::Function::Remainder, {a, b});
    if (sign_of_dividend || is_unsigned(a.dtype()))
      return rest;
    const Scalar zero = Scalar::zero(a.dtype());
    const Scalar across = Scalar::apply(loops::Function::Xor, {less(rest, zero), less(b, zero)});
    // A remainder of 0 has the sign of b, where zeros have signs.
    const Scalar none = is_float(a.dtype()) ? select(less(b, zero), -zero, zero) : zero;
    return select(equal(rest, zero), none, select(across, rest + b, rest));
  });
}

void lower_shift(LowerContext& c) {
  const auto function = shifts_left(c.node()) ? loops::Function::ShiftLeft : loops::Function::ShiftRight;
  c.define([&](const Index& at) {
    return Scalar::apply(function, {c.broadcast("a", at), c.broadcast("b", at)});
  });
}

// Powers of integers are computed by squaring, in as many steps as the exponent has bits: by eval.
void lower_pow(LowerContext& c) {
  const DType a = c.node().in("a").dtype(), b = c.node().in("b").dtype();
  if (is_integer(a) && is_integer(b))
    return;
  const DType dtype = is_integer(a) || a == DType::F64 || b == DType::F64 ? DType::F64 : DType::F32;
  c.define([&](const Index& at) {
    return power(Scalar::cast(dtype, c.broadcast("a", at)), Scalar::cast(dtype, c.broadcast("b", at)));
  });
}

// --- gradients ---

Value number(double value, Value like) { return scalar(like.graph(), like.dtype(), value); }

std::vector<Operand> grad_add(const GradContext& n) { return {{"a", n.dy()}, {"b", n.dy()}}; }
std::vector<Operand> grad_sub(const GradContext& n) { return {{"a", n.dy()}, {"b", -n.dy()}}; }
std::vector<Operand> grad_mul(const GradContext& n) {
  return {{"a", n.dy() * n.in("b")}, {"b", n.dy() * n.in("a")}};
}
std::vector<Operand> grad_div(const GradContext& n) {
  const Value da = n.dy() / n.in("b");
  return {{"a", da}, {"b", -da * n.out()}};
}

// Equal ones get half each; NaN gets all, as each of two NaNs does.
std::vector<Operand> share_gradient(Value dy, Value ties, Value a_loses, Value b_loses) {
  const Value share = where(ties, dy / 2.0, dy);
  const Value nothing = number(0, dy);
  return {{"a", where(a_loses, nothing, share)}, {"b", where(b_loses, nothing, share)}};
}
std::vector<Operand> grad_max(const GradContext& n) {
  const Value a = n.in("a"), b = n.in("b");
  return share_gradient(n.dy(), equal(a, b), less(a, b), less(b, a));
}
std::vector<Operand> grad_min(const GradContext& n) {
  const Value a = n.in("a"), b = n.in("b");
  return share_gradient(n.dy(), equal(a, b), less(b, a), less(a, b));
}

// y = a - b · q, with an integer q that does not change nearby.
std::vector<Operand> grad_mod(const GradContext& n) {
  const Value a = n.in("a"), b = n.in("b");
  return {{"a", n.dy()}, {"b", -n.dy() * round((a - n.out()) / b)}};
}

// Where b is 0, y is 1 whatever a is; where a is 0, y does not change with a positive b.
std::vector<Operand> grad_pow(const GradContext& n) {
  const Value a = n.in("a"), b = n.in("b"), dy = n.dy();
  const Value zero_b = number(0, b), nothing = number(0, dy);
  const Value da = where(equal(b, zero_b), nothing, dy * cast(b, a.dtype()) * pow(a, b - 1.0));
  if (!n.wants("b"))
    return {{"a", da}};
  const Value flat = logical_and(equal(a, number(0, a)), greater_equal(b, zero_b));
  return {{"a", da}, {"b", cast(where(flat, nothing, dy * n.out() * log(a)), b.dtype())}};
}

// --- the declarations ---

OpDef arithmetic(std::string_view name, std::string_view doc, DTypeSet allowed, bool commutative,
                 EvalFunction eval, LowerFunction lower, ContentFunction content = nullptr,
                 GradFunction grad = nullptr) {
  return {.name = name,
          .doc = doc,
          .operands = {{"a", "T"}, {"b", "T"}},
          .results = {{"y", "T"}},
          .types = {{"T", allowed}},
          .traits = {.elementwise = true, .commutative = commutative},
          .infer = infer_arithmetic,
          .content = content,
          .eval = eval,
          .lower = lower,
          .grad = grad};
}

OpDef comparison(std::string_view name, std::string_view doc, DTypeSet allowed, bool commutative,
                 EvalFunction eval, LowerFunction lower, ContentFunction content = nullptr) {
  OpDef op = arithmetic(name, doc, allowed, commutative, eval, lower, content);
  op.results = {{"y", "bool"}};
  op.infer = infer_comparison;
  return op;
}

Family make_ops() {
  constexpr DTypeSet booleans = {DType::Bool};
  Family ops = {
      arithmetic("add", "a + b", Numbers, true, eval_arithmetic<sum_of>, lower_function<loops::Function::Add>,
                 content<dim_sum>, grad_add),
      arithmetic("sub", "a - b", Numbers, false, eval_arithmetic<difference_of>,
                 lower_function<loops::Function::Subtract>, content_of_difference, grad_sub),
      arithmetic("mul", "a · b", Numbers, true, eval_arithmetic<product_of>,
                 lower_function<loops::Function::Multiply>, content<dim_product>, grad_mul),
      arithmetic("div", "a / b; integers truncate towards zero", Numbers, false, eval_arithmetic<quotient>,
                 lower_function<loops::Function::Divide>, content_of_quotient, grad_div),
      arithmetic("max", "the greater of a and b; NaN if either is", Numbers, true,
                 eval_arithmetic<greater_of>, lower_function<loops::Function::Maximum>, content<dim_maximum>,
                 grad_max),
      arithmetic("min", "the lesser of a and b; NaN if either is", Numbers, true, eval_arithmetic<lesser_of>,
                 lower_function<loops::Function::Minimum>, content<dim_minimum>, grad_min),
      comparison("equal", "a = b", AnyDType, true, eval_comparison<std::equal_to<>{}>,
                 lower_function<loops::Function::Equal>, content<dim_equal>),
      comparison("less", "a < b", Numbers, false, eval_comparison<std::less<>{}>,
                 lower_function<loops::Function::Less>, content<dim_less>),
      comparison("less_equal", "a ≤ b", Numbers, false, eval_comparison<std::less_equal<>{}>,
                 lower_function<loops::Function::LessEqual>, content<dim_less_equal>),
      comparison("greater", "a > b", Numbers, false, eval_comparison<std::greater<>{}>,
                 lower_binary<[](const Scalar& a, const Scalar& b) { return less(b, a); }>,
                 content<dim_greater>),
      comparison("greater_equal", "a ≥ b", Numbers, false, eval_comparison<std::greater_equal<>{}>,
                 lower_binary<[](const Scalar& a, const Scalar& b) { return less_equal(b, a); }>,
                 content<dim_greater_equal>),
      comparison("and", "a and b", booleans, true, eval_bits<std::bit_and<uint64_t>{}>,
                 lower_function<loops::Function::And>, content<dim_product>),
      comparison("or", "a or b", booleans, true, eval_bits<std::bit_or<uint64_t>{}>,
                 lower_function<loops::Function::Or>, content<dim_maximum>),
      comparison("xor", "either a or b", booleans, true, eval_bits<std::bit_xor<uint64_t>{}>,
                 lower_function<loops::Function::Xor>),
      arithmetic("bit_and", "bitwise and", Integers, true, eval_bits<std::bit_and<uint64_t>{}>,
                 lower_function<loops::Function::And>),
      arithmetic("bit_or", "bitwise or", Integers, true, eval_bits<std::bit_or<uint64_t>{}>,
                 lower_function<loops::Function::Or>),
      arithmetic("bit_xor", "bitwise exclusive or", Integers, true, eval_bits<std::bit_xor<uint64_t>{}>,
                 lower_function<loops::Function::Xor>),
  };
  // In as many steps as the numbers ask for: by eval.
  ops.push_back(arithmetic("gcd", "the greatest number that divides a and b; 0 for none", Integers, true,
                           eval_arithmetic<greatest_divisor>, nullptr));
  OpDef mod = arithmetic("mod", "the remainder of a / b", Numbers, false, eval_mod, lower_mod,
                         content<dim_remainder>, grad_mod);
  mod.attributes = {
      {"sign_of_dividend", AttributeKind::Bool, "the result has the sign of a; else that of b", false}};
  ops.push_back(mod);
  OpDef shift =
      arithmetic("shift", "the bits of a moved by b places", Integers, false, eval_shift, lower_shift);
  shift.attributes = {{"direction", AttributeKind::String, "left or right (which keeps the sign)"}};
  shift.infer = infer_shift;
  ops.push_back(shift);
  OpDef power = arithmetic("pow", "a to the power b", Numbers, false, eval_pow, lower_pow, nullptr, grad_pow);
  power.operands = {{"a", "T"}, {"b", "U"}};
  power.types = {{"T", Numbers}, {"U", Numbers}};
  ops.push_back(power);
  return ops;
}

Value apply(std::string_view op, Value a, Value b) {
  return a.graph().create(op, {{"a", a}, {"b", b}})->result();
}

}  // namespace

const Family& binary_ops() {
  static const Family ops = make_ops();
  return ops;
}

Value operator+(Value a, Value b) { return apply("add", a, b); }
Value operator-(Value a, Value b) { return apply("sub", a, b); }
Value operator*(Value a, Value b) { return apply("mul", a, b); }
Value operator/(Value a, Value b) { return apply("div", a, b); }
Value operator+(Value a, double b) { return a + number(b, a); }
Value operator-(Value a, double b) { return a - number(b, a); }
Value operator*(Value a, double b) { return a * number(b, a); }
Value operator/(Value a, double b) { return a / number(b, a); }
Value operator+(double a, Value b) { return number(a, b) + b; }
Value operator-(double a, Value b) { return number(a, b) - b; }
Value operator*(double a, Value b) { return number(a, b) * b; }
Value operator/(double a, Value b) { return number(a, b) / b; }
Value pow(Value base, Value exponent) { return apply("pow", base, exponent); }
Value pow(Value base, double exponent) { return apply("pow", base, number(exponent, base)); }
Value mod(Value a, Value b) { return apply("mod", a, b); }
Value maximum(Value a, Value b) { return apply("max", a, b); }
Value minimum(Value a, Value b) { return apply("min", a, b); }
Value equal(Value a, Value b) { return apply("equal", a, b); }
Value less(Value a, Value b) { return apply("less", a, b); }
Value less_equal(Value a, Value b) { return apply("less_equal", a, b); }
Value greater(Value a, Value b) { return apply("greater", a, b); }
Value greater_equal(Value a, Value b) { return apply("greater_equal", a, b); }
Value logical_and(Value a, Value b) { return apply("and", a, b); }
Value logical_or(Value a, Value b) { return apply("or", a, b); }

}  // namespace tenon
