#include "ops/sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <numeric>

#include "ir/size_condition.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/indices.h"
#include "ops/lanes.h"
#include "ops/lower.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// --- top_k ---

namespace top_k_op {

// A number that comes before another's as the element does (order.h): NaN last, and -0 as 0.
uint64_t rank_of(double x) {
  constexpr uint64_t sign = uint64_t{1} << 63;
  if (std::isnan(x))
    return ~uint64_t{0};
  const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}
uint64_t rank_of(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63); }
uint64_t rank_of(uint64_t x) { return x; }

struct Ranked {
  uint64_t rank;
  int64_t place;

  auto operator<=>(const Ranked&) const = default;  // of equal elements the first comes first
};

// Of the elements of a lane, `stride` apart: the first in the order of ranks, or in reverse.
template <class T>
class Selection {
 public:
  Selection(const T* values, int64_t size, size_t stride, bool largest, std::vector<Ranked>& selected)
      : values_(values), size_(size), stride_(stride), largest_(largest), selected_(selected) {}

  void run(int64_t count) {
    selected_.clear();
    const bool by_heap = size_ > kBlock && count <= size_ / kMany;
    int64_t i = 0;
    for (; i < (by_heap ? count : size_); ++i)
      selected_.push_back(at(i));
    const auto end = selected_.begin() + count;
    if (by_heap) {
      std::ranges::make_heap(selected_);
      for (; stride_ == 1 && i + kBlock <= size_; i += kBlock)
        if (may_be_among(i))
          offer(i, i + kBlock);
      offer(i, size_);
    } else if (size_ > kBlock) {
      std::nth_element(selected_.begin(), end, selected_.end());
    } else {
      return std::partial_sort(selected_.begin(), end, selected_.end());
    }
    std::sort(selected_.begin(), end);
  }

 private:
  static constexpr int64_t kBlock = 64;  // elements that one vectorised loop compares with the last selected
  static constexpr int64_t kMany = 8;    // of how many one must be selected that a heap takes longer

  T value(int64_t i) const { return values_[static_cast<size_t>(i) * stride_]; }
  Ranked at(int64_t i) const {
    const uint64_t rank = rank_of(value(i));
    return {largest_ ? ~rank : rank, i};
  }
  // NaN is always offered.
  bool may_be_among(int64_t begin) const {
    const T last = value(selected_.front().place);
    bool any = false;
    for (int64_t i = begin; i < begin + kBlock; ++i)
      any |= largest_ ? !(values_[i] <= last) : !(values_[i] >= last);
    return any;
  }
  void offer(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (const Ranked each = at(i); each < selected_.front()) {
        std::ranges::pop_heap(selected_);
        selected_.back() = each;
        std::ranges::push_heap(selected_);
      }
  }

  const T* values_;
  const int64_t size_;
  const size_t stride_;
  const bool largest_;
  std::vector<Ranked>& selected_;  // in a heap, the last is the front
};

