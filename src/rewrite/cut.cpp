#include "rewrite/cut.h"

#include <algorithm>
#include <limits>

#include "ops/data.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

// What exporters write for "to the end", whatever the size.
constexpr int64_t kBeyondAnySize = std::numeric_limits<int32_t>::max();

// The same elements of n, with bounds that are positions.
Cut placed(Cut cut, int64_t n) {
  const bool forward = cut.step > 0;
  const auto from_front = [n](int64_t position) { return position < 0 ? position + n : position; };
  const int64_t start =
      std::clamp<int64_t>(from_front(cut.start), 0, std::max<int64_t>(forward ? n : n - 1, 0));
  const int64_t end = std::clamp<int64_t>(from_front(cut.end), forward ? 0 : -1, n);
  const int64_t distance = forward ? end - start : start - end;
  if (n == 0 || distance <= 0)
    return {cut.axis, 0, 0};
  if (forward ? cut.step >= distance : cut.step <= -distance)
    return {cut.axis, start, start + 1};
  const int64_t steps = (distance - 1) / (forward ? cut.step : -cut.step);
  const int64_t last = start + steps * cut.step;
  const int64_t beyond = forward ? last + 1 : last - 1;
  // Before the first element lies what is negative even when it is counted from the end.
  return {cut.axis, start, beyond < 0 ? -n - 1 : beyond, cut.step};
}

Cut with_plain_end(Cut cut) {
  if (cut.step > 0 && cut.end >= kBeyondAnySize)
    cut.end = kToTheEnd;
  if (cut.step > 0 && cut.start <= -kBeyondAnySize)
    cut.start = 0;
  return cut;
}

// The elements of a vector operand as far as they are numbers.
std::vector<std::optional<int64_t>> known_numbers(Value vector, size_t count) {
  std::vector<std::optional<int64_t>> numbers(count);
  if (const auto dims = vector.known_dims(); dims && dims->size() == count)
    for (size_t i = 0; i < count; ++i)
      numbers[i] = (*dims)[i].constant();
  return numbers;
}

}  // namespace

std::optional<Cuts> known_cuts(const Node& slice) {
  const Value x = slice.in("x");
  if (slice.is_late("axes") || !x.shape().ranked() || !slice.result().shape().ranked())
    return std::nullopt;
  const Ints& axes = slice.attr("axes");
  const auto starts = known_numbers(slice.in("starts"), axes.size()),
             ends = known_numbers(slice.in("ends"), axes.size());
  const auto steps = slice.has("steps") ? known_numbers(slice.in("steps"), axes.size())
                                        : std::vector<std::optional<int64_t>>(axes.size(), 1);
  Cuts cuts;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis("slice", axes[i], x.rank());
    if (steps[i] == 1 && provably_equal(x.dim(axis), slice.result().dim(axis)))
      continue;
    if (!starts[i] || !ends[i] || !steps[i] || *steps[i] == 0)
      return std::nullopt;
    const Cut cut = {axis, *starts[i], *ends[i], *steps[i]};
    const auto size = x.dim(axis).constant();
    cuts.push_back(size ? placed(cut, *size) : with_plain_end(cut));
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

Value cut(Value x, Cuts cuts) {
  if (cuts.empty())
    return x;
  std::sort(cuts.begin(), cuts.end());
  Ints axes, starts, ends, steps;
  for (const Cut& cut : cuts) {
    axes.push_back(cut.axis);
    starts.push_back(cut.start);
    ends.push_back(cut.end);
    steps.push_back(cut.step);
  }
  Graph& graph = x.graph();
  const bool plain = std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
  return slice(x, int_vector(graph, starts), int_vector(graph, ends), axes,
               plain ? Value() : int_vector(graph, steps));
}

bool is_written_as_cut(const Node& slice, const Cuts& cuts) {
  const Ints& axes = slice.attr("axes");
  const auto is_constant = [](Value value) { return !value.is_input() && value.node()->is("constant"); };
  if (axes.size() != cuts.size() || !is_constant(slice.in("starts")) || !is_constant(slice.in("ends")) ||
      (slice.has("steps") && !is_constant(slice.in("steps"))))
    return false;
  const auto starts = slice.in("starts").known_ints(), ends = slice.in("ends").known_ints();
  const auto steps = slice.has("steps") ? slice.in("steps").known_ints() : Ints(axes.size(), 1);
  bool plain = true;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!(cuts[i] == Cut{axes[i], (*starts)[i], (*ends)[i], (*steps)[i]}))
      return false;
    plain = plain && cuts[i].step == 1;
  }
  return plain == !slice.has("steps");
}

std::optional<Cut> cut_again(const Cut& first, const Cut& second) {
  const auto counts_from_front = [](const Cut& cut) {
    return cut.step > 0 && cut.start >= 0 && cut.end >= 0;
  };
  if (!counts_from_front(first) || !counts_from_front(second))
    return std::nullopt;
  // Element i of the second is element start + i · step of the first.
  Cut both = {first.axis, 0, first.end, 0};
  int64_t end = 0;
  if (__builtin_mul_overflow(first.step, second.step, &both.step) ||
      __builtin_mul_overflow(second.start, first.step, &both.start) ||
      __builtin_add_overflow(both.start, first.start, &both.start))
    return std::nullopt;
  if (!__builtin_mul_overflow(second.end, first.step, &end) &&
      !__builtin_add_overflow(end, first.start, &end))
    both.end = std::min(first.end, end);
  return both;
}

}  // namespace tenon
