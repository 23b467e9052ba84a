#include "passes/target/quantized_operands.h"

#include <algorithm>
#include <span>

#include "ops/binary.h"
#include "ops/convolve_gradient.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/widening_conv.h"
#include "ops/widening_matmul.h"

namespace tenon {
namespace {

constexpr int64_t kDot = 4;       // products of bytes that one instruction adds
constexpr int32_t kOffset = 128;  // between a byte with a sign and one without

Value number(Graph& graph, int32_t value) { return constant(graph, Tensor::scalar<int32_t>(value)); }

std::optional<int32_t> known_number(const std::optional<Value>& value) {
  if (!value)
    return 0;
  const Literal* literal = literal_of(*value);
  return literal != nullptr && literal->count() == 1
             ? std::optional(literal->tensor().data<int32_t>().front())
             : std::nullopt;
}

// Bytes without a sign, and what is still to be subtracted from them.
QuantizedOperand without_sign(const QuantizedOperand& x) {
  if (x.bytes.dtype() == DType::U8)
    return x;
  Graph& graph = x.bytes.graph();
  const std::optional<int32_t> known = known_number(x.zero_point);
  return {cast(cast(x.bytes, DType::I32) + number(graph, kOffset), DType::U8),
          known ? number(graph, *known + kOffset) : *x.zero_point + number(graph, kOffset)};
}

// --- sums of whole dot products ---

constexpr int64_t kFew = 16;  // products of a sum, to which none are added

int64_t missing_in_dot(int64_t count) { return count < kFew ? 0 : (kDot - count % kDot) % kDot; }

// More weights along an axis, that count as 0; nothing where a zero point has no room in a byte.
std::optional<QuantizedWeights> lengthened(const QuantizedWeights& w, int64_t column_axis, int64_t axis,
                                           int64_t more) {
  const int64_t least = w.bytes.dtype() == DType::I8 ? INT8_MIN : 0;
  if (std::ranges::any_of(w.zero_points, [&](int32_t z) { return z < least || z > least + UINT8_MAX; }))
    return std::nullopt;
  Extents extents = w.bytes.extents();
  extents[static_cast<size_t>(axis)] += more;
  const Extents strides = row_major_strides(extents);
  const auto place = [&](int64_t index, int64_t along) {
    return index / strides[static_cast<size_t>(along)] % extents[static_cast<size_t>(along)];
  };
  Tensor bytes(w.bytes.dtype(), extents);
  const std::span<std::byte> to = bytes.mutable_bytes();
  auto from = w.bytes.bytes().begin();
  for (int64_t i = 0; i < bytes.count(); ++i) {
    const bool is_added = place(i, axis) >= w.bytes.extent(axis);
    const size_t column = w.zero_points.size() == 1 ? 0 : static_cast<size_t>(place(i, column_axis));
    to[static_cast<size_t>(i)] = is_added ? static_cast<std::byte>(w.zero_points[column]) : *from++;
  }
  return QuantizedWeights{std::move(bytes), w.zero_points};
}

// As many bytes more along an axis, whatever they are.
QuantizedOperand lengthened(const QuantizedOperand& x, int64_t axis, int64_t more) {
  return {pad(x.bytes, int_vector(x.bytes.graph(), {0, more}), {axis}), x.zero_point};
}

// The weights of columns or filters as bytes with a sign, which lie as they did: row after row, or column
// after column.
class Columns {
 public:
  Columns(const QuantizedWeights& w, int64_t count, bool by_rows)
      : rows_(count == 0 ? 0 : w.bytes.count() / count),
        by_rows_(by_rows),
        bytes_(static_cast<size_t>(w.bytes.count())),
        zero_points_(static_cast<size_t>(count)) {
    const bool has_sign = w.bytes.dtype() == DType::I8;
    const std::span<const std::byte> all = w.bytes.bytes();
    const auto byte = [&](size_t place) {
      const auto raw = static_cast<uint8_t>(all[place]);
      return has_sign ? static_cast<int8_t>(raw) : static_cast<int32_t>(raw);
    };
    // Zero points are subtracted now where all that is left has room in a byte.
    std::vector<int32_t> least(zero_points_.size(), 0), greatest(zero_points_.size(), 0);
    for_each_byte([&](size_t column, size_t place) {
      const int32_t shifted = byte(place) - zero_point_of(w, column);
      least[column] = std::min(least[column], shifted);
      greatest[column] = std::max(greatest[column], shifted);
    });
    std::vector<int32_t> subtracted(zero_points_.size());
    for (size_t column = 0; column < zero_points_.size(); ++column) {
      const bool fits = least[column] >= INT8_MIN && greatest[column] <= INT8_MAX;
      subtracted[column] = fits ? zero_point_of(w, column) : has_sign ? 0 : kOffset;
      zero_points_[column] = zero_point_of(w, column) - subtracted[column];
    }
    for_each_byte([&](size_t column, size_t place) {
      bytes_[place] = static_cast<int8_t>(byte(place) - subtracted[column]);
    });
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return std::ssize(zero_points_); }
  int8_t at(int64_t row, int64_t column) const {
    return bytes_[static_cast<size_t>(by_rows_ ? row * columns() + column : column * rows_ + row)];
  }
  // What is still to be subtracted.
  const std::vector<int32_t>& zero_points() const { return zero_points_; }

