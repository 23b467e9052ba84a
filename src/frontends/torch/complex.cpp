// complex.cpp — complex numbers, as pairs of reals along a last dimension: Fourier transforms, and what is
// computed with spectra.
#include <cmath>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/families.h"
#include "frontends/torch/polar.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/signal.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

using Ints = std::vector<int64_t>;

bool is_complex(const NodeView& n, std::string_view name) {
  const TensorMeta* meta = n.argument_meta(name);
  return meta != nullptr && kind(meta->dtype) == DTypeKind::Complex;
}

// The rank of what the pairs stand for.
int64_t rank_of_pairs(const NodeView& n, Value pairs) { return n.rank_of(pairs) - 1; }

struct Parts {
  Value re, im;  // no `im`: real
};

Value part(const NodeView& n, Value pairs, int64_t which) {
  const int64_t axis = rank_of_pairs(n, pairs);
  return squeeze(slice(pairs, axis, which, which + 1), {axis});
}

Parts split_pairs(const NodeView& n, Value pairs) { return {part(n, pairs, 0), part(n, pairs, 1)}; }

Value join_pairs(const NodeView& n, Parts parts) {
  if (!parts.im)
    parts.im = parts.re * 0.0;
  if (parts.re.type() != parts.im.type()) {
    parts.re = broadcast_to(parts.re, shape_of(parts.im));
    parts.im = broadcast_to(parts.im, shape_of(parts.re));
  }
  const int64_t rank = n.rank_of(parts.re);
  return concat({unsqueeze(parts.re, {rank}), unsqueeze(parts.im, {rank})}, rank);
}

DType real_dtype(DType dtype) {
  return dtype == DType::C128 ? DType::F64 : dtype == DType::C64 ? DType::F32 : dtype;
}

// An operand of arithmetic, in the dtype of the result's parts.
Parts operand(const NodeView& n, std::string_view name) {
  const DType dtype = real_dtype(n.result_dtype(0, DType::C64));
  const Term term = n.term(name);
  if (!term.is_tensor() || !is_complex(n, name))
    return {as_value(n.graph(), term, dtype), {}};
  return split_pairs(n, in_dtype(term.value(), dtype));
}

