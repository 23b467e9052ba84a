#include "ops/signal.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "ir/size_condition.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/lanes.h"
#include "ops/linear.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

// The dtype that a result is asked to have.
DType result_dtype(const Node& n) {
  const DType dtype = n.attr("dtype");
  if (!Numbers.contains(dtype))
    throw operand_error(n, fmt::format("dtype is {}, but only numbers will do", dtype));
  return dtype;
}

// --- dft ---

namespace dft_op {

// Which axis, counted from the front. The last one holds the parts of the numbers.
int64_t signal_axis(int64_t axis, int64_t rank) {
  axis = checked_axis("dft", axis, rank);
  if (axis == rank - 1)
    throw user_error("dft: axis {} is the last, which holds the real and imaginary parts", axis);
  return axis;
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  const bool inverse = n.attr("inverse"), onesided = n.attr("onesided");
  if (!x.shape().ranked())
    return {x.type()};
  if (x.rank() < 2)
    throw operand_error(n, "x needs an axis for the signal and one for the parts of its numbers");
  const Dim& parts = x.dim(-1);
  assume_at_most(onesided && inverse ? 2 : 1, parts);
  assume_at_most(parts, onesided && !inverse ? 1 : 2);
  if (parts.is_constant() && parts != Dim(2) && (parts != Dim(1) || (onesided && inverse)))
    throw operand_error(n, fmt::format("the last dimension is {}, but must be {}", parts,
                                       onesided && inverse ? "2 (complex)" : "1 (real) or 2 (complex)"));
  if (onesided && !inverse && parts == Dim(2))
    throw operand_error(n, "only a real signal has a one-sided spectrum, but x is complex");
  std::vector<Dim> dims = x.shape().dims();
  dims.back() = onesided && inverse ? 1 : 2;
  if (n.is_late("axis")) {
    std::fill(dims.begin(), dims.end() - 1, Dim());
    return {Type::tensor(x.dtype(), dims)};
  }
  Dim& size = dims[static_cast<size_t>(signal_axis(n.attr("axis"), x.rank()))];
  if (n.has("length"))
    size = known_number(n, "length");
  else if (onesided && inverse)
    size = 2 * (size - 1);
  assume_at_most(1, size);
  if (size.is_constant() && *size.constant() < 1)
    throw operand_error(n, fmt::format("the length of the signal is {}, but must be at least 1", size));
  if (onesided && !inverse)
    size = floor_div(size, 2) + 1;
  return {Type::tensor(x.dtype(), dims)};
}

template <class T>
using Signal = std::vector<std::complex<T>>;

// The n-th roots of one, from e^(∓2πi·0/n) on.
template <class T>
Signal<T> roots(size_t n, bool inverse) {
  Signal<T> roots;
  for (size_t j = 0; j < n; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    roots.emplace_back(static_cast<T>(std::cos(angle)),
                       static_cast<T>(inverse ? std::sin(angle) : -std::sin(angle)));
  }
  return roots;
}

template <class T>
std::complex<T> product(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

size_t smallest_factor(size_t n) {
  for (size_t factor = 2; factor * factor <= n; ++factor)
    if (n % factor == 0)
      return factor;
  return n;
}

// y[k] = Σ x[j] root[jk] for a prime number of elements. Since root[-j] is the conjugate of root[j], x[j] and
// x[-j] only enter by their sum and their difference.
template <class T>
Signal<T> transform_prime(const Signal<T>& x, const Signal<T>& root) {
  const size_t n = x.size(), half = (n + 1) / 2;
  Signal<T> y(n, x[0]);
  if (n == 2)
    return {x[0] + x[1], x[0] - x[1]};
  for (size_t j = 1; j < half; ++j)
    y[0] += x[j] + x[n - j];
  for (size_t k = 1; k < half; ++k) {
    std::complex<T> from_sums = x[0], from_differences = 0;
    for (size_t j = 1; j < half; ++j) {
      const std::complex<T> turn = root[j * k % n];
      from_sums += turn.real() * (x[j] + x[n - j]);
      from_differences += turn.imag() * (x[j] - x[n - j]);
    }
    const std::complex<T> turned = {-from_differences.imag(), from_differences.real()};
    y[k] = from_sums + turned;
    y[n - k] = from_sums - turned;
  }
  return y;
}

// y[k] = Σ x[j] e^(∓2πi·jk/n). With n = p·m, the p sums over every m-th element are transforms of p numbers;
// turned, they are the elements of p signals of length m, whose transforms interleave to y. It rounds to T
// after each step, as those do who compute a signal of that type.
template <class T>
Signal<T> transform(const Signal<T>& x, bool inverse) {
  const size_t n = x.size();
  if (n == 1)
    return x;
  const size_t p = smallest_factor(n), m = n / p;
  const Signal<T> root = roots<T>(n, inverse), root_of_p = roots<T>(p, inverse);
  std::vector<Signal<T>> parts(p, Signal<T>(m));
  for (size_t i = 0; i < m; ++i) {
    Signal<T> every_mth(p);
    for (size_t j = 0; j < p; ++j)
      every_mth[j] = x[i + j * m];
    const Signal<T> sums = transform_prime(every_mth, root_of_p);
    for (size_t k = 0; k < p; ++k)
      parts[k][i] = i * k == 0 ? sums[k] : product(sums[k], root[i * k]);
  }
  Signal<T> y(n);
  for (size_t k = 0; k < p; ++k) {
    const Signal<T> part = transform(parts[k], inverse);
    for (size_t i = 0; i < m; ++i)
      y[i * p + k] = part[i];
  }
  return y;
}

// The other half of a real signal's spectrum mirrors the first, conjugated; what mirrors itself is real.
template <class T>
void mirror(Signal<T>& spectrum) {
  const size_t n = spectrum.size();
  spectrum[0] = spectrum[0].real();
  for (size_t k = 1; k <= n - k; ++k)
    spectrum[n - k] = k == n - k ? spectrum[k].real() : std::conj(spectrum[k]);
}

// What is asked for, of which length, and of which numbers x is made.
struct Task {
  explicit Task(const Call& c)
      : inverse(c.attr("inverse")),
        onesided(c.attr("onesided")),
        parts(c.in("x").extents().back()),
        result_parts(onesided && inverse ? 1 : 2) {
    if (parts != 1 && parts != 2)
      throw user_error("dft: the last dimension is {}, but must be 1 (real) or 2 (complex)", parts);
    if (onesided && (parts == 1) == inverse)
      throw user_error("dft: a one-sided transform takes {} numbers, but the last dimension is {}",
                       inverse ? "complex" : "real", parts);
  }

  // The length of the signal, where x has `given` elements along the axis.
  int64_t signal_length(const Call& c, int64_t given) const {
    int64_t length = given;
    if (c.has("length"))
      length = read_number(c, "length");
    else if (onesided && inverse)
      length = element_count({2, std::max<int64_t>(given - 1, 0)});
    if (length < 1)
      throw user_error("dft: the length of the signal is {}, but must be at least 1", length);
    return length;
  }

  bool inverse, onesided;
  int64_t parts, result_parts;  // 1 for real numbers, 2 for complex ones
};

// The elements of a lane, from the one at `start` on, cut or zero-padded to the length of the signal.
template <class T>
Signal<T> read_signal(const Task& task, int64_t length, const Lanes& lanes, std::span<const double> values,
                      size_t start) {
  const int64_t used = std::min(lanes.length, task.onesided && task.inverse ? length / 2 + 1 : length);
  Signal<T> signal(static_cast<size_t>(length));
  for (int64_t i = 0; i < used; ++i) {
    const auto at = (start + static_cast<size_t>(i * lanes.stride)) * static_cast<size_t>(task.parts);
    signal[static_cast<size_t>(i)] = {static_cast<T>(values[at]),
                                      task.parts == 2 ? static_cast<T>(values[at + 1]) : T{0}};
  }
  if (task.onesided && task.inverse)
    mirror(signal);
  return signal;
}

template <class T>
void write_signal(const Task& task, const Signal<T>& signal, const Lanes& lanes, std::span<double> values,
                  size_t start) {
  const T scale = task.inverse ? T{1} / static_cast<T>(signal.size()) : T{1};
  for (int64_t k = 0; k < lanes.length; ++k) {
    const auto at = (start + static_cast<size_t>(k * lanes.stride)) * static_cast<size_t>(task.result_parts);
    const std::complex<T> number = scale * signal[static_cast<size_t>(k)];
    values[at] = static_cast<double>(number.real());
    if (task.result_parts == 2)
      values[at + 1] = static_cast<double>(number.imag());
  }
}

template <class T>
Data eval_in(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t axis = signal_axis(c.attr("axis"), x.rank());
  const Task task(c);
  const Lanes from({x.extents().begin(), x.extents().end() - 1}, axis);
  const int64_t length = task.signal_length(c, from.length);
  Extents extents = x.extents();
  extents[static_cast<size_t>(axis)] = task.onesided && !task.inverse ? length / 2 + 1 : length;
  extents.back() = task.result_parts;
  std::vector<double> y = zeros<double>(extents);
  const Lanes to({extents.begin(), extents.end() - 1}, axis);
  const std::vector<double> values = widen<double>(x);
  to.for_each([&](size_t start) {
    const auto stride = static_cast<size_t>(to.stride),
               before = start / static_cast<size_t>(to.length * to.stride);
    const size_t first = before * static_cast<size_t>(from.length * from.stride) + start % stride;
    Signal<T> result = transform(read_signal<T>(task, length, from, values, first), task.inverse);
    if (task.parts == 1)
      mirror(result);
    write_signal<T>(task, result, to, y, start);
  });
  return {narrow<double>(x.dtype(), extents, y)};
}

Data eval(const Call& c) { return c.in("x").dtype() == DType::F32 ? eval_in<float>(c) : eval_in<double>(c); }

// The transform is linear: the transforms of all unit signals are its matrix, and the gradient is the product
// with that matrix, transposed.
std::vector<Operand> grad(const GradContext& n) {
  if (n.node().is_late("axis"))
    throw n.decline("the axis must be known before the graph runs");
  const Value x = n.in("x");
  const int64_t axis = signal_axis(n.attr("axis"), x.rank());
  const Value signal = concat({size_along(x, axis), size_along(x, -1)}, 0);
  const Value count = reduce_prod(signal, {0}, Keep::Dims), rest = int_vector(n.graph(), {-1});
  const Value units = reshape(eye(concat({count, count}, 0), x.dtype()), concat({count, signal}, 0));
  Attributes attributes = n.node().attributes();
  attributes.insert_or_assign("axis", int64_t{1});
  const Value spectra =
      n.graph().create("dft", {{"x", units}, {"length", n.in("length")}}, attributes)->result();
  // The axis of the signal next to the last, so that both are one.
  std::vector<int64_t> permutation, inverse(static_cast<size_t>(x.rank()));
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && i != x.rank() - 1)
      permutation.push_back(i);
  permutation.insert(permutation.end(), {axis, x.rank() - 1});
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  const Value dy = transpose(n.dy(), permutation);
  const Value matrix = reshape(spectra, concat({count, rest}, 0));
  const Value rows = matmul(reshape(dy, concat({rest, size_along(matrix, 1)}, 0)), matrix, {.b = true});
  return {{"x", transpose(reshape(rows, shape_of(transpose(x, permutation))), inverse)}};
}

}  // namespace dft_op