  std::vector<int32_t> sums() const {
    std::vector<int32_t> sums(zero_points_.size(), 0);
    for_each_byte([&](size_t column, size_t place) { sums[column] += bytes_[place]; });
    return sums;
  }

  // Row after row.
  Tensor matrix() const {
    Tensor result(DType::I8, {rows_, columns()});
    const std::span<int8_t> into = result.mutable_data<int8_t>();
    const auto count = static_cast<size_t>(columns()), rows = static_cast<size_t>(rows_);
    for_each_byte([&](size_t column, size_t place) {
      into[by_rows_ ? place : (place - column * rows) * count + column] = bytes_[place];
    });
    return result;
  }
  // As they lie.
  Tensor as_they_lie(const Extents& extents) const {
    Tensor result(DType::I8, extents);
    std::ranges::copy(bytes_, result.mutable_data<int8_t>().begin());
    return result;
  }

 private:
  static int32_t zero_point_of(const QuantizedWeights& w, size_t column) {
    return w.zero_points[w.zero_points.size() == 1 ? 0 : column];
  }

  // Calls f(column, place) for all bytes as they lie.
  template <class F>
  void for_each_byte(F&& f) const {
    const auto rows = static_cast<size_t>(rows_), count = zero_points_.size();
    if (by_rows_) {
      for (size_t row = 0; row < rows; ++row)
        for (size_t column = 0; column < count; ++column)
          f(column, row * count + column);
      return;
    }
    for (size_t column = 0; column < count; ++column)
      for (size_t row = 0; row < rows; ++row)
        f(column, column * rows + row);
  }

  int64_t rows_;
  bool by_rows_;
  std::vector<int8_t> bytes_;
  std::vector<int32_t> zero_points_;
};

bool are_zero(const std::vector<int32_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int32_t each) { return each == 0; });
}

Value vector_of(Graph& graph, const std::vector<int32_t>& numbers) {
  return constant(graph, Tensor::of(numbers));
}

// --- convolutions ---

// Filters are columns, whose rows are channels and cells: [filters, channels / groups, kernel…].
struct Filters {
  const Columns& columns;
  Extents extents;  // of the weights

  // Whether sums of products with bytes are exact in floats. Weights less a zero point have a bit more.
  bool sums_fit_floats() const {
    const std::vector<int32_t>& left = columns.zero_points();
    return std::ranges::all_of(left, [](int32_t each) { return each >= INT8_MIN && each <= INT8_MAX; }) &&
           tenon::sums_fit_floats((are_zero(left) ? 1 : 2) * columns.rows());
  }

