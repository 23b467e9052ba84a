#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Tensor f64(const std::vector<double>& values) {
  return tensor(DType::F64, {static_cast<int64_t>(values.size())}, values);
}
Datum apply(std::string_view op, const Tensor& x, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x{}) return %y }}", type_of(x), op, attributes),
                  {x})[0];
}

// Known to 16 digits.
TEST(Special, GivesKnownValues) {
  expect_near(apply("lgamma", f64({0.5, 1, 4, -0.5, 171})),
              f64({0.5723649429247001, 0, 1.791759469228055, 1.2655121234846454, 706.5730622457875}), 1e-12);
  expect_near(apply("digamma", f64({1, 0.5, 10, -0.5})),
              f64({-0.5772156649015329, -1.9635100260214235, 2.251752589066721, 0.03648997397857652}), 1e-13);
  expect_near(apply("polygamma", f64({1, 0.5}), ", order=1"), f64({1.6449340668482264, 4.934802200544679}),
              1e-12);
  expect_near(apply("polygamma", f64({1, -0.5}), ", order=2"), f64({-2.404113806319188, -0.8287966442343199}),
              1e-11);
  expect_near(apply("erfinv", f64({0.5, -0.5, 0.999999, 1e-10})),
              f64({0.4769362762044699, -0.4769362762044699, 3.458910737275499, 8.862269254527581e-11}),
              1e-11);
  expect_near(apply("erfcx", f64({0, 1, -1, 50})),
              f64({1, 0.427583576155807, 5.008980080762283, 0.01128153626532377}), 1e-13);
  expect_near(apply("bessel_i0", f64({0, 1, -3})), f64({1, 1.2660658777520084, 4.880792585865024}), 1e-13);
  expect_near(apply("bessel_i1", f64({0, 1, -3})), f64({0, 0.5651591039924851, -3.9533702174026093}), 1e-13);
  expect_near(apply("bessel_i0e", f64({0, 1, 100, -700})),
              f64({1, 0.46575960759364043, 0.03994437929909668, 0.0150812956515313}), 1e-12);
  expect_near(apply("bessel_i1e", f64({0, 1, 100, -100})),
              f64({0, 0.20791041534970847, 0.03974415302513025, -0.03974415302513025}), 1e-12);
}

TEST(Special, GoesToItsLimits) {
  expect_tensor(apply("lgamma", f64({0, -1, kInf, -kInf, kNaN})), f64({kInf, kInf, kInf, kInf, kNaN}));
  expect_tensor(apply("digamma", f64({0, -0.0, -1, kInf, kNaN})), f64({-kInf, kInf, kNaN, kInf, kNaN}));
  expect_tensor(apply("erfinv", f64({1, -1, 1.5, 0, kNaN})), f64({kInf, -kInf, kNaN, 0, kNaN}));
  expect_tensor(apply("erfcx", f64({kInf, -kInf, -30})), f64({0, kInf, kInf}));
  expect_tensor(apply("bessel_i0", f64({kInf, -kInf, kNaN})), f64({kInf, kInf, kNaN}));
  expect_tensor(apply("bessel_i1", f64({kInf, -kInf})), f64({kInf, -kInf}));
  expect_tensor(apply("bessel_i0e", f64({kInf, -kInf})), f64({0, 0}));
}

TEST(Special, GivesBesselFunctionsOfOtherKinds) {
  const auto bessel = [](const char* kind, const std::vector<double>& x) {
    return apply("bessel", f64(x), fmt::format(", kind=\"{}\"", kind));
  };
  expect_near(bessel("j0", {0, 2, -2}), f64({1, 0.2238907791412357, 0.2238907791412357}), 1e-13);
  expect_near(bessel("j1", {0, 2, -2}), f64({0, 0.5767248077568734, -0.5767248077568734}), 1e-13);
  expect_near(bessel("y0", {2}), f64({0.5103756726497451}), 1e-13);
  expect_near(bessel("k1", {2, 600}), f64({0.13986588181652243, 0}), 1e-13);
  expect_near(bessel("k0e", {2, 600}), f64({0.8415682150707714, 0.051155962}), 1e-6);
  expect_tensor(bessel("y1", {0, -1, kInf, kNaN}), f64({-kInf, kNaN, 0, kNaN}));
}

TEST(Special, GivesPolynomialsByDegree) {
  const auto at = [](const char* kind, double x) {
    return run_text(
        fmt::format(
            "graph(%x: f64[], %n: f64[4]) {{ %y = orthogonal_polynomial(%x, %n, kind=\"{}\") return %y }}",
            kind),
        {tensor(DType::F64, {}, {x}), f64({-1, 0, 1, 3})})[0];
  };
  expect_near(at("chebyshev_t", 0.5), f64({0, 1, 0.5, -1}), 1e-15);
  expect_near(at("chebyshev_u", 0.5), f64({0, 1, 1, -1}), 1e-15);
  expect_near(at("chebyshev_v", 0.5), f64({0, 1, 0, -1}), 1e-15);
  expect_near(at("chebyshev_w", 0.5), f64({0, 1, 2, -1}), 1e-15);
  expect_near(at("hermite_h", 0.5), f64({0, 1, 1, -5}), 1e-15);
  expect_near(at("hermite_he", 2), f64({0, 1, 2, 2}), 1e-15);
  expect_near(at("laguerre_l", 3), f64({0, 1, -2, 1}), 1e-15);
  expect_near(at("legendre_p", 0.5), f64({0, 1, 0.5, -0.4375}), 1e-15);
}

TEST(Special, SumsPowers) {
  const auto zeta = [](double a, double b) {
    return run_text("graph(%a: f64[], %b: f64[]) { %y = zeta(%a, %b) return %y }",
                    {tensor(DType::F64, {}, {a}), tensor(DType::F64, {}, {b})})[0];
  };
  const auto is = [](double value) { return tensor(DType::F64, {}, {value}); };
  expect_near(zeta(2, 1), is(1.6449340668482264), 1e-13);
  expect_near(zeta(3, 0.5), is(8.414398322117159), 1e-12);
  expect_tensor(zeta(1, 3), is(kInf));
  expect_tensor(zeta(2, -1), is(kInf));
  expect_tensor(zeta(0.5, 1), is(kNaN));
  expect_tensor(zeta(2.5, -0.5), is(kNaN));
}

TEST(Special, TakesNoNegativeOrder) {
  expect_error<UserError>([] { apply("polygamma", f64({1}), ", order=-1"); },
                          "line 1, column 26: polygamma: order is -1, but must not be negative");
}

}  // namespace
}  // namespace tenon