Types infer(const Node& n) {
  const Value x = n.in("x");
  const int64_t axis = checked_axis("top_k", n.attr("axis"), x.rank());
  const Dim count = known_number(n, "k");
  std::vector<Dim> dims = x.shape().dims();
  Dim& size = dims[static_cast<size_t>(axis)];
  assume_at_most(0, count);
  assume_at_most(count, size);
  if (count.constant().value_or(0) < 0 || (size - count).constant().value_or(0) < 0)
    throw operand_error(n, fmt::format("k is {}, but axis {} has {} elements", count, axis, size));
  size = count;
  return {Type::tensor(x.dtype(), dims), Type::tensor(DType::I64, dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t axis = checked_axis("top_k", c.attr("axis"), x.rank());
  const int64_t size = x.extent(axis), count = read_number(c, "k");
  const bool largest = c.attr("largest");
  if (count < 0 || count > size)
    throw user_error("top_k: k is {}, but axis {} has {} elements", count, axis, size);
  Extents extents = x.extents();
  extents[static_cast<size_t>(axis)] = count;
  Tensor indices(DType::I64, extents);
  if (indices.count() == 0)
    return {Tensor(x.dtype(), extents), indices};
  const Lanes lanes(x.extents(), axis);
  const auto select = [&]<class T>(std::span<const T> values) {
    const std::span<int64_t> to = indices.mutable_data<int64_t>();
    const auto stride = static_cast<size_t>(lanes.stride);
    std::vector<Ranked> order;
    lanes.for_each([&](size_t start) {
      Selection<T>(values.data() + start, size, stride, largest, order).run(count);
      // The lane of the result is the same, but for its length.
      const size_t before = start / (static_cast<size_t>(size) * stride);
      const size_t first = before * static_cast<size_t>(count) * stride + start % stride;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        to[first + i * stride] = order[i].place;
    });
  };
  if (x.dtype() == DType::F32)
    select(x.data<float>());
  else
    with_wide(x.dtype(), [&]<class T>(T) { select(std::span<const T>(widen<T>(x))); });
  const Places places = places_of_elements("top_k", x.extents(), indices, axis);
  return {read_places(x, places), indices};
}

std::vector<Operand> grad(const GradContext& n) {
  return {{"x", scatter_elements(zeros_like(n.in("x")), n.out(1), n.dy(), n.attr("axis"), "add")}};
}

}  // namespace top_k_op

// --- unique ---

namespace unique_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const int64_t axis = checked_axis("unique", n.attr("axis"), x.rank());
  std::vector<Dim> dims = x.shape().dims();
  const Dim size = std::exchange(dims[static_cast<size_t>(axis)], Dim());
  return {Type::tensor(x.dtype(), dims), Type::tensor(DType::I64, {Dim()}), Type::tensor(DType::I64, {size}),
          Type::tensor(DType::I64, {Dim()})};
}

// The positions of slices, grouped by what they hold: the groups in ascending order, positions within too.
// Row i of `rows` holds the elements of slice i.
template <class T>
std::vector<std::vector<int64_t>> group(const std::vector<T>& rows, int64_t count) {
  const auto width = static_cast<int64_t>(rows.size()) / std::max<int64_t>(count, 1);
  const auto row = [&](int64_t i) { return rows.begin() + i * width; };
  const auto row_before = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(row(a), row(a + 1), row(b), row(b + 1), comes_before);
  };
  std::vector<int64_t> order = count_up(count);
  std::stable_sort(order.begin(), order.end(), row_before);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t position : order) {
    if (groups.empty() || row_before(groups.back().front(), position))
      groups.emplace_back();
    groups.back().push_back(position);
  }
  return groups;
}

// The slices of x along `axis`, one after the other.
Tensor slices(const Tensor& x, int64_t axis) {
  Extents extents = x.extents(), strides = row_major_strides(extents);
  std::rotate(extents.begin(), extents.begin() + axis, extents.begin() + axis + 1);
  std::rotate(strides.begin(), strides.begin() + axis, strides.begin() + axis + 1);
  return gather_strided(x, extents, strides);
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t axis = checked_axis("unique", c.attr("axis"), x.rank());
  const int64_t size = x.extent(axis);
  Tensor inverse(DType::I64, {size});
  const Tensor rows = slices(x, axis);
  auto groups = x.dtype() == DType::String
                    ? group(rows.strings(), size)
                    : with_wide(x.dtype(), [&]<class T>(T) { return group(widen<T>(rows), size); });
  if (!c.attr("sorted"))
    std::ranges::sort(groups, {}, [](const std::vector<int64_t>& each) { return each.front(); });
  std::vector<int64_t> firsts, counts;
  for (size_t i = 0; i < groups.size(); ++i) {
    firsts.push_back(groups[i].front());
    counts.push_back(static_cast<int64_t>(groups[i].size()));
    for (int64_t position : groups[i])
      inverse.mutable_data<int64_t>()[static_cast<size_t>(position)] = static_cast<int64_t>(i);
  }
  const Tensor indices = Tensor::of(firsts);
  return {read_places(x, places_along_axis("unique", x.extents(), indices, axis)), indices, inverse,
          Tensor::of(counts)};
}

}  // namespace unique_op

// --- nonzero ---