  Tensor bytes() const { return columns.as_they_lie(extents); }
  Tensor floats() const {
    Tensor result(DType::F32, extents);
    const std::span<float> into = result.mutable_data<float>();
    for (int64_t i = 0; i < result.count(); ++i)
      into[static_cast<size_t>(i)] = static_cast<float>(weight(i));
    return result;
  }
  // For each filter, that of its weights.
  std::vector<int32_t> sums() const {
    std::vector<int32_t> sums(static_cast<size_t>(columns.columns()));
    for (int64_t i = 0; i < columns.columns() * columns.rows(); ++i)
      sums[static_cast<size_t>(i / columns.rows())] += weight(i);
    return sums;
  }
  // The weight at a place among all of them, less its zero point.
  int32_t weight(int64_t place) const {
    const int64_t filter = place / columns.rows();
    return columns.at(place % columns.rows(), filter) - columns.zero_points()[static_cast<size_t>(filter)];
  }
};

bool is_byte(int32_t number) { return number >= 0 && number <= UINT8_MAX; }

// Whether an integer is a byte of this kind that was widened.
bool was_byte(Value value, DType dtype) {
  while (!value.is_input() && value.node()->is("reshape"))
    value = value.node()->operand(0);
  return !value.is_input() && value.node()->is("cast") && value.node()->operand(0).dtype() == dtype;
}

// A convolution of bytes without a sign, around which their zero point stands.
class ByteSums {
 public:
  ByteSums(QuantizedOperand x, const Filters& filters, WideningConvolution how)
      : x_(std::move(x)), filters_(filters), how_(std::move(how)) {}

  Value run(bool in_integers) {
    // One that running tells cannot be the border of a kernel, and what is summed besides sees it, too.
    const std::optional<int32_t> known = known_number(x_.zero_point);
    const bool subtracts_later = in_integers && !are_zero(filters_.columns.zero_points());
    if (!known || subtracts_later)
      pad_image();
    else
      how_.border = *known;
    Value sum = in_integers ? widening_conv(x_.bytes, constant(graph(), filters_.bytes()), DType::I32, how_)
                            : widening_conv(x_.bytes, constant(graph(), filters_.floats()), DType::F32, how_);
    if (known != 0) {
      std::vector<int32_t> sums = in_integers ? filters_.columns.sums() : filters_.sums();
      for (int32_t& each : sums)
        each = static_cast<int32_t>(int64_t{each} * known.value_or(1));
      const Value shift = by_filter(sums);
      sum = sum - cast(known ? shift : *x_.zero_point * shift, sum.dtype());
    }
    return subtracts_later ? sum - sums_of_windows() * by_filter(filters_.columns.zero_points()) : sum;
  }

 private:
  Graph& graph() const { return x_.bytes.graph(); }

  void pad_image() {
    std::vector<int64_t> before, after, axes;
    for (Slide& slide : how_.window.slides) {
      before.push_back(std::exchange(slide.before, 0));
      after.push_back(std::exchange(slide.after, 0));
      axes.push_back(std::ssize(axes) + 2);
    }
    before.insert(before.end(), after.begin(), after.end());
    if (std::ranges::all_of(before, [](int64_t each) { return each == 0; }))
      return;
    const Value border =
        x_.zero_point ? cast(reshape(*x_.zero_point, std::vector<int64_t>()), DType::U8) : Value();
    x_.bytes = pad(x_.bytes, int_vector(graph(), before), axes, border);
  }

  // Of all channels, each less the zero point: [batch, 1, windows…].
  Value sums_of_windows() const {
    const Value pixels = reduce_sum(cast(x_.bytes, DType::I32), {1}, Keep::Dims);
    Extents extents(filters_.extents.size(), 1);
    std::copy(filters_.extents.begin() + 2, filters_.extents.end(), extents.begin() + 2);
    const Value sums =
        graph()
            .create("conv", {{"x", pixels}, {"w", constant(graph(), filled(DType::I32, extents, 1))}},
                    window_attributes(how_.window, 1))
            ->result();
    const auto count = static_cast<int32_t>(filters_.columns.rows());
    return x_.zero_point ? sums - *x_.zero_point * number(graph(), count) : sums;
  }

