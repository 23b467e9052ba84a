// The four-step transform. With n = p·m, j = j1·m + j2 and k = k1 + p·k2,
//   y[k] = Σ_j2 w_m^(j2·k2) · w_n^(j2·k1) · Σ_j1 w_p^(j1·k1) x[j],
// so that transforms of p points, those of every m-th element, times the factors w_n^(j2·k1), are transforms
// of m points away from the spectrum. Both are products with the matrix of a short transform, or again of
// factors. Where the length has a large prime factor, the transform is a convolution, which longer ones make
// a product of each element (Bluestein):
//   y[k] = c[k] Σ_j (c[j] x[j]) · conj(c[k-j])  with  c[j] = e^(∓πi·j²/n).
#include "passes/target/factored_dft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "ir/evaluate.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/signal.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

using Complex = std::complex<double>;
using Numbers = std::vector<Complex>;

constexpr int64_t kMostPoints = 128;   // of products that follow each other
constexpr int64_t kMostNumbers = 256;  // of a signal that is transformed by one product, whatever its length
constexpr int64_t kLargestFactor = 256;  // that is a product; a larger prime is a convolution

// e^(∓2πi·j/n), exact at the quarters.
Complex root(int64_t j, int64_t n, bool inverse) {
  j %= n;
  Complex power;
  if (4 * j % n == 0) {
    constexpr Complex kQuarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    power = kQuarters[4 * j / n];
  } else {
    power = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n));
  }
  return inverse ? std::conj(power) : power;
}

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= n; ++factor)
    for (; n % factor == 0; n /= factor)
      largest = factor;
  return std::max(largest, n);
}

// How many points the first of the products has: as near as can be to what makes all of them equally large.
int64_t first_factor(int64_t n) {
  const double size = std::log(static_cast<double>(n));
  const double even = size / std::ceil(size / std::log(kMostPoints));
  const auto distance = [&](int64_t p) { return std::abs(std::log(static_cast<double>(p)) - even); };
  int64_t best = n;
  for (int64_t p = 2; p <= kLargestFactor && p < n; ++p)
    if (n % p == 0 && (best == n || distance(p) < distance(best)))
      best = p;
  return best;
}

// Whether a transform of signals of one or two parts takes no longer as one product.
bool is_one_product(int64_t n, int64_t parts) {
  return n * parts <= kMostNumbers || (first_factor(n) == n && n <= kLargestFactor);
}

// A shape: the sizes of the axes before the last `inner`, and others after them.
Value sizes_before(Value x, int64_t inner, const std::vector<int64_t>& sizes) {
  std::vector<Value> all;
  for (int64_t i = 0; i + inner < x.rank(); ++i)
    all.push_back(size_along(x, i));
  all.push_back(int_vector(x.graph(), sizes));
  return concat(all, 0);
}

// The last axes in another order.
Value permuted(Value x, const std::vector<int64_t>& order) {
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  const int64_t first = x.rank() - std::ssize(order);
  for (size_t i = 0; i < order.size(); ++i)
    permutation[static_cast<size_t>(first) + i] = first + order[i];
  return transpose(x, permutation);
}

// Complex numbers times others, with a constant for each of the last axes but `axis`, along which x has real
// and imaginary parts, or real parts alone. Extents are those of the numbers, with a 1 for that axis.
Value times(Value x, const Numbers& numbers, Extents extents, int64_t axis) {
  const int64_t at = std::ssize(extents) + axis;
  const int64_t inner = element_count(Extents(extents.begin() + at, extents.end()));
  std::vector<double> real, crossed;
  for (const Complex& number : numbers)
    real.push_back(number.real());
  const bool is_real = x.dim(axis) == Dim(1);
  for (size_t block = 0; block < numbers.size(); block += static_cast<size_t>(inner))
    for (const int64_t part : {0, 1})
      for (size_t i = block; i < block + static_cast<size_t>(inner); ++i)
        crossed.push_back(part == 1 ? numbers[i].imag() : is_real ? numbers[i].real() : -numbers[i].imag());
  const Value own = constant(x.graph(), narrow<double>(x.dtype(), extents, real));
  extents[static_cast<size_t>(at)] = 2;
  const Value other = constant(x.graph(), narrow<double>(x.dtype(), extents, crossed));
  return is_real ? x * other : x * own + slice(x, axis, 1, -3, -1) * other;
}

class Products {
 public:
  Products(Graph& graph, DType dtype, bool inverse) : graph_(graph), dtype_(dtype), inverse_(inverse) {}

  // x [rows…, parts, up to length] → [rows…, kept, result_parts], times `scale`.
  Value apply(Value x, const FactoredDft& dft, double scale) const {
    const int64_t parts = *x.dim(-2).constant(), given = *x.dim(-1).constant();
    if (is_one_product(dft.length, parts)) {
      const Value rows = reshape(x, sizes_before(x, 2, {1, parts * given}));
      const Value columns =
          reshape(matrix(parts, given, dft, scale), {parts * given, dft.kept * dft.result_parts});
      return reshape(matmul(rows, columns), sizes_before(x, 2, {dft.kept, dft.result_parts}));
    }
    if (given < dft.length)
      x = pad(x, int_vector(graph_, {0, dft.length - given}), {-1});
    return largest_prime_factor(dft.length) > kLargestFactor ? convolved(x, dft, scale)
                                                             : factored(x, dft, scale);
  }

