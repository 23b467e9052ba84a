#include "schedule/cpu/order_loops.h"

#include <algorithm>
#include <bit>

#include "schedule/assign.h"

namespace tenon::schedule {

using loops::Assign;
using loops::Axis;
using loops::Loop;
using loops::Mark;
using loops::mentions;
using loops::Scalar;
using loops::Statement;

namespace {

constexpr int64_t kLanesAcross = 64;             // of a transposed block
constexpr int64_t kInterleaved = 16;             // elements that strided stores interleave, at most
constexpr int64_t kBytesInterleaved = 24 << 10;  // of a block of strided stores that stays in L1
constexpr int64_t kLeastLanesAlong = 64, kMostLanesAlong = 2048;  // of such a block
constexpr int64_t kShortAxis = 8;                                 // of whose rows a cache line holds several
constexpr int64_t kRowsAcross = 8;  // that stay in cache at power-of-two strides

template <class F>
void for_each_load(const std::vector<Statement>& body, F&& f) {
  for (const Statement& statement : body)
    for (const Scalar& value : std::get<Assign>(statement).values)
      loops::for_each_load(value, f);
}

// Where loads are strided along the last axis, as in a transpose: the axis along which they are contiguous.
std::optional<size_t> axis_along_memory(const std::vector<Axis>& axes, const Axis& last,
                                        const std::vector<Statement>& body) {
  std::optional<size_t> along;
  for_each_load(body, [&](const Scalar& load) {
    const std::vector<Scalar>& at = load.operands();
    if (!at.empty() && !mentions(at.back(), last.variable) &&
        std::any_of(at.begin(), at.end(),
                    [&](const Scalar& index) { return mentions(index, last.variable); }))
      if (const std::optional<size_t> axis = loops::axis_of(axes, at.back()))
        along = axis;
  });
  return along;
}

// Where rows along the last axis are read in another order than they are written: the axis along which they
// are adjacent in the source.
std::optional<size_t> axis_along_rows(const std::vector<Axis>& axes, const Axis& last,
                                      const std::vector<Statement>& body) {
  std::optional<size_t> along;
  for_each_load(body, [&](const Scalar& load) {
    const std::vector<Scalar>& at = load.operands();
    if (at.size() < 2 || !loops::axis_of({last}, at.back()))
      return;
    const std::optional<size_t> axis = loops::axis_of(axes, at[at.size() - 2]);
    if (axis && *axis + 1 != axes.size())
      along = axis;
  });
  return along;
}

// A loop over a block of an axis, and one over the blocks.
Loop within_block(const Axis& axis, int64_t block, Mark mark, std::vector<Statement> body) {
  Loop loop = loop_over(axis, mark, std::move(body));
  loop.begin = Dim::symbol("o" + axis.variable) * block;
  loop.end = min(axis.size, loop.begin + block);
  return loop;
}
Axis over_blocks(const Axis& axis, int64_t block) {
  return {"o" + axis.variable, ceil_div(axis.size, block)};
}

// Tiles strided loads, so that the cache line of an element is still in cache when its neighbours are read.
std::vector<Statement> transpose(std::vector<Axis> axes, size_t along, const Axis& across, int64_t block,
                                 Mark mark, std::vector<Statement> body) {
  body = as_list(
      loop_over(axes[along], Mark::Serial, as_list(within_block(across, block, mark, std::move(body)))));
  axes.erase(axes.begin() + static_cast<int64_t>(along));
  axes.push_back(over_blocks(across, block));
  return around(axes, Mark::Parallel, std::move(body));
}

int64_t bytes_stored(const std::vector<Statement>& body) {
  int64_t bytes = 1;
  for (const Statement& statement : body)
    for (const Scalar& value : std::get<Assign>(statement).values)
      bytes = std::max<int64_t>(bytes, info(value.dtype()).bytes);
  return bytes;
}

// Vectorises along the source, as a short last axis would fill no vector; stores have a small stride.
std::vector<Statement> interleave(std::vector<Axis> axes, size_t along, const Axis& last,
                                  std::vector<Statement> body) {
  const int64_t bytes_of_lane = std::max<int64_t>(*last.size.constant(), 1) * bytes_stored(body);
  const auto fitting = std::bit_floor(static_cast<uint64_t>(kBytesInterleaved / bytes_of_lane));
  const int64_t lanes = std::clamp(static_cast<int64_t>(fitting), kLeastLanesAlong, kMostLanesAlong);
  const Axis read = axes[along];
  const Mark mark = *last.size.constant() <= kShortAxis ? Mark::Unrolled : Mark::Serial;
  body = as_list(loop_over(last, mark, as_list(within_block(read, lanes, Mark::Vector, std::move(body)))));
  axes[along] = over_blocks(read, lanes);
  return around(axes, Mark::Parallel, std::move(body));
}

}  // namespace

std::vector<Statement> order_loops(std::vector<Axis> axes, std::vector<Statement> body) {
  const Axis last = axes.back();
  axes.pop_back();
  const int64_t size = last.size.constant().value_or(INT64_MAX);
  const auto interleaves = [&](const Axis& read) {
    return size <= kShortAxis ||
           (size <= kInterleaved && read.size.constant().value_or(INT64_MAX) >= kShortAxis);
  };
  if (const std::optional<size_t> along = axis_along_memory(axes, last, body))
    return interleaves(axes[*along])
               ? interleave(axes, *along, last, std::move(body))
               : transpose(axes, *along, last, kLanesAcross, Mark::Vector, std::move(body));
  const std::optional<size_t> along = size <= kShortAxis ? axis_along_rows(axes, last, body) : std::nullopt;
  body = as_list(loop_over(last, Mark::Vector, std::move(body)));
  if (!along)
    return around(axes, Mark::Parallel, std::move(body));
  const Axis across = axes.back();
  axes.pop_back();
  return transpose(axes, *along, across, kRowsAcross, Mark::Serial, std::move(body));
}

}  // namespace tenon::schedule