  Value by_filter(const std::vector<int32_t>& numbers) const {
    Extents along(how_.window.slides.size() + 1, 1);
    along[0] = std::ssize(numbers);
    return constant(graph(), Tensor::of<int32_t>(numbers, along));
  }

  QuantizedOperand x_;
  const Filters& filters_;
  WideningConvolution how_;
};

}  // namespace

std::optional<Value> quantized_product(const Node& matmul, const QuantizedOperand& x,
                                       const QuantizedWeights& w) {
  const bool transposed = matmul.attr("transpose_b");
  if (matmul.attr("transpose_a") || w.bytes.extents().size() != 2 || x.bytes.rank() < 2)
    return std::nullopt;
  const int64_t rows = w.bytes.extent(transposed ? 1 : 0), count = w.bytes.extent(transposed ? 0 : 1);
  if (rows == 0 || x.bytes.dim(-1) != Dim(rows))
    return std::nullopt;
  if (const int64_t missing = missing_in_dot(rows); missing > 0) {
    const std::optional<QuantizedWeights> more =
        lengthened(w, transposed ? 0 : 1, transposed ? 1 : 0, missing);
    return more ? quantized_product(matmul, lengthened(x, x.bytes.rank() - 1, missing), *more) : std::nullopt;
  }
  if (rows % kDot != 0)
    return std::nullopt;
  Graph& graph = x.bytes.graph();
  const Columns columns(w, count, !transposed);
  const auto [bytes, zero_point] = without_sign(x);
  Value sum = widening_matmul(bytes, constant(graph, columns.matrix()), DType::I32);
  if (zero_point)
    sum = sum - *zero_point * vector_of(graph, columns.sums());
  if (!are_zero(columns.zero_points())) {
    Value sum_of_x = reduce_sum(cast(bytes, DType::I32), {-1}, Keep::Dims);
    if (zero_point)
      sum_of_x = sum_of_x - *zero_point * number(graph, static_cast<int32_t>(rows));
    sum = sum - sum_of_x * vector_of(graph, columns.zero_points());
  }
  return sum;
}

std::optional<Value> quantized_convolution(const Node& conv, const QuantizedOperand& x,
                                           const QuantizedWeights& w) {
  const Extents& extents = w.bytes.extents();
  const std::optional<Window> window =
      explicit_window(conv, x.bytes, std::vector<Dim>(extents.begin() + 2, extents.end()));
  const int64_t groups = conv.attr("groups");
  if (!window || w.bytes.count() == 0)
    return std::nullopt;
  if (const int64_t missing = groups == 1 ? missing_in_dot(extents[1]) : 0; missing > 0)
    if (const std::optional<QuantizedWeights> more = lengthened(w, 0, 1, missing))
      return quantized_convolution(conv, lengthened(x, 1, missing), *more);
  const Columns columns(w, extents[0], false);
  const Filters filters{columns, extents};
  // Lanes that are filters of different groups would each read bytes of their own.
  const bool in_integers = extents[1] % kDot == 0 && (groups == 1 || extents[0] / groups % kDot == 0);
  const std::optional<int32_t> known = known_number(x.zero_point);
  if ((!are_zero(columns.zero_points()) && groups != 1) || (!in_integers && !filters.sums_fit_floats()) ||
      (known ? !is_byte(*known + (x.bytes.dtype() == DType::I8 ? kOffset : 0))
             : !was_byte(*x.zero_point, x.bytes.dtype())))
    return std::nullopt;
  Graph& graph = x.bytes.graph();
  // Few channels that all filters share are made floats once for all.
  if (!in_integers && groups == 1 && x.zero_point) {
    const Value floats = cast(x.bytes, DType::F32) - cast(*x.zero_point, DType::F32);
    return graph.create("conv", {{"x", floats}, {"w", constant(graph, filters.floats())}}, conv.attributes())
        ->result();
  }
  return ByteSums(without_sign(x), filters, {.window = *window, .groups = groups}).run(in_integers);
}

}  // namespace tenon