Parts product(const Parts& a, const Parts& b) {
  if (!a.im && !b.im)
    return {a.re * b.re, {}};
  if (!a.im)
    return {a.re * b.re, a.re * b.im};
  if (!b.im)
    return {a.re * b.re, a.im * b.re};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

std::vector<Value> convert_mul(const NodeView& n) {
  return {join_pairs(n, product(operand(n, "self"), operand(n, "other")))};
}

std::vector<Value> convert_div(const NodeView& n) {
  const Parts a = operand(n, "self"), b = operand(n, "other");
  if (!b.im)
    return {join_pairs(n, {a.re / b.re, a.im ? a.im / b.re : Value()})};
  // Scaled by its longer part, lest the squares overflow.
  const Value longer = maximum(abs(b.re), abs(b.im));
  const Parts unit = {b.re / longer, b.im / longer};
  const Value square = (unit.re * unit.re + unit.im * unit.im) * longer;
  const Parts conjugate = {unit.re, -unit.im}, quotient = product(a, conjugate);
  return {join_pairs(n, {quotient.re / square, quotient.im / square})};
}

Convert sum_with(double sign) {
  return [sign](const NodeView& n) -> std::vector<Value> {
    const Parts a = operand(n, "self"), b = operand(n, "other");
    const Value alpha =
        as_value(n.graph(), n.has("alpha") ? n.term("alpha") : Term(1.0), a.re.dtype()) * sign;
    const Value re = a.re + b.re * alpha;
    const Value im = !b.im ? a.im : a.im ? a.im + b.im * alpha : b.im * alpha;
    return {join_pairs(n, {re, im})};
  };
}

// What does with both parts what it does with real numbers.
std::vector<Value> convert_alike(const NodeView& n) {
  if (n.argument_count() == 0 || !is_complex(n, n.spec().inputs.front().name))
    throw unsupported("{}: of a real tensor to complex numbers", n.op());
  const Conversion& of_reals = *find_conversion(n.op()).conversion;
  const Parts parts = split_pairs(n, n.tensor(n.spec().inputs.front().name));
  const std::vector<Value> re = of_reals.convert(NodeView(n, parts.re)),
                           im = of_reals.convert(NodeView(n, parts.im));
  std::vector<Value> results;
  for (size_t i = 0; i < re.size(); ++i)
    results.push_back(join_pairs(n, {re[i], im[i]}));
  return results;
}

std::vector<Value> convert_identity(const NodeView& n) { return {n.tensor(kSelf)}; }
std::vector<Value> convert_complex(const NodeView& n) {
  return {join_pairs(n, {n.tensor("real"), n.tensor("imag")})};
}
std::vector<Value> convert_polar(const NodeView& n) {
  const Value length = n.tensor("abs"), angle = n.tensor("angle");
  return {join_pairs(n, {length * cos(angle), length * sin(angle)})};
}
std::vector<Value> convert_real(const NodeView& n) { return {part(n, n.tensor(kSelf), 0)}; }
std::vector<Value> convert_imag(const NodeView& n) { return {part(n, n.tensor(kSelf), 1)}; }
std::vector<Value> convert_conjugate(const NodeView& n) {
  const Parts parts = split_pairs(n, n.tensor(kSelf));
  return {join_pairs(n, {parts.re, -parts.im})};
}
std::vector<Value> convert_abs(const NodeView& n) {
  const Parts parts = split_pairs(n, n.tensor(kSelf));
  return {length_of(parts.re, parts.im)};
}
std::vector<Value> convert_angle(const NodeView& n) {
  const Parts parts = split_pairs(n, n.tensor(kSelf));
  return {angle_of(parts.im, parts.re)};
}

std::vector<Value> convert_cat(const NodeView& n) {
  const std::vector<Value> parts = n.tensors("tensors");
  return {concat(parts, n.axis("dim", rank_of_pairs(n, parts.front()), 0))};
}

// --- Fourier transforms ---

// How a transform along axes of these many elements in all is scaled.
enum class Scale : uint8_t { None, ByRoot, ByCount };

class Transforms {
 public:
  explicit Transforms(const NodeView& n) : n_(n) {}

  // From a signal, real or of pairs, to its spectrum.
  Value forward(Value x, int64_t axis, Value length = {}) {
    x = dft(x, length, axis, {});
    count(x, axis);
    return x;
  }
  Value forward_real(Value x, int64_t axis, Value length, bool onesided) {
    x = unsqueeze(x, {n_.rank_of(x)});
    // Of a one-sided spectrum, the length of the signal cannot be told.
    length ? count_value(length) : count(x, axis);
    return dft(x, length, axis, {.onesided = onesided});
  }
  // Back, which divides by the length.
  Value inverse(Value x, int64_t axis, Value length = {}) {
    x = dft(x, length, axis, {.inverse = true});
    count(x, axis);
    return x;
  }
  Value inverse_real(Value x, int64_t axis, Value length) {
    x = dft(x, length, axis, {.inverse = true, .onesided = true});
    count(x, axis);
    return squeeze(x, {n_.rank_of(x) - 1});
  }

  Value scaled(Value y, Scale scale, bool is_divided) {
    // Divided by the count already, where it was taken back.
    const int halves = (is_divided ? 2 : 0) - (scale == Scale::None ? 0 : scale == Scale::ByRoot ? 1 : 2);
    if (halves == 0)
      return y;
    if (!dynamic_)
      return y * std::pow(static_cast<double>(known_), halves / 2.0);
    const Value all = in_dtype(*dynamic_ * static_cast<double>(known_), y.dtype());
    const Value factor = halves % 2 == 0 ? all : sqrt(all);
    return halves > 0 ? y * factor : y / factor;
  }

 private:
  void count(Value x, int64_t axis) {
    if (const std::optional<int64_t> size = x.dim(axis).constant())
      known_ *= *size;
    else
      count_value(reshape(size_along(x, axis), Ints{}));
  }
  void count_value(Value length) {
    if (const auto known = length.known_ints(); known && known->size() == 1)
      known_ *= known->front();
    else
      dynamic_ = dynamic_ ? *dynamic_ * reshape(length, Ints{}) : reshape(length, Ints{});
  }

  const NodeView& n_;
  int64_t known_ = 1;
  std::optional<Value> dynamic_;
};

Scale scale_of(const NodeView& n, std::string_view name) {
  const int64_t mode = n.integer(name);  // none, by the root of the count, by the count
  return mode == 0 ? Scale::None : mode == 1 ? Scale::ByRoot : Scale::ByCount;
}

Ints transformed_axes(const NodeView& n) {
  Ints axes = n.integers("dim");
  if (axes.empty())
    throw unsupported("{}: along no dimension", n.op());
  return axes;
}

std::vector<Value> convert_r2c(const NodeView& n) {
  Value x = n.tensor(kSelf);
  const int64_t rank = n.rank_of(x);
  const Ints axes = transformed_axes(n);
  Transforms transforms(n);
  Value y = transforms.forward_real(x, checked_axis(n.op(), axes.back(), rank), {}, n.flag("onesided", true));
  for (size_t i = 0; i + 1 < axes.size(); ++i)
    y = transforms.forward(y, checked_axis(n.op(), axes[i], rank));
  return {transforms.scaled(y, scale_of(n, "normalization"), false)};
}

std::vector<Value> convert_c2c(const NodeView& n) {
  Value x = n.tensor(kSelf);
  const int64_t rank = rank_of_pairs(n, x);
  const bool is_forward = n.flag("forward", true);
  Transforms transforms(n);
  for (int64_t axis : n.integers("dim")) {
    const int64_t along = checked_axis(n.op(), axis, rank);
    x = is_forward ? transforms.forward(x, along) : transforms.inverse(x, along);
  }
  return {transforms.scaled(x, scale_of(n, "normalization"), !is_forward)};
}

std::vector<Value> convert_c2r(const NodeView& n) {
  Value x = n.tensor(kSelf);
  const int64_t rank = rank_of_pairs(n, x);
  const Ints axes = transformed_axes(n);
  Transforms transforms(n);
  for (size_t i = 0; i + 1 < axes.size(); ++i)
    x = transforms.inverse(x, checked_axis(n.op(), axes[i], rank));
  const Value y = transforms.inverse_real(x, checked_axis(n.op(), axes.back(), rank),
                                          n.as_number(n.size("last_dim_size")));
  return {transforms.scaled(y, scale_of(n, "normalization"), true)};
}

// torch.fft's functions, which name lengths and how they scale.
struct Fft {
  bool is_inverse = false, is_real = false;  // of real numbers on one side
  int64_t axes = 1;                          // 0: as many as there are
};

Scale scale_of(const NodeView& n, const Fft& fft) {
  const std::string norm = n.text("norm", "backward");
  if (norm == "ortho")
    return Scale::ByRoot;
  if (norm != "backward" && norm != "forward")
    throw user_error("{}: norm is backward, ortho or forward, but not {}", n.op(), norm);
  return (norm == "backward") == fft.is_inverse ? Scale::ByCount : Scale::None;
}

Convert transform(Fft fft) {
  return [fft](const NodeView& n) -> std::vector<Value> {
    Value x = n.tensor(kSelf);
    const bool has_pairs = is_complex(n, kSelf);
    const int64_t rank = has_pairs ? rank_of_pairs(n, x) : n.rank_of(x);
    const std::string_view length_name = fft.axes == 1 ? "n" : "s";
    const std::vector<Size> lengths = n.has(length_name) ? n.sizes(length_name) : std::vector<Size>();
    Ints axes;
    if (n.has("dim") || fft.axes > 0)
      axes = n.integers("dim", fft.axes == 2 ? Ints{-2, -1} : Ints{-1});
    else
      for (int64_t axis = lengths.empty() ? 0 : rank - std::ssize(lengths); axis < rank; ++axis)
        axes.push_back(axis);
    if (axes.empty())
      throw unsupported("{}: along no dimension", n.op());
    if (!lengths.empty() && lengths.size() != axes.size())
      throw user_error("{}: {} lengths for {} dimensions", n.op(), lengths.size(), axes.size());
    const auto length = [&](size_t i) { return lengths.empty() ? Value() : n.as_number(lengths[i]); };
    const auto axis = [&](size_t i) { return checked_axis(n.op(), axes[i], rank); };
    // A real dtype's own numbers: integers are transformed as floats.
    x = in_dtype(x, real_dtype(n.result_dtype(0, x.dtype())));
    Transforms transforms(n);
    const size_t last = axes.size() - 1;
    if (fft.is_real && !fft.is_inverse)
      x = transforms.forward_real(x, axis(last), length(last), true);
    else if (!has_pairs)
      x = unsqueeze(x, {rank});
    for (size_t i = 0; i < axes.size() - (fft.is_real ? 1 : 0); ++i)
      x = fft.is_inverse ? transforms.inverse(x, axis(i), length(i))
                         : transforms.forward(x, axis(i), length(i));
    if (fft.is_real && fft.is_inverse)
      x = transforms.inverse_real(x, axis(last), length(last));
    return {transforms.scaled(x, scale_of(n, fft), fft.is_inverse)};
  };
}

// --- spectra of frames ---

// The frames of stft and istft: how long they are, and how far apart.
struct Framing {
  int64_t length, step;

  explicit Framing(const NodeView& n)
      : length(n.integer("n_fft")), step(n.integer("hop_length", length / 4)) {
    if (length < 1 || step < 1)
      throw user_error("{}: n_fft is {} and hop_length {}, but both must be at least 1", n.op(), length,
                       step);
  }
};

// The window of stft and istft: ones where none is given, and zeros around one that is shorter than a frame.
Value window_of(const NodeView& n, int64_t length, DType dtype) {
  const int64_t inner = n.integer("win_length", length);
  Value window = n.maybe_tensor("window");
  if (window && is_complex(n, "window"))
    throw unsupported("{}: a window of complex numbers", n.op());
  window =
      window ? in_dtype(window, dtype) : broadcast_to(n.number(dtype, 1), int_vector(n.graph(), {inner}));
  if (inner < 1 || inner > length)
    throw user_error("{}: win_length is {}, but must be from 1 to n_fft, which is {}", n.op(), inner, length);
  if (inner == length)
    return window;
  const int64_t left = (length - inner) / 2;
  return pad(window, int_vector(n.graph(), {left, length - inner - left}), {0});
}

std::vector<Value> convert_stft(const NodeView& n) {
  Value x = n.tensor(kSelf);
  if (is_complex(n, kSelf))
    throw unsupported("{}: of a complex signal", n.op());
  if (n.overload() == "center" && n.flag("center", true))
    throw unsupported("{}: with center, of a signal that is not padded yet", n.op());
  n.ignore("pad_mode");
  if (n.has("align_to_window") && n.flag("align_to_window", false))
    throw unsupported("{}: with align_to_window", n.op());
  n.ignore("return_complex");  // pairs are what both are
  const auto [length, step] = Framing(n);
  const bool has_batch = n.rank_of(x) == 2;
  x = unsqueeze(x, has_batch ? Ints{2} : Ints{0, 2});
  const auto number = [&](int64_t value) { return constant(n.graph(), Tensor::scalar(value)); };
  Value y = stft(x, window_of(n, length, x.dtype()), number(length), number(step), n.flag("onesided", true));
  y = transpose(y, {0, 2, 1, 3});
  if (n.flag("normalized", false))
    y = y * (1 / std::sqrt(static_cast<double>(length)));
  return {has_batch ? y : squeeze(y, {0})};
}

// Frames [batch, frames, length], each `step` elements behind the one before it, added up where they overlap.
// They are cut into pieces of a step, of which those in one place of a frame never overlap.
Value overlap_add(Value frames, int64_t length, int64_t step) {
  constexpr int64_t kMostPieces = 1024;
  Graph& graph = frames.graph();
  const int64_t pieces = (length + step - 1) / step, more = pieces * step - length;
  if (pieces > kMostPieces)
    throw unsupported("istft: frames of {} elements, {} apart", length, step);
  if (more > 0)
    frames = pad(frames, int_vector(graph, {0, more}), {2});
  Value sum;
  for (int64_t i = 0; i < pieces; ++i) {
    const Value piece =
        pad(slice(frames, 2, i * step, (i + 1) * step), int_vector(graph, {i, pieces - 1 - i}), {1});
    sum = sum ? sum + piece : piece;
  }
  const Value signal = reshape(sum, concat({size_along(frames, 0), int_vector(graph, {-1})}, 0));
  return more > 0 ? slice(signal, 1, 0, -more) : signal;
}

std::vector<Value> convert_istft(const NodeView& n) {
  Value x = n.tensor(kSelf);
  if (n.flag("return_complex", false))
    throw unsupported("{}: to a complex signal", n.op());
  const auto [length, step] = Framing(n);
  const bool has_batch = rank_of_pairs(n, x) == 3, is_centred = n.flag("center", true);
  const bool is_onesided = n.flag("onesided", x.dim(has_batch ? 1 : 0) != Dim(length));
  if (!has_batch)
    x = unsqueeze(x, {0});
  x = transpose(x, {0, 2, 1, 3});
  Transforms transforms(n);
  Value frames = is_onesided ? transforms.inverse_real(x, 2, constant(n.graph(), Tensor::scalar(length)))
                             : part(n, transforms.inverse(x, 2), 0);
  if (n.flag("normalized", false))
    frames = frames * std::sqrt(static_cast<double>(length));
  const Value window = window_of(n, length, frames.dtype());
  Value y = overlap_add(frames * window, length, step),
        weight = overlap_add(broadcast_to(window * window, shape_of(slice(frames, 0, 0, 1))), length, step);
  const int64_t start = is_centred ? length / 2 : 0;
  int64_t end = start > 0 ? -start : kToTheEnd, missing = 0;
  if (n.has("length")) {
    end = start + n.integer("length");
    const std::optional<int64_t> there = y.dim(1).constant();
    if (!there)
      throw unsupported("{}: argument length, of a number of frames that is dynamic", n.op());
    missing = std::max<int64_t>(end - *there, 0);
  }
  y = slice(y, 1, start, end) / slice(weight, 1, start, end);
  if (missing > 0)
    y = pad(y, int_vector(n.graph(), {0, missing}), {1});
  return {has_batch ? y : squeeze(y, {0})};
}

}  // namespace