// --- frames ---

namespace frames_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (!x.shape().ranked())
    return {x.type()};
  const int64_t axis = checked_axis("frames", n.attr("axis"), x.rank());
  const Dim length = known_number(n, "length"), step = known_number(n, "step");
  assume_at_most(1, step);
  if (step.is_constant() && *step.constant() < 1)
    throw operand_error(n, fmt::format("step is {}, but must be at least 1", step));
  check_size(n, "length", length);
  std::vector<Dim> dims = x.shape().dims();
  dims[static_cast<size_t>(axis)] = max(floor_div(x.dim(axis) - length, step) + 1, 0);
  dims.insert(dims.begin() + axis + 1, length);
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const auto axis = static_cast<size_t>(checked_axis("frames", c.attr("axis"), x.rank()));
  const int64_t length = read_number(c, "length", 0), step = read_number(c, "step", 1);
  const int64_t size = x.extents()[axis], count = length > size ? 0 : (size - length) / step + 1;
  Extents extents = x.extents(), strides = row_major_strides(x.extents());
  extents[axis] = count;
  extents.insert(extents.begin() + static_cast<int64_t>(axis) + 1, length);
  // A single frame takes no step, however large.
  strides.insert(strides.begin() + static_cast<int64_t>(axis), count > 1 ? strides[axis] * step : 0);
  return {gather_strided(x, extents, strides)};
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x");
  const int64_t axis = checked_axis("frames", c.node().attr("axis"), x.rank());
  const Dim step = known_number(c.node(), "step");
  if (step.is_unknown())
    return;
  c.define([&](const Index& at) {
    Index from = at;
    from.erase(from.begin() + axis + 1);
    Scalar& index = from[static_cast<size_t>(axis)];
    index = index * Scalar::index(step) + at[static_cast<size_t>(axis) + 1];
    return c.stored(x, from);
  });
}