namespace nonzero_op {

Types infer(const Node& n) {
  const Shape& shape = n.in("x").shape();
  return {Type::tensor(DType::I64, {shape.ranked() ? Dim(shape.rank()) : Dim(), Dim()})};
}

// -0 is zero and NaN is not, so bits will not do; a string is zero when it is empty.
std::vector<bool> find_nonzero(const Tensor& x) {
  std::vector<bool> found;
  const auto append = [&](const auto& values) {
    for (const auto& value : values)
      found.push_back(value != std::decay_t<decltype(value)>{});
  };
  if (x.dtype() == DType::String)
    append(x.strings());
  else if (x.dtype() == DType::C64)
    append(x.data<std::complex<float>>());
  else if (x.dtype() == DType::C128)
    append(x.data<std::complex<double>>());
  else
    with_wide(x.dtype(), [&]<class T>(T) { append(widen<T>(x)); });
  return found;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<bool> found = find_nonzero(x);
  const int64_t count = std::count(found.begin(), found.end(), true);
  Tensor y(DType::I64, {x.rank(), count});
  if (x.count() == 0 || y.count() == 0)
    return {y};
  const Extents strides = row_major_strides(x.extents());
  const std::span<int64_t> to = y.mutable_data<int64_t>();
  int64_t column = 0;
  for (int64_t offset = 0; offset < x.count(); ++offset) {
    if (!found[static_cast<size_t>(offset)])
      continue;
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      to[static_cast<size_t>(axis * count + column)] =
          offset / strides[static_cast<size_t>(axis)] % x.extent(axis);
    ++column;
  }
  return {y};
}

}  // namespace nonzero_op

// --- one_hot ---

namespace one_hot_op {

// A depth that is no integer is truncated.
Dim known_depth(const Node& n) {
  Dim size = known_number(n, "depth");
  if (const Tensor* known = n.in("depth").known_tensor())
    size = as_int(*known);
  check_size(n, "depth", size);
  return size;
}

Types infer(const Node& n) {
  const Value indices = n.in("indices"), values = n.in("values");
  const int64_t axis = checked_axis("one_hot", n.attr("axis"), indices.rank() + 1);
  const Dim size = known_depth(n);
  if (values.rank() == 1)
    assume_equal(values.dim(0), 2);
  if (values.rank() != 1 || values.dim(0).constant().value_or(2) != 2)
    throw operand_error(n, "values must be two: one for off, one for on");
  std::vector<Dim> dims = indices.shape().dims();
  dims.insert(dims.begin() + axis, size);
  return {Type::tensor(values.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor &indices = c.in("indices"), &values = c.in("values");
  const int64_t axis = checked_axis("one_hot", c.attr("axis"), indices.rank() + 1);
  const int64_t depth = read_number(c, "depth", 0);
  if (values.extents() != Extents{2})
    throw user_error("one_hot: values have shape [{}], but [2] was wanted", fmt::join(values.extents(), ","));
  Extents extents = indices.extents();
  extents.insert(extents.begin() + axis, depth);
  Tensor y = gather_strided(values, extents, Extents(extents.size(), 0));
  if (y.count() == 0)
    return {y};
  const int64_t inner = row_major_strides(extents)[static_cast<size_t>(axis)];
  const std::vector<int64_t> wanted = as_ints(indices);
  with_storage(values.dtype(), [&]<class T>(T) {
    const std::span<T> to = mutable_stored<T>(y);
    for (int64_t i = 0; i < indices.count(); ++i) {
      int64_t index = wanted[static_cast<size_t>(i)];
      if (index < 0 && !is_unsigned(indices.dtype()))  // an unsigned one wrapped around, so is too big
        index += depth;
      if (index >= 0 && index < depth)
        to[static_cast<size_t>((i / inner * depth + index) * inner + i % inner)] = stored<T>(values)[1];
    }
  });
  return {y};
}

void lower(LowerContext& c) {
  const Value indices = c.node().in("indices"), values = c.node().in("values"), y = c.node().result();
  const auto axis = checked_axis("one_hot", c.node().attr("axis"), indices.rank() + 1);
  if (values.dim(0) != Dim(2))
    return;
  c.define([&](const Index& at) {
    Index place = at;
    place.erase(place.begin() + axis);
    const Scalar zero = Scalar::zero(DType::I64), depth = Scalar::index(y.dim(axis));
    const Scalar given = Scalar::cast(DType::I64, c.stored(indices, place));
    // An unsigned one wrapped around, so is too big.
    const Scalar index =
        is_unsigned(indices.dtype()) ? given : select(less(given, zero), given + depth, given);
    const Scalar on = equal(index, at[static_cast<size_t>(axis)]);
    return c.stored(values, {select(on, Scalar::index(1), Scalar::index(0))});
  });
}

std::vector<Operand> grad(const GradContext& n) {
  const Value values = n.in("values"), dy = n.dy();
  const Value on = n.repeat(
      {{"values", constant(n.graph(), narrow<double>(values.dtype(), {2}, std::vector<double>{0, 1}))}});
  Axes all(static_cast<size_t>(dy.rank()));
  std::iota(all.begin(), all.end(), 0);
  const auto sum = [&](Value x) { return unsqueeze(reduce_sum(x, all), {0}); };
  return {{"values", concat({sum(dy * (1.0 - on)), sum(dy * on)}, 0)}};
}

}  // namespace one_hot_op

// --- non_max_suppression ---

namespace non_max_suppression_op {

Types infer(const Node& n) {
  const Value boxes = n.in("boxes"), scores = n.in("scores");
  if (boxes.rank() != 3 || provably_different(boxes.dim(2), 4))
    throw operand_error(n, "boxes must be of shape [batch,boxes,4]");
  if (scores.rank() != 3 || provably_different(scores.dim(0), boxes.dim(0)) ||
      provably_different(scores.dim(2), boxes.dim(1)))
    throw operand_error(n, "scores must be of shape [batch,classes,boxes]");
  return {Type::tensor(DType::I64, {Dim(), 3})};
}

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box read_box(const double* at, bool centered) {
  if (centered)
    return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]), std::max(at[1], at[3])};
}