const Conversions& complex_conversions() {
  static const Conversions conversions = [] {
    Conversions all = {
        {"_conj", convert_conjugate, Sharing::View},
        {"_conj_physical", convert_conjugate},
        {"_fft_c2c", convert_c2c},
        {"_fft_c2r", convert_c2r},
        {"_fft_r2c", convert_r2c},
        {"abs", convert_abs},
        {"add", sum_with(1)},
        {"angle", convert_angle},
        {"cat", convert_cat},
        {"complex", convert_complex},
        {"conj", convert_conjugate, Sharing::View},
        {"conj_physical", convert_conjugate},
        {"div", convert_div},
        {"fft_fft", transform({})},
        {"fft_fft2", transform({.axes = 2})},
        {"fft_fftn", transform({.axes = 0})},
        {"fft_ifft", transform({.is_inverse = true})},
        {"fft_ifft2", transform({.is_inverse = true, .axes = 2})},
        {"fft_ifftn", transform({.is_inverse = true, .axes = 0})},
        {"fft_irfft", transform({.is_inverse = true, .is_real = true})},
        {"fft_irfft2", transform({.is_inverse = true, .is_real = true, .axes = 2})},
        {"fft_irfftn", transform({.is_inverse = true, .is_real = true, .axes = 0})},
        {"fft_rfft", transform({.is_real = true})},
        {"fft_rfft2", transform({.is_real = true, .axes = 2})},
        {"fft_rfftn", transform({.is_real = true, .axes = 0})},
        {"imag", convert_imag, Sharing::View},
        {"istft", convert_istft},
        {"mul", convert_mul},
        {"polar", convert_polar},
        {"real", convert_real, Sharing::View},
        {"stft", convert_stft},
        {"sub", sum_with(-1)},
        {"view_as_complex", convert_identity, Sharing::View},
        {"view_as_complex_copy", convert_identity},
        {"view_as_real", convert_identity, Sharing::View},
        {"view_as_real_copy", convert_identity},
    };
    for (
        std::string_view op :
        {"_unsafe_view", "alias",    "chunk", "clone",      "contiguous",       "detach",       "detach_copy",
         "expand",       "flatten",  "flip",  "lift_fresh", "lift_fresh_copy",  "mean",         "mT",
         "movedim",      "narrow",   "neg",   "permute",    "reshape",          "resolve_conj", "resolve_neg",
         "roll",         "select",   "slice", "split",      "split_with_sizes", "squeeze",      "sum",
         "swapaxes",     "swapdims", "t",     "transpose",  "unbind",           "unflatten",    "unsqueeze",
         "view"}) {
      const Conversion* of_reals = find_conversion(op).conversion;
      CHECK(of_reals != nullptr, "{} is not converted for reals", op);
      all.push_back({op, convert_alike, of_reals->sharing});
    }
    return all;
  }();
  return conversions;
}

}  // namespace tenon::torch
