#include "ops/unary.h"

#include <cmath>
#include <numbers>

#include "ops/activation_formulas.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// A unary op on the dtypes of `allowed`, with a result of the same type.
OpDef unary(std::string_view name, std::string_view doc, DTypeSet allowed, EvalFunction eval,
            LowerFunction lower, GradFunction grad = nullptr, ContentFunction content = nullptr) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .results = {{"y", "T"}},
          .types = {{"T", allowed}},
          .traits = {.elementwise = true, .takes_unranked = true},
          .infer = same_as_x,
          .content = content,
          .eval = eval,
          .lower = lower,
          .grad = grad};
}

// A unary op that asks something of each number.
OpDef question(std::string_view name, std::string_view doc, std::vector<AttributeDecl> attributes,
               EvalFunction eval, LowerFunction lower) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = std::move(attributes),
          .results = {{"y", "bool"}},
          .types = {{"T", Floats}},
          .traits = {.elementwise = true, .takes_unranked = true},
          .infer = [](const Node& n) -> Types { return {Type::tensor(DType::Bool, n.in("x").shape())}; },
          .eval = eval,
          .lower = lower};
}

// Negation and absolute value of the least integer wrap around, as they do in every fixed-width type.
constexpr auto negated = [](auto x) {
  if constexpr (is_real<decltype(x)>)
    return -x;
  else
    return difference_of(decltype(x){0}, x);
};

constexpr auto absolute = [](auto x) {
  if constexpr (is_real<decltype(x)>)
    return std::fabs(x);
  else
    return x < 0 ? negated(x) : x;
};

constexpr auto sign_of = [](auto x) {
  using T = decltype(x);
  if constexpr (is_real<T>)
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;  // keeps NaN and the sign of zero
  else
    return static_cast<T>(x == 0 ? 0 : std::is_signed_v<T> && x < 0 ? -1 : 1);
};

// max(x, 0), and NaN stays NaN.
constexpr auto rectified = [](auto x) { return x < 0 ? decltype(x){0} : x; };

// What is known of a result whose operand is a dimension expression.
template <auto formula>
std::optional<std::vector<Dim>> content(const Node& n) {
  return map_known_dims(n, [](std::span<const Dim> x) -> Dim { return formula(x[0]); });
}

constexpr auto dim_absolute = [](const Dim& x) { return max(x, Dim(0) - x); };
constexpr auto dim_rectified = [](const Dim& x) { return max(x, 0); };
constexpr auto dim_whole = [](const Dim& x) { return x; };
// An unsigned number wraps around, unless it is 0.
std::optional<std::vector<Dim>> content_of_negation(const Node& n) {
  return map_known_dims(n, [wraps = is_unsigned(n.result().dtype())](std::span<const Dim> x) {
    return wraps && x[0] != Dim(0) ? Dim() : Dim(0) - x[0];
  });
}
constexpr auto dim_not = [](const Dim& x) { return Dim(1) - x; };

Data eval_is_nan(const Call& c) {
  const std::vector<double> x = widen<double>(c.in("x"));
  std::vector<uint64_t> y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = std::isnan(x[i]);
  return {narrow<uint64_t>(DType::Bool, c.in("x").extents(), y)};
}

Data eval_is_inf(const Call& c) {
  const bool positive = c.attr("positive"), negative = c.attr("negative");
  const std::vector<double> x = widen<double>(c.in("x"));
  std::vector<uint64_t> y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = std::isinf(x[i]) && (x[i] > 0 ? positive : negative);
  return {narrow<uint64_t>(DType::Bool, c.in("x").extents(), y)};
}

// --- lowering ---

template <loops::Function function>
void lower_function(LowerContext& c) {
  c.define([&](const Index& at) { return Scalar::apply(function, {c.in("x", at)}); });
}

constexpr auto lowered_sign = [](const Scalar& x) {
  const Scalar zero = Scalar::zero(x.dtype()), one = loops::constant(x.dtype(), 1);
  if (is_unsigned(x.dtype()))
    return select(equal(x, zero), zero, one);
  return select(less(zero, x), one, select(less(x, zero), loops::constant(x.dtype(), -1), x));
};

constexpr auto lowered_relu = [](const Scalar& x) {
  const Scalar zero = Scalar::zero(x.dtype());
  return select(less(x, zero), zero, x);
};

constexpr auto lowered_sigmoid = [](const Scalar& x) { return 1.0 / (exp(-x) + 1.0); };

void lower_is_nan(LowerContext& c) {
  c.define([&](const Index& at) { return is_nan(c.in("x", at)); });
}

