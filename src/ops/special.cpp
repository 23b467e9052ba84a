#include "ops/special.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "ops/binary.h"
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

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kRootOfPi = 1.7724538509055160273;

// --- eval: by series, continued fractions and bisection, in double

double digamma_of(double x) {
  if (x == 0)
    return std::copysign(kInfinity, -x);
  if (x < 0 && x == std::floor(x))
    return kNaN;
  if (x < 0)
    return digamma_of(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * (x - std::round(x)));
  double sum = 0;
  for (; x < 20; ++x)
    sum -= 1 / x;
  const double y = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

// Hurwitz's zeta function, Σ (q + k)^-s, by Euler and Maclaurin.
double zeta_of(double s, double q) {
  if (s == 1)
    return kInfinity;
  if (!(s > 1))
    return kNaN;
  if (q <= 0 && q == std::floor(q))
    return kInfinity;
  if (q <= 0 && s != std::floor(s))
    return kNaN;
  double sum = 0;
  for (; q < 20; ++q)
    sum += std::pow(q, -s);
  sum += std::pow(q, 1 - s) / (s - 1) + 0.5 * std::pow(q, -s);
  constexpr double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  double factor = s / 2 * std::pow(q, -s - 1);  // s (s + 1) … / (2k)! · q^(-s - 2k + 1)
  for (int k = 1; k <= 7; ++k) {
    sum += bernoulli[k - 1] * factor;
    factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * q * q);
  }
  return sum;
}

double polygamma_of(int64_t order, double x) {
  if (order == 0)
    return digamma_of(x);
  const auto n = static_cast<double>(order);
  return (order % 2 == 0 ? -1 : 1) * std::tgamma(n + 1) * zeta_of(n + 1, x);
}

double erfinv_of(double x) {
  if (!(std::fabs(x) < 1) || x == 0)
    return std::fabs(x) == 1 ? x * kInfinity : x == 0 ? x : kNaN;
  const double size = std::fabs(x);
  double low = 0, high = 6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    const bool below = size < 0.5 ? std::erf(middle) < size : std::erfc(middle) > 1 - size;
    (below ? low : high) = middle;
  }
  return std::copysign((low + high) / 2, x);
}

// exp(x²) · erfc(x): far out by a continued fraction.
double erfcx_of(double x) {
  if (x < 10)
    return std::exp(x * x) * std::erfc(x);
  double tail = 0;
  for (int k = 40; k > 0; --k)
    tail = k / 2.0 / (x + tail);
  return 1 / (kRootOfPi * (x + tail));
}