// The area two boxes share, over the area they cover.
double overlap(const Box& a, const Box& b) {
  const Box shared = {std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom),
                      std::min(a.right, b.right)};
  if (!(shared.bottom > shared.top && shared.right > shared.left && a.area() > 0 && b.area() > 0))
    return 0;
  return shared.area() / (a.area() + b.area() - shared.area());
}

Data eval(const Call& c) {
  const Tensor &boxes = c.in("boxes"), &scores = c.in("scores");
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.extent(2) != 4 ||
      scores.extent(0) != boxes.extent(0) || scores.extent(2) != boxes.extent(1))
    throw user_error(
        "non_max_suppression: boxes of shape [{}] and scores of shape [{}], but [batch,boxes,4] and "
        "[batch,classes,boxes] were wanted",
        fmt::join(boxes.extents(), ","), fmt::join(scores.extents(), ","));
  const int64_t limit = c.has("max_per_class") ? read_number(c, "max_per_class") : 0;
  const double threshold =
      c.has("overlap_threshold") ? as_double(read_only_element(c, "overlap_threshold")) : 0;
  const double least =
      c.has("score_threshold") ? as_double(read_only_element(c, "score_threshold")) : -INFINITY;
  const bool centered = c.attr("centered"), every = !c.has("score_threshold");
  const int64_t classes = scores.extent(1), count = boxes.extent(1);
  const std::vector<double> coordinates = widen<double>(boxes), weights = widen<double>(scores);
  std::vector<int64_t> selected;
  for (int64_t row = 0; count > 0 && row < scores.count() / count; ++row) {
    const int64_t batch = row / classes;
    const double* weight = &weights[static_cast<size_t>(row * count)];
    std::vector<int64_t> candidates;
    for (int64_t i = 0; i < count; ++i)
      if (every || weight[i] > least)
        candidates.push_back(i);
    // The best first, NaN last; of equal ones the first.
    std::ranges::stable_sort(candidates, [&](int64_t a, int64_t b) {
      return weight[a] > weight[b] || (std::isnan(weight[b]) && !std::isnan(weight[a]));
    });
    std::vector<Box> kept;
    for (int64_t candidate : candidates) {
      if (static_cast<int64_t>(kept.size()) >= limit)
        break;
      const Box box = read_box(&coordinates[static_cast<size_t>((batch * count + candidate) * 4)], centered);
      if (std::ranges::any_of(kept, [&](const Box& other) { return overlap(box, other) > threshold; }))
        continue;
      kept.push_back(box);
      selected.insert(selected.end(), {batch, row % classes, candidate});
    }
  }
  return {Tensor::of(std::span<const int64_t>(selected), {static_cast<int64_t>(selected.size()) / 3, 3})};
}

}  // namespace non_max_suppression_op

}  // namespace

