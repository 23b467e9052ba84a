#include "ops/overlay.h"

#include <algorithm>

#include "ops/arithmetic.h"
#include "ops/elements.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// With what updates have along the axis in place of the sizes that x has there, one for each axis of sources.
template <class Sizes>
Sizes with_count_in_place(Sizes sizes, int64_t axis, int64_t axes, const typename Sizes::value_type& count) {
  const auto first = sizes.begin() + axis;
  sizes.insert(sizes.erase(first, first + axes), count);
  return sizes;
}

std::vector<Dim> fitting_sizes(const Node& n, int64_t axis) {
  return with_count_in_place(n.in("x").shape().dims(), axis, n.in("sources").rank(),
                             n.in("updates").dim(axis));
}

int64_t axis_of(const Node& n, int64_t rank) { return checked_axis("overlay", n.attr("axis"), rank); }

Types infer(const Node& n) {
  const Value x = n.in("x"), updates = n.in("updates"), sources = n.in("sources");
  const int64_t axis = axis_of(n, x.rank());
  bool fits = sources.rank() > 0 && axis + sources.rank() <= x.rank();
  for (int64_t i = 0; fits && i < sources.rank(); ++i)
    fits = !provably_different(sources.dim(i), x.dim(axis + i));
  if (!fits)
    throw operand_error(n, fmt::format("sources must have the sizes of x from axis {} on", axis));
  fits = updates.rank() == x.rank() - sources.rank() + 1;
  if (fits) {
    const std::vector<Dim> sizes = fitting_sizes(n, axis);
    for (int64_t i = 0; fits && i < updates.rank(); ++i)
      fits = !provably_different(updates.dim(i), sizes[static_cast<size_t>(i)]);
  }
  if (!fits)
    throw operand_error(n, "updates must have the sizes of x, but one for those of sources");
  return same_as_x(n);
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &updates = c.in("updates"), &sources = c.in("sources");
  const Extents& sizes = x.extents();
  const int64_t axis = axis_of(c.node(), x.rank()), end = axis + sources.rank(), count = updates.extent(axis);
  const Extents replaced(sizes.begin() + axis, sizes.begin() + end);
  if (sources.extents() != replaced ||
      updates.extents() != with_count_in_place(sizes, axis, sources.rank(), count))
    throw user_error("overlay: updates of shape [{}] and sources of shape [{}] do not fit x of shape [{}]",
                     fmt::join(updates.extents(), ","), fmt::join(sources.extents(), ","),
                     fmt::join(sizes, ","));
  const int64_t outer = element_count(Extents(sizes.begin(), sizes.begin() + axis)),
                run = element_count(Extents(sizes.begin() + end, sizes.end()));
  const std::vector<int64_t> numbers = as_ints(sources);
  Tensor y(x.dtype(), sizes);
  with_storage(x.dtype(), [&]<class T>(T) {
    auto to = mutable_stored<T>(y).begin();
    auto from = stored<T>(x).begin();
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t number : numbers) {
        if (number >= count)
          throw user_error("overlay: there is no update {} among {}", number, count);
        std::copy_n(number < 0 ? from : stored<T>(updates).begin() + (i * count + number) * run, run, to);
        to += run;
        from += run;
      }
  });
  return {y};
}

// Each element asks where it comes from, so that what makes x may be computed where it is read.
void lower(LowerContext& c) {
  const Value x = c.node().in("x"), updates = c.node().in("updates"), sources = c.node().in("sources");
  const int64_t axis = axis_of(c.node(), x.rank()), end = axis + sources.rank();
  if (updates.shape().dims() != fitting_sizes(c.node(), axis) ||
      !std::equal(sources.shape().dims().begin(), sources.shape().dims().end(),
                  x.shape().dims().begin() + axis))
    return;
  const Scalar count = Scalar::index(updates.dim(axis));
  c.define([&](const Index& at) {
    const Scalar source = c.stored(sources, Index(at.begin() + axis, at.begin() + end));
    Index from(at.begin(), at.begin() + axis);
    from.push_back(require(less(source, count), source));
    from.insert(from.end(), at.begin() + end, at.end());
    return select(less(source, Scalar::zero(DType::I64)), c.stored(x, at), c.stored(updates, from));
  });
}

}  // namespace

const Family& overlay_ops() {
  static const Family ops = {
      {.name = "overlay",
       .doc = "the update that each source names along an axis, or x where the source is negative",
       .operands = {{"x", "T"}, {"updates", "T"}, {"sources", "i64"}},
       .attributes = {{"axis", AttributeKind::Int, "the first axis of x that sources stand for", 0}},
       .results = {{"y", "T"}},
       .infer = infer,
       .eval = eval,
       .lower = lower},
  };
  return ops;
}

Value overlay(Value x, Value updates, Value sources, int64_t axis) {
  return x.graph()
      .create("overlay", {{"x", x}, {"updates", updates}, {"sources", sources}}, {{"axis", axis}})
      ->result();
}

}  // namespace tenon