void lower_is_inf(LowerContext& c) {
  const bool positive = c.node().attr("positive"), negative = c.node().attr("negative");
  c.define([&](const Index& at) {
    const Scalar x = c.in("x", at);
    const Scalar none = Scalar::number(DType::Bool, uint64_t{0});
    const auto is = [&](double infinity) { return equal(x, loops::constant(x.dtype(), infinity)); };
    return (positive ? is(INFINITY) : none) || (negative ? is(-INFINITY) : none);
  });
}

Value apply(std::string_view op, Value x) { return x.graph().create(op, {{"x", x}})->result(); }

// --- gradients ---

// At 0 it is 0.
std::vector<Operand> grad_relu(const GradContext& n) {
  const Value y = n.out();
  return {{"x", keep_where(greater(y, scalar(n.graph(), y.dtype(), 0)), n.dy())}};
}

std::vector<Operand> grad_neg(const GradContext& n) { return {{"x", -n.dy()}}; }
std::vector<Operand> grad_log(const GradContext& n) { return {{"x", n.dy() / n.in("x")}}; }
std::vector<Operand> grad_sqrt(const GradContext& n) { return {{"x", n.dy() / (2.0 * n.out())}}; }

Value gaussian(Value x, Value) { return 2 / std::sqrt(std::numbers::pi) * exp(-(x * x)); }

}  // namespace

const Family& unary_ops() {
  static const Family ops = {
      unary("abs", "|x|", Numbers, map<absolute>, lower_function<loops::Function::Absolute>,
            chain<[](Value x, Value) { return sign(x); }>, content<dim_absolute>),
      unary("neg", "-x", Numbers, map<negated>, lower_function<loops::Function::Negate>, grad_neg,
            content_of_negation),
      unary("sign", "-1, 0 or 1", Numbers, map<sign_of>, lower_unary<lowered_sign>, no_gradient),
      unary("relu", "max(x, 0)", Numbers, map<rectified>, lower_unary<lowered_relu>, grad_relu,
            content<dim_rectified>),
      unary("exp", "e to the power x", Floats, map_floats<[](double x) { return std::exp(x); }>,
            lower_function<loops::Function::Exp>, chain<[](Value, Value y) { return y; }>),
      unary("log", "natural logarithm", Floats, map_floats<[](double x) { return std::log(x); }>,
            lower_function<loops::Function::Log>, grad_log),
      unary("sqrt", "square root", Floats, map_floats<[](double x) { return std::sqrt(x); }>,
            lower_function<loops::Function::Sqrt>, grad_sqrt),
      unary("reciprocal", "1 / x", Floats, map_floats<[](double x) { return 1.0 / x; }>,
            lower_unary<[](const Scalar& x) { return 1.0 / x; }>,
            chain<[](Value, Value y) { return -(y * y); }>),
      unary("sin", "sine", Floats, map_floats<[](double x) { return std::sin(x); }>,
            lower_function<loops::Function::Sin>, chain<[](Value x, Value) { return cos(x); }>),
      unary("cos", "cosine", Floats, map_floats<[](double x) { return std::cos(x); }>,
            lower_function<loops::Function::Cos>, chain<[](Value x, Value) { return -sin(x); }>),
      unary("tan", "tangent", Floats, map_floats<[](double x) { return std::tan(x); }>,
            lower_function<loops::Function::Tan>, chain<[](Value, Value y) { return 1.0 + y * y; }>),
      unary("asin", "inverse sine", Floats, map_floats<[](double x) { return std::asin(x); }>,
            lower_function<loops::Function::Asin>,
            chain<[](Value x, Value) { return 1.0 / sqrt(1.0 - x * x); }>),
      unary("acos", "inverse cosine", Floats, map_floats<[](double x) { return std::acos(x); }>,
            lower_function<loops::Function::Acos>,
            chain<[](Value x, Value) { return -1.0 / sqrt(1.0 - x * x); }>),
      unary("atan", "inverse tangent", Floats, map_floats<[](double x) { return std::atan(x); }>,
            lower_function<loops::Function::Atan>, chain<[](Value x, Value) { return 1.0 / (1.0 + x * x); }>),
      unary("sinh", "hyperbolic sine", Floats, map_floats<[](double x) { return std::sinh(x); }>,
            lower_function<loops::Function::Sinh>, chain<[](Value x, Value) { return apply("cosh", x); }>),
      unary("cosh", "hyperbolic cosine", Floats, map_floats<[](double x) { return std::cosh(x); }>,
            lower_function<loops::Function::Cosh>, chain<[](Value x, Value) { return apply("sinh", x); }>),
      unary("tanh", "hyperbolic tangent", Floats, map_floats<[](double x) { return std::tanh(x); }>,
            lower_function<loops::Function::Tanh>, chain<[](Value, Value y) { return 1.0 - y * y; }>),
      unary("asinh", "inverse hyperbolic sine", Floats, map_floats<[](double x) { return std::asinh(x); }>,
            lower_function<loops::Function::Asinh>,
            chain<[](Value x, Value) { return 1.0 / sqrt(x * x + 1.0); }>),
      unary("acosh", "inverse hyperbolic cosine", Floats, map_floats<[](double x) { return std::acosh(x); }>,
            lower_function<loops::Function::Acosh>,
            chain<[](Value x, Value) { return 1.0 / sqrt(x * x - 1.0); }>),
      unary("atanh", "inverse hyperbolic tangent", Floats, map_floats<[](double x) { return std::atanh(x); }>,
            lower_function<loops::Function::Atanh>,
            chain<[](Value x, Value) { return 1.0 / (1.0 - x * x); }>),
      unary("erf", "the error function", Floats, map_floats<[](double x) { return std::erf(x); }>,
            lower_function<loops::Function::Erf>, chain<gaussian>),
      unary("sigmoid", "1 / (1 + exp(-x))", Floats, map_floats<sigmoid_of>, lower_unary<lowered_sigmoid>,
            chain<[](Value, Value y) { return y * (1.0 - y); }>),
      unary("floor", "rounds down", Floats, map_floats<[](double x) { return std::floor(x); }>,
            lower_function<loops::Function::Floor>, no_gradient, content<dim_whole>),
      unary("ceil", "rounds up", Floats, map_floats<[](double x) { return std::ceil(x); }>,
            lower_function<loops::Function::Ceil>, no_gradient, content<dim_whole>),
      unary("round", "rounds to the nearest integer, halves to the even one", Floats,
            map_floats<[](double x) { return std::nearbyint(x); }>, lower_function<loops::Function::Round>,
            no_gradient),
      unary("not", "logical negation", {DType::Bool}, map<[](auto x) { return x == 0; }>,
            lower_function<loops::Function::Not>, nullptr, content<dim_not>),
      unary("bit_not", "every bit inverted", Integers, map<[](auto x) {
              if constexpr (is_real<decltype(x)>)
                return x;  // never reached: the declaration takes integers only
              else
                return static_cast<decltype(x)>(~x);
            }>,
            lower_function<loops::Function::Not>),
      question("is_nan", "is it not a number?", {}, eval_is_nan, lower_is_nan),
      question("is_inf", "is it infinite?",
               {{"positive", AttributeKind::Bool, "whether +inf counts", true},
                {"negative", AttributeKind::Bool, "whether -inf counts", true}},
               eval_is_inf, lower_is_inf),
  };
  return ops;
}