// One row of positions for each frame.
std::vector<Value> decompose(const Node& n) {
  const Value x = n.in("x"), length = n.in("length"), step = n.in("step");
  const int64_t axis = checked_axis("frames", n.attr("axis"), x.rank());
  const auto number = [&](double value) { return scalar(x.graph(), DType::I64, value); };
  const Value size = squeeze(size_along(x, axis), {0});
  const Value starts = range(number(0), size - length + number(1), step);
  return {gather(x, unsqueeze(starts, {1}) + range(number(0), length, number(1)), axis)};
}

std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x");
  return {{"x", add_at_positions(n.dy(), n.repeat({{"x", positions_in(x)}}), x)}};
}

}  // namespace frames_op

// --- windows ---

namespace window_op {

Types infer(const Node& n) {
  const Dim size = known_number(n, "size");
  check_size(n, "size", size);
  return {Type::tensor(result_dtype(n), {size})};
}

// a0 - a1 cos(2πi/n) + a2 cos(4πi/n) - …, where n is the size of a periodic window, and one less for a
// symmetric one. A symmetric window of one element is just its peak.
Data eval(const Call& c) {
  const int64_t size = read_number(c, "size", 0);
  const bool periodic = c.attr("periodic");
  const std::vector<double> coefficients = c.attr("coefficients").as<Attribute::Floats>();
  const DType dtype = c.attr("dtype");
  std::vector<double> y = zeros<double>({size});
  for (size_t i = 0; i < y.size(); ++i) {
    const double position = y.size() == 1 && !periodic
                                ? 0.5
                                : static_cast<double>(i) / static_cast<double>(periodic ? size : size - 1);
    for (size_t k = 0; k < coefficients.size(); ++k)
      y[i] += (k % 2 == 0 ? 1 : -1) * coefficients[k] *
              std::cos(2 * std::numbers::pi * static_cast<double>(k) * position);
  }
  return {narrow<double>(dtype, {size}, y)};
}

// Integers are truncated, so that the last bit of a cosine would make a difference of 1: eval's do.
void lower(LowerContext& c) {
  const Value y = c.node().result();
  const bool periodic = c.node().attr("periodic");
  const std::vector<double>& coefficients = c.node().attr("coefficients").as<Attribute::Floats>();
  if (!is_float(y.dtype()))
    return;
  const auto number = [](double value) { return loops::constant(DType::F64, value); };
  c.define([&](const Index& at) {
    const Scalar period = Scalar::cast(DType::F64, Scalar::index(periodic ? y.dim(0) : y.dim(0) - 1));
    const Scalar part = Scalar::cast(DType::F64, at[0]) / period;
    const Scalar position = periodic ? part : select(equal(period, number(0)), number(0.5), part);
    Scalar sum = number(0);
    for (size_t k = 0; k < coefficients.size(); ++k) {
      const Scalar angle = position * number(2 * std::numbers::pi * static_cast<double>(k));
      const double sign = k % 2 == 0 ? 1 : -1;
      sum = sum + Scalar::apply(loops::Function::Cos, {angle}) * (sign * coefficients[k]);
    }
    return sum;
  });
}

}  // namespace window_op