// exp(-x) · I(order, x): far out by its asymptotic series.
double scaled_bessel_of(int order, double x) {
  if (std::isinf(x))
    return 0;
  if (x < 30)
    return std::cyl_bessel_i(order, x) * std::exp(-x);
  double term = 1, sum = 1;
  for (int k = 1; k < 25; ++k) {
    term *= -(4.0 * order * order - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    sum += term;
  }
  return sum / std::sqrt(2 * std::numbers::pi * x);
}
template <int order, bool scaled>
double bessel_of(double x) {
  if (std::isnan(x))
    return x;
  const double size = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  const double y = scaled_bessel_of(order, size);
  return sign * (scaled ? y : std::isinf(size) ? size : y == 0 ? 0 : y * std::exp(size));
}

// The other Bessel functions, of which those of the second kind have no value below 0.
double bessel_j(int order, double x) {
  if (std::isinf(x))
    return 0;
  const double y = std::cyl_bessel_j(order, std::fabs(x));
  return order == 1 && x < 0 ? -y : y;
}
double bessel_y(int order, double x) {
  if (x <= 0)
    return x == 0 ? -kInfinity : kNaN;
  return std::isinf(x) ? 0 : std::cyl_neumann(order, x);
}
double bessel_k(int order, double x, bool scaled) {
  if (x <= 0)
    return x == 0 ? kInfinity : kNaN;
  if (x < 500)
    return std::cyl_bessel_k(order, x) * (scaled ? std::exp(x) : 1);
  // From its asymptotic series.
  const double m = 4.0 * order * order, y = 8 * x;
  const double sum = 1 + (m - 1) / y * (1 + (m - 9) / (2 * y) * (1 + (m - 25) / (3 * y)));
  return std::sqrt(std::numbers::pi / (2 * x)) * sum * (scaled ? 1 : std::exp(-x));
}

using BesselFunction = double (*)(double);
BesselFunction bessel_function(const Node& n) {
  return named<BesselFunction>(n, "kind",
                               {{"j0", [](double x) { return bessel_j(0, x); }},
                                {"j1", [](double x) { return bessel_j(1, x); }},
                                {"y0", [](double x) { return bessel_y(0, x); }},
                                {"y1", [](double x) { return bessel_y(1, x); }},
                                {"k0", [](double x) { return bessel_k(0, x, false); }},
                                {"k1", [](double x) { return bessel_k(1, x, false); }},
                                {"k0e", [](double x) { return bessel_k(0, x, true); }},
                                {"k1e", [](double x) { return bessel_k(1, x, true); }}});
}

// Polynomials of degree n by their recurrences: P(k+1) from P(k) and P(k-1), and the first two.
struct Recurrence {
  double (*first)(double x);
  double (*next)(double x, double k, double last, double before);
};
constexpr auto chebyshev_next = [](double x, double, double last, double before) {
  return 2 * x * last - before;
};
Recurrence recurrence(const Node& n) {
  return named<Recurrence>(
      n, "kind",
      {{"chebyshev_t", {[](double x) { return x; }, chebyshev_next}},
       {"chebyshev_u", {[](double x) { return 2 * x; }, chebyshev_next}},
       {"chebyshev_v", {[](double x) { return 2 * x - 1; }, chebyshev_next}},
       {"chebyshev_w", {[](double x) { return 2 * x + 1; }, chebyshev_next}},
       {"hermite_h",
        {[](double x) { return 2 * x; },
         [](double x, double k, double last, double before) { return 2 * x * last - 2 * k * before; }}},
       {"hermite_he",
        {[](double x) { return x; },
         [](double x, double k, double last, double before) { return x * last - k * before; }}},
       {"laguerre_l",
        {[](double x) { return 1 - x; },
         [](double x, double k, double last, double before) {
           return ((2 * k + 1 - x) * last - k * before) / (k + 1);
         }}},
       {"legendre_p",
        {[](double x) { return x; },
         [](double x, double k, double last, double before) {
           return ((2 * k + 1) * x * last - k * before) / (k + 1);
         }}}});
}
double polynomial_of(const Recurrence& recurrence, double x, double degree) {
  constexpr double most = 1e6;
  if (std::isnan(degree) || std::isnan(x))
    return kNaN;
  if (degree > most)
    throw user_error("orthogonal_polynomial: a degree is {}, but must be {} at most", degree, most);
  const double n = std::trunc(degree);
  if (n < 1)
    return n < 0 ? 0 : 1;
  double before = 1, last = recurrence.first(x);
  for (double k = 1; k < n; ++k)
    before = std::exchange(last, recurrence.next(x, k, last, before));
  return last;
}

// --- lower: in f64, whatever the dtype, by polynomials

Scalar polynomial(const Scalar& x, std::span<const double> coefficients) {
  Scalar sum = loops::constant(x.dtype(), coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = sum * x + coefficients[i];
  return sum;
}
Scalar number(double value) { return loops::constant(DType::F64, value); }
Scalar sine(const Scalar& x) { return Scalar::apply(loops::Function::Sin, {x}); }
Scalar cosine(const Scalar& x) { return Scalar::apply(loops::Function::Cos, {x}); }

template <auto formula>
void lower_wide(LowerContext& c) {
  c.define([&](const Index& at) { return formula(Scalar::cast(DType::F64, c.in("x", at))); });
}

// From here on Stirling's series is exact; below it the argument is moved up by as much.
constexpr int kShift = 10;

constexpr auto lowered_lgamma = [](const Scalar& x) {
  const Scalar reflected = less(x, number(0.5)), positive = select(reflected, 1.0 - x, x);
  const Scalar moves = less(positive, number(kShift));
  Scalar product = number(1);
  for (int k = 0; k < kShift; ++k)
    product = product * (positive + k);
  const Scalar z = select(moves, positive + kShift, positive), y = 1.0 / (z * z);
  // The coefficients are B(2k) / (2k (2k - 1)).
  constexpr double series[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                               1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  const Scalar stirling = (z - 0.5) * (log(z) - 1.0) + polynomial(y, series) / z + 0.41893853320467274178;
  const Scalar above = stirling - select(moves, log(product), number(0));
  const Scalar rest = x - round(x), circle = abs(sine(rest * std::numbers::pi));
  const Scalar below = log(std::numbers::pi / circle) - above;
  return select(equal(abs(x), number(kInfinity)), number(kInfinity), select(reflected, below, above));
};

constexpr auto lowered_digamma = [](const Scalar& x) {
  const Scalar reflected = less(x, number(0)), positive = select(reflected, 1.0 - x, x);
  const Scalar moves = less(positive, number(kShift));
  Scalar sum = number(0);
  for (int k = 0; k < kShift; ++k)
    sum = sum + 1.0 / (positive + k);
  const Scalar z = select(moves, positive + kShift, positive), y = 1.0 / (z * z);
  // The coefficients are B(2k) / 2k.
  constexpr double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const Scalar above = log(z) - 0.5 / z - y * polynomial(y, series) - select(moves, sum, number(0));
  const Scalar rest = (x - round(x)) * std::numbers::pi;
  const Scalar below = above - std::numbers::pi * cosine(rest) / sine(rest);
  const Scalar pole = equal(x, round(x)) && reflected;
  return select(equal(x, number(0)), -1.0 / x, select(pole, number(kNaN), select(reflected, below, above)));
};

// A first guess, after M. Giles, "Approximating the erfinv function", which two of Newton's steps make exact.
constexpr auto lowered_erfinv = [](const Scalar& x) {
  constexpr double middle[] = {1.50140941,     0.246640727,   -0.00417768164, -0.00125372503, 0.00021858087,
                               -4.39150654e-6, -3.5233877e-6, 3.43273939e-7,  2.81022636e-8};
  constexpr double tail[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const Scalar w = -log((1.0 - x) * (1.0 + x));
  Scalar y = x * select(less(w, number(5)), polynomial(w - 2.5, middle), polynomial(sqrt(w) - 3.0, tail));
  for (int step = 0; step < 2; ++step)
    y = y - (erf(y) - x) / (2 / kRootOfPi * exp(-(y * y)));
  const Scalar inside = less(abs(x), number(1)), edge = equal(abs(x), number(1));
  return select(inside, y, select(edge, x * kInfinity, number(kNaN)));
};

// (1 + 2x) · exp(x²) · erfc(x) of (x - 3.75) / (x + 3.75), from 0 on.
constexpr double kScaledErfc[] = {
    1.2375126308378275,     -0.14024059858554697,    0.0035854154854644293,   0.0822767384901452,
    -0.10880393014174886,   0.09230432116037748,     -0.05869339858963677,    0.028362277418956406,
    -0.009746579558029276,  0.0017556258528952954,   0.0002937136655913448,   -0.0002901540805408417,
    5.164909889268241e-05,  2.238423915508223e-05,   -1.1444146237700524e-05, -9.73559896736775e-07,
    1.751637648849062e-06,  -5.7218230603224086e-08, -2.5866850716155884e-07, 2.3263508708859124e-08,
    3.8675334242222354e-08, -3.744210080962018e-09,  -5.1739902140113095e-09, 3.1114333809799254e-10,
    4.2514714447963895e-10};

constexpr auto lowered_erfcx = [](const Scalar& x) {
  const Scalar size = abs(x), t = (size - 3.75) / (size + 3.75);
  const Scalar above = polynomial(t, kScaledErfc) / (1.0 + 2.0 * size);
  const Scalar positive = select(equal(size, number(kInfinity)), number(0), above);
  return select(less(x, number(0)), 2.0 * exp(x * x) - positive, select(is_nan(x), x, positive));
};

// exp(-x) · I0(x) of x / 4 - 1 up to 8, and from there on √x times that of 16 / x - 1.
constexpr double kBessel0Near[] = {
    0.2070019212239867,    -0.11300432688620549,    0.09451562853995103,    -0.08904344136075962,
    0.08734341617552313,   -0.08496338091616305,    0.07927522590716347,    -0.06954119561719381,
    0.05677703201991695,   -0.04298594945479612,    0.030177912022978357,   -0.01968265469059234,
    0.011960077907026221,  -0.0067923998730731695,  0.003617126448897043,   -0.001811886793937724,
    0.0008563152748272306, -0.00038290209550065975, 0.00016240542162878106, -6.550861389620851e-05,
    2.520232727107692e-05, -9.251680584432654e-06,  3.2293390826404927e-06, -1.0883393970072518e-06,
    3.675842926555429e-07, -1.1384114641747256e-07, 2.6265363151970112e-08, -7.723094556846333e-09,
    4.470516727511741e-09, -1.1852342482684723e-09};
constexpr double kBessel0Far[] = {
    0.4021765094450081,     0.0033605519836678614,  0.0001362160743919305,  1.1143033790932038e-05,
    1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08,  3.932584334552952e-08,
    2.1548377974791598e-08, 7.554691881248808e-09,  -6.747657956107524e-09, -1.340891754008974e-08,
    -5.404771567579958e-09, 7.552583062123384e-09,  7.430464650325426e-09,  -3.505966530879332e-09,
    -5.95356943826489e-09,  1.5200816953924232e-09, 3.6379546359011143e-09, -5.715843864202709e-10,
    -1.618980683624682e-09, 1.5279202694981569e-10, 4.577087631643623e-10,  -2.0260604287413626e-11,
    -6.067631570603006e-11};
// The same of I1, but divided by x up to 8.
constexpr double kBessel1Near[] = {
    0.044687709875608835,  -0.061124338029666284,   0.0680575999095116,     -0.06848260620582691,
    0.06376740371340721,   -0.055280039226991644,   0.04467457262125467,    -0.03367135552108536,
    0.023686016957729535,  -0.015571309243980052,   0.009583962150731578,   -0.005534567847563678,
    0.0030057624197775295, -0.00153887456203039,    0.0007445123445061157,  -0.0003411760289073331,
    0.0001484212433475852, -6.142360299099794e-05,  2.4233753149624307e-05, -9.136543922789093e-06,
    3.293899139003749e-06, -1.1327072698408053e-06, 3.759367306404118e-07,  -1.2424759932738304e-07,
    3.802984785138283e-08, -8.984420960424589e-09,  2.603206542331157e-09,  -1.41695079121077e-09,
    3.7284532079392345e-10};
constexpr double kBessel1Far[] = {
    0.38939845902587233,     -0.009749577193235737,   -0.00021923576383388928, -1.5038547200567216e-05,
    -1.8349101326980946e-06, -3.483855761044295e-07,  -1.0001288294864884e-07, -4.312917729178349e-08,
    -2.337392820814264e-08,  -8.427766093735185e-09,  6.734464815301592e-09,   1.4034238782067183e-08,
    5.974437608040264e-09,   -7.64239413436356e-09,   -7.888351507862078e-09,  3.4262341490077958e-09,
    6.242741219786445e-09,   -1.4387250533041013e-09, -3.794670896208339e-09,  5.295625441161261e-10,
    1.6848984479705146e-09,  -1.4011625179770627e-10, -4.758818838703853e-10,  1.8515118828852956e-11,
    6.305965197150057e-11};

Scalar scaled_bessel(int order, const Scalar& size) {
  const Scalar near = size * 0.25 - 1.0, far = 16.0 / size - 1.0;
  const Scalar below = order == 0 ? polynomial(near, kBessel0Near) : polynomial(near, kBessel1Near) * size;
  const Scalar above =
      (order == 0 ? polynomial(far, kBessel0Far) : polynomial(far, kBessel1Far)) / sqrt(size);
  return select(less(number(8), size), above, below);
}
template <int order, bool scaled>
constexpr auto lowered_bessel = [](const Scalar& x) {
  const Scalar size = abs(x);
  Scalar y = scaled_bessel(order, size);
  if (!scaled)
    y = select(equal(size, number(kInfinity)), size, y * exp(size));
  return order == 1 ? select(less(x, number(0)), -y, y) : y;
};

// --- gradients

Value apply(std::string_view op, Value x) { return x.graph().create(op, {{"x", x}})->result(); }
Value polygamma(int64_t order, Value x) {
  return x.graph().create("polygamma", {{"x", x}}, {{"order", order}})->result();
}
Value half_at_zero(Value x, Value otherwise) {
  return where(equal(x, scalar(x.graph(), x.dtype(), 0)), scalar(x.graph(), x.dtype(), 0.5), otherwise);
}

// --- declarations

OpDef special(std::string_view name, std::string_view doc, EvalFunction eval, LowerFunction lower,
              GradFunction grad) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .results = {{"y", "T"}},
          .types = {{"T", Floats}},
          .traits = {.elementwise = true, .takes_unranked = true},
          .infer = same_as_x,
          .eval = eval,
          .lower = lower,
          .grad = grad};
}

Data eval_polygamma(const Call& c) {
  const int64_t order = c.attr("order");
  const Tensor& x = c.in("x");
  std::vector<double> values = widen<double>(x);
  for (double& value : values)
    value = polygamma_of(order, value);
  return {narrow<double>(x.dtype(), x.extents(), values)};
}
Types infer_polygamma(const Node& n) {
  if (n.attr("order").as<int64_t>() < 0)
    throw user_error("polygamma: order is {}, but must not be negative", n.attr("order").as<int64_t>());
  return same_as_x(n);
}
std::vector<Operand> grad_polygamma(const GradContext& n) {
  return {{"x", n.dy() * polygamma(n.attr("order").as<int64_t>() + 1, n.in("x"))}};
}

Data eval_bessel(const Call& c) {
  const BesselFunction function = bessel_function(c.node());
  return map_floats(c, [&](double x) { return std::isnan(x) ? x : function(x); });
}
Types infer_bessel(const Node& n) {
  bessel_function(n);
  return same_as_x(n);
}

Data eval_polynomial(const Call& c) {
  const Recurrence by = recurrence(c.node());
  return {zip<double>("orthogonal_polynomial", c.in("x"), c.in("degree"), c.in("x").dtype(),
                      [&](double x, double degree) { return polynomial_of(by, x, degree); })};
}
Types infer_polynomial(const Node& n) {
  recurrence(n);
  return {Type::tensor(n.in("x").dtype(), broadcast_operands(n, n.operands()))};
}

Data eval_zeta(const Call& c) {
  return {zip<double>("zeta", c.in("a"), c.in("b"), c.in("a").dtype(), zeta_of)};
}
// The derivative along a has no formula here.
std::vector<Operand> grad_zeta(const GradContext& n) {
  if (n.wants("a"))
    throw n.decline("it has no gradient with respect to its exponents");
  const Value a = n.in("a"), b = n.in("b");
  return {{"b", -n.dy() * a * n.graph().create("zeta", {{"a", a + 1.0}, {"b", b}})->result()}};
}

}  // namespace

const Family& special_ops() {
  // Those without a lower take as many steps as their arguments ask for: they run by eval.
  static const Family ops = {
      {.name = "bessel",
       .doc = "a Bessel function of order 0 or 1: of the first or second kind, or modified of the second",
       .operands = {{"x", "T"}},
       .attributes = {{"kind", AttributeKind::String,
                       "j0, j1, y0, y1, k0, k1; k0e and k1e are times exp(x)"}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .traits = {.elementwise = true},
       .infer = infer_bessel,
       .eval = eval_bessel},
      {.name = "orthogonal_polynomial",
       .doc = "a polynomial of the given degree, which is cut to an integer; 0 where that is negative",
       .operands = {{"x", "T"}, {"degree", "T"}},
       .attributes = {{"kind", AttributeKind::String,
                       "chebyshev_t, _u, _v or _w, hermite_h or _he, laguerre_l, legendre_p"}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .traits = {.elementwise = true},
       .infer = infer_polynomial,
       .eval = eval_polynomial},
      special("bessel_i0", "the modified Bessel function of order 0", map_floats<bessel_of<0, false>>,
              lower_wide<lowered_bessel<0, false>>,
              chain<[](Value x, Value) { return apply("bessel_i1", x); }>),
      special("bessel_i0e", "exp(-|x|) times the modified Bessel function of order 0",
              map_floats<bessel_of<0, true>>, lower_wide<lowered_bessel<0, true>>,
              chain<[](Value x, Value y) { return apply("bessel_i1e", x) - sign(x) * y; }>),
      special("bessel_i1", "the modified Bessel function of order 1", map_floats<bessel_of<1, false>>,
              lower_wide<lowered_bessel<1, false>>,
              chain<[](Value x, Value y) { return half_at_zero(x, apply("bessel_i0", x) - y / x); }>),
      special("bessel_i1e", "exp(-|x|) times the modified Bessel function of order 1",
              map_floats<bessel_of<1, true>>, lower_wide<lowered_bessel<1, true>>,
              chain<[](Value x, Value y) {
                return half_at_zero(x, apply("bessel_i0e", x) - y * (sign(x) + 1.0 / x));
              }>),
      special("digamma", "the derivative of lgamma", map_floats<digamma_of>, lower_wide<lowered_digamma>,
              chain<[](Value x, Value) { return polygamma(1, x); }>),
      special("erfcx", "exp(x²) · (1 - erf(x))", map_floats<erfcx_of>, lower_wide<lowered_erfcx>,
              chain<[](Value x, Value y) { return 2.0 * x * y - 2 / kRootOfPi; }>),
      special("erfinv", "the inverse of erf", map_floats<erfinv_of>, lower_wide<lowered_erfinv>,
              chain<[](Value, Value y) { return kRootOfPi / 2 * exp(y * y); }>),
      special("lgamma", "the logarithm of the gamma function's absolute value",
              map_floats<[](double x) { return std::lgamma(x); }>, lower_wide<lowered_lgamma>,
              chain<[](Value x, Value) { return apply("digamma", x); }>),
      {.name = "polygamma",
       .doc = "the derivative of digamma of the given order",
       .operands = {{"x", "T"}},
       .attributes = {{"order", AttributeKind::Int, "0 for digamma itself"}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .traits = {.elementwise = true},
       .infer = infer_polygamma,
       .eval = eval_polygamma,
       .grad = grad_polygamma},
      {.name = "zeta",
       .doc = "Hurwitz's zeta function: the sum of (b + k)^-a over all k from 0 on",
       .operands = {{"a", "T"}, {"b", "T"}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .traits = {.elementwise = true},
       .infer = [](const Node& n) -> Types {
         return {Type::tensor(n.in("a").dtype(), broadcast_operands(n, n.operands()))};
       },
       .eval = eval_zeta,
       .grad = grad_zeta},
  };
  return ops;
}

}  // namespace tenon