Value operator-(Value x) { return apply("neg", x); }
Value abs(Value x) { return apply("abs", x); }
Value sign(Value x) { return apply("sign", x); }
Value exp(Value x) { return apply("exp", x); }
Value log(Value x) { return apply("log", x); }
Value sqrt(Value x) { return apply("sqrt", x); }
Value reciprocal(Value x) { return apply("reciprocal", x); }
Value sin(Value x) { return apply("sin", x); }
Value cos(Value x) { return apply("cos", x); }
Value tan(Value x) { return apply("tan", x); }
Value asin(Value x) { return apply("asin", x); }
Value acos(Value x) { return apply("acos", x); }
Value atan(Value x) { return apply("atan", x); }
Value sinh(Value x) { return apply("sinh", x); }
Value cosh(Value x) { return apply("cosh", x); }
Value tanh(Value x) { return apply("tanh", x); }
Value asinh(Value x) { return apply("asinh", x); }
Value acosh(Value x) { return apply("acosh", x); }
Value atanh(Value x) { return apply("atanh", x); }
Value erf(Value x) { return apply("erf", x); }
Value sigmoid(Value x) { return apply("sigmoid", x); }
Value relu(Value x) { return apply("relu", x); }
Value floor(Value x) { return apply("floor", x); }
Value ceil(Value x) { return apply("ceil", x); }
Value round(Value x) { return apply("round", x); }
Value logical_not(Value x) { return apply("not", x); }
Value is_nan(Value x) { return apply("is_nan", x); }

}  // namespace tenon