const Family& sort_ops() {
  static const Family ops = {
      {.name = "top_k",
       .doc = "the k greatest elements along an axis, and where they stand; NaN is the greatest",
       .operands = {{"x", "T"}, {"k", "i64"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis along which elements compete", -1},
                      {"largest", AttributeKind::Bool, "whether the greatest are wanted; else the least",
                       true},
                      {"sorted", AttributeKind::Bool,
                       "whether they must come in order, of equal ones the first first; else any order will "
                       "do",
                       true}},
       .results = {{"values", "T"}, {"indices", "i64"}},
       .types = {{"T", Numbers}},
       .infer = top_k_op::infer,
       .eval = top_k_op::eval,
       .grad = top_k_op::grad},
      {.name = "unique",
       .doc = "the different slices of x along an axis: each once, where each stands first, which of them "
              "each slice of x is, and how often each occurs; NaN equals NaN",
       .operands = {{"x", "T"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis that is sliced"},
                      {"sorted", AttributeKind::Bool,
                       "whether they come in ascending order; else in the order of x", true}},
       .results = {{"y", "T"}, {"indices", "i64"}, {"inverse", "i64"}, {"counts", "i64"}},
       .types = {{"T", NumbersAndBool | DTypeSet{DType::String}}},
       .infer = unique_op::infer,
       .eval = unique_op::eval,
       .grad = no_gradient},
      {.name = "nonzero",
       .doc = "the indices of the elements that are not zero, in row-major order: one column for each",
       .operands = {{"x", "T"}},
       .results = {{"y", "i64"}},
       .traits = {.takes_unranked = true},
       .infer = nonzero_op::infer,
       .eval = nonzero_op::eval},
      {.name = "one_hot",
       .doc = "for every index a vector that is on at the index and off elsewhere; off everywhere if the "
              "index is out of range",
       .operands = {{"indices", "I"}, {"depth", "D"}, {"values", "T"}},
       .attributes = {{"axis", AttributeKind::Int, "where the vectors lie, counted in the result", -1}},
       .results = {{"y", "T"}},
       .types = {{"I", Numbers}, {"D", Numbers}},
       .infer = one_hot_op::infer,
       .eval = one_hot_op::eval,
       .lower = one_hot_op::lower,
       .grad = one_hot_op::grad},
      {.name = "non_max_suppression",
       .doc = "of boxes that overlap too much, the one with the best score: (batch, class, box) of each",
       .operands = {{"boxes", "T"},
                    {"scores", "T"},
                    {"max_per_class", "i64", Arity::Optional},
                    {"overlap_threshold", "T", Arity::Optional},
                    {"score_threshold", "T", Arity::Optional}},
       .attributes = {{"centered", AttributeKind::Bool,
                       "whether a box is (x of its centre, y of its centre, width, height); else (y, x) of "
                       "two opposite corners",
                       false}},
       .results = {{"selected", "i64"}},
       .types = {{"T", Floats}},
       .infer = non_max_suppression_op::infer,
       .eval = non_max_suppression_op::eval},
  };
  return ops;
}

std::vector<Value> top_k(Value x, Value k, int64_t axis, bool largest, bool sorted) {
  return x.graph()
      .create("top_k", {{"x", x}, {"k", k}}, {{"axis", axis}, {"largest", largest}, {"sorted", sorted}})
      ->results();
}
std::vector<Value> unique(Value x, int64_t axis, bool sorted) {
  return x.graph().create("unique", {{"x", x}}, {{"axis", axis}, {"sorted", sorted}})->results();
}
Value nonzero(Value x) { return x.graph().create("nonzero", {{"x", x}})->result(); }
Value one_hot(Value indices, Value depth, Value values, int64_t axis) {
  return indices.graph()
      .create("one_hot", {{"indices", indices}, {"depth", depth}, {"values", values}}, {{"axis", axis}})
      ->result();
}

}  // namespace tenon