// --- mel_weights ---

namespace mel_op {

Types infer(const Node& n) {
  for (std::string_view operand : {"sample_rate", "lower", "upper"})
    known_number(n, operand);
  const Dim length = known_number(n, "dft_length"), bins = known_number(n, "mel_bins");
  check_size(n, "dft_length", length);
  check_size(n, "mel_bins", bins);
  return {Type::tensor(result_dtype(n), {floor_div(length, 2) + 1, bins})};
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Column m is a triangle: up from the spectral bin of edge m to 1 at that of edge m + 1, and down to that of
// edge m + 2. The edges are equally spaced in mel.
Data eval(const Call& c) {
  const int64_t columns = read_number(c, "mel_bins", 0), length = read_number(c, "dft_length", 0),
                rate = read_number(c, "sample_rate", 1), rows = length / 2 + 1;
  const double low = to_mel(as_double(read_only_element(c, "lower"))),
               high = to_mel(as_double(read_only_element(c, "upper")));
  const DType dtype = c.attr("dtype");
  std::vector<double> y = zeros<double>({rows, columns});
  const auto bin = [&](int64_t edge) {
    const double mel = low + (high - low) * static_cast<double>(edge) / static_cast<double>(columns + 2);
    return std::floor((static_cast<double>(length) + 1) * to_hertz(mel) / static_cast<double>(rate));
  };
  for (int64_t m = 0; m < columns; ++m) {
    const double left = bin(m), centre = bin(m + 1), right = bin(m + 2);
    for (int64_t row = 0; row < rows; ++row) {
      const auto at = static_cast<double>(row);
      double& weight = y[static_cast<size_t>(row * columns + m)];
      if (at == centre)
        weight = 1;
      else if (left <= at && at < centre)
        weight = (at - left) / (centre - left);
      else if (centre < at && at < right)
        weight = (right - at) / (right - centre);
    }
  }
  return {narrow<double>(dtype, {rows, columns}, y)};
}

}  // namespace mel_op

}  // namespace