 private:
  // The matrix of the transform as [part, element, element of the result, part of that].
  Value matrix(int64_t parts, int64_t given, const FactoredDft& dft, double scale) const {
    std::vector<double> entries;
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t j = 0; j < given; ++j)
        for (int64_t k = 0; k < dft.kept; ++k)
          for (int64_t to = 0; to < dft.result_parts; ++to) {
            const Complex number = scale * root(j * k, dft.length, inverse_);
            entries.push_back(part == to ? number.real() : part == 0 ? number.imag() : -number.imag());
          }
    return constant(graph_, narrow<double>(dtype_, {parts, given, dft.kept, dft.result_parts}, entries));
  }

  Value factored(Value x, const FactoredDft& dft, double scale) const {
    const int64_t p = first_factor(dft.length), m = dft.length / p, parts = *x.dim(-2).constant();
    const Value columns = permuted(reshape(x, sizes_before(x, 2, {parts * p, m})), {1, 0});
    const Value short_ones = permuted(matrix(parts, p, {p, p, 2}, scale), {0, 1, 3, 2});
    const Value sums = matmul(columns, reshape(short_ones, {parts * p, 2 * p}));
    Numbers twiddles;
    for (int64_t j = 0; j < m; ++j)
      for (int64_t k = 0; k < p; ++k)
        twiddles.push_back(root(j * k, dft.length, inverse_));
    const Value twiddled = times(reshape(sums, sizes_before(x, 2, {m, 2, p})), twiddles, {m, 1, p}, -2);

    const FactoredDft rest = {m, (dft.kept + p - 1) / p, dft.result_parts};
    Value spectra;  // [rows…, k2, part, k1]
    if (is_one_product(m, 2)) {
      const Value long_ones = permuted(matrix(2, m, rest, 1), {2, 3, 1, 0});
      spectra = matmul(reshape(long_ones, {rest.kept * rest.result_parts, m * 2}),
                       reshape(twiddled, sizes_before(x, 2, {m * 2, p})));
      spectra = reshape(spectra, sizes_before(x, 2, {rest.kept, rest.result_parts, p}));
    } else {
      spectra = permuted(apply(permuted(twiddled, {2, 1, 0}), rest, 1), {1, 2, 0});
    }
    const Value y =
        reshape(permuted(spectra, {0, 2, 1}), sizes_before(x, 2, {rest.kept * p, rest.result_parts}));
    return slice(y, -2, 0, dft.kept);
  }

  // By a convolution as long as there are elements and lags.
  Value convolved(Value x, const FactoredDft& dft, double scale) const {
    const int64_t n = dft.length;
    const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n + dft.kept - 1)));
    Numbers chirp;
    for (int64_t j = 0; j < n; ++j)
      chirp.push_back(root(j * j % (2 * n), 2 * n, inverse_));
    const Value signal = pad(times(x, chirp, {1, n}, -2), int_vector(graph_, {0, length - n}), {-1});
    const Value spectrum = Products(graph_, dtype_, false).apply(signal, {length, length, 2}, 1);
    const Value response = times(spectrum, response_of(chirp, length, dft.kept), {length, 1}, -1);
    const Value sums =
        Products(graph_, dtype_, true)
            .apply(permuted(response, {1, 0}), {length, dft.kept, 2}, 1 / static_cast<double>(length));
    chirp.resize(static_cast<size_t>(dft.kept));
    for (Complex& number : chirp)
      number *= scale;
    const Value y = times(sums, chirp, {dft.kept, 1}, -1);
    return slice(y, -1, 0, dft.result_parts);
  }

  // The spectrum of the conjugate chirp at lags from 1 - n to kept - 1, by the reference.
  static Numbers response_of(const Numbers& chirp, int64_t length, int64_t kept) {
    std::vector<double> lags(static_cast<size_t>(2 * length), 0);
    const auto put = [&](int64_t lag, Complex number) {
      lags[static_cast<size_t>(2 * lag)] = number.real();
      lags[static_cast<size_t>(2 * lag + 1)] = -number.imag();
    };
    for (int64_t j = 0; j < std::ssize(chirp); ++j) {
      if (j < kept)
        put(j, chirp[static_cast<size_t>(j)]);
      if (j > 0)
        put(length - j, chirp[static_cast<size_t>(j)]);
    }
    Graph graph("chirp");
    const Value x = constant(graph, narrow<double>(DType::F64, {length, 2}, lags));
    graph.set_outputs({dft(x, {}, 0, {})});
    const std::vector<double> parts = widen<double>(evaluate(graph, {}).front().tensor());
    Numbers numbers;
    for (size_t i = 0; i < parts.size(); i += 2)
      numbers.emplace_back(parts[i], parts[i + 1]);
    return numbers;
  }

  Graph& graph_;
  const DType dtype_;
  const bool inverse_;
};

}  // namespace

Value factored_dft(Value x, const FactoredDft& dft, bool inverse) {
  return Products(x.graph(), x.dtype(), inverse)
      .apply(x, dft, inverse ? 1 / static_cast<double>(dft.length) : 1);
}

}  // namespace tenon