const Family& signal_ops() {
  static const AttributeDecl dtype = {"dtype", AttributeKind::DType, "the dtype of the result", DType::F32};
  static const Family ops = {
      {.name = "dft",
       .doc =
           "the discrete Fourier transform along one axis; the last dimension holds real and imaginary parts",
       .operands = {{"x", "T"}, {"length", "i64", Arity::Optional}},
       .attributes = {{"axis", AttributeKind::Int, "the axis of the signal; cut or zero-padded to length", -2,
                       Binding::Late},
                      {"inverse", AttributeKind::Bool, "from the spectrum to the signal", false},
                      {"onesided", AttributeKind::Bool,
                       "the signal is real, and its spectrum given without the mirrored half", false}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .traits = {.takes_unranked = true},
       .infer = dft_op::infer,
       .eval = dft_op::eval,
       .grad = dft_op::grad},
      {.name = "frames",
       .doc = "windows of an axis, one every step elements: frame i, element j is element i·step + j",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"length", "i64"}, {"step", "i64"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis that becomes two: frames, and their elements"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = frames_op::infer,
       .eval = frames_op::eval,
       .lower = frames_op::lower,
       .grad = frames_op::grad,
       .decompose = frames_op::decompose},
      {.name = "cosine_window",
       .doc = "a0 - a1·cos(2πi/n) + a2·cos(4πi/n) - …: Hann, Hamming, Blackman and their kind",
       .category = Category::Data,
       .operands = {{"size", "i64"}},
       .attributes = {{"coefficients", AttributeKind::Floats, "a0, a1, …"},
                      {"periodic", AttributeKind::Bool, "n is the size; else one less, which is symmetric",
                       true},
                      dtype},
       .results = {{"y", "$dtype"}},
       .traits = {.takes_unranked = true},
       .infer = window_op::infer,
       .eval = window_op::eval,
       .lower = window_op::lower},
      {.name = "mel_weights",
       .doc = "weights that gather a one-sided spectrum into bands of equal width on the mel scale",
       .category = Category::Data,
       .operands = {{"mel_bins", "i64"},
                    {"dft_length", "i64"},
                    {"sample_rate", "i64"},
                    {"lower", "T"},
                    {"upper", "T"}},
       .attributes = {dtype},
       .results = {{"y", "$dtype"}},
       .types = {{"T", Floats}},
       .traits = {.takes_unranked = true},
       .infer = mel_op::infer,
       .eval = mel_op::eval},
  };
  return ops;
}

Value dft(Value x, Value length, int64_t axis, Transform transform) {
  return x.graph()
      .create("dft", {{"x", x}, {"length", length}},
              {{"axis", axis}, {"inverse", transform.inverse}, {"onesided", transform.onesided}})
      ->result();
}

Value frames(Value x, Value length, Value step, int64_t axis) {
  return x.graph()
      .create("frames", {{"x", x}, {"length", length}, {"step", step}}, {{"axis", axis}})
      ->result();
}

Value stft(Value signal, Value window, Value length, Value step, bool onesided) {
  Value framed = frames(signal, length, step, 1);
  if (window)
    framed = framed * unsqueeze(window, {1});
  return dft(framed, {}, -2, {.onesided = onesided});
}

}  // namespace tenon
