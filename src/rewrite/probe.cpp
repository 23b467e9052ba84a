#include "rewrite/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/evaluate.h"
#include "rewrite/match.h"
#include "tensor/rounding.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kMostElements = 1 << 18;

// Numbers to run a region on.
struct Draw {
  struct Numbers {
    Extents extents;
    std::vector<double> values;
  };
  Numbers x;
  std::vector<Numbers> fixed = {};
  // How near to 0 must be what is 0. Formulas that cancel, as 1 + erf(x) does, are no nearer at some x.
  double nearness = 1e-15;
};

Tensor as_tensor(const Draw::Numbers& numbers, DType dtype) {
  return narrow<double>(dtype, numbers.extents, numbers.values);
}

// How far a function may be from the one meant because its numbers were rounded. Models give decimals of six
// digits and more for √2 or √(2/π).
double rounding_of_numbers(const UnaryRegion& region) {
  double greatest = 1e-9;
  for (Value number : region.numbers)
    if (is_float(number.dtype()) && number.dtype() != DType::F64)
      greatest = std::max({greatest, 1e-6, rounding_step(number.dtype()) / 2});
  for (const Node* node : region.nodes)
    for (const auto& [name, attribute] : node->attributes())
      if (attribute.kind() == AttributeKind::Float)
        greatest = std::max(greatest, 1e-6);
  return greatest;
}

Tensor evaluate_function(const Function& function, const Tensor& x, const std::vector<Tensor>& fixed) {
  Graph graph;
  const Value input = graph.add_input(type_of(x), "x");
  Data inputs = {x};
  std::vector<Value> others;
  for (const Tensor& tensor : fixed) {
    others.push_back(graph.add_input(type_of(tensor), ""));
    inputs.emplace_back(tensor);
  }
  graph.set_outputs({function(input, others)});
  return evaluate(graph, inputs).front().tensor();
}

// Where a run had only finite numbers on the way to an element of its result.
std::vector<bool> finite_on_the_way(const RegionRun& run) {
  std::vector<bool> finite(static_cast<size_t>(run.result.count()), true);
  for (const Tensor& inner : run.inner) {
    if (!is_float(inner.dtype()))
      continue;
    const std::vector<double> numbers = widen<double>(inner);
    const auto is_finite = [](double number) { return std::isfinite(number); };
    if (inner.extents() == run.result.extents())
      for (size_t i = 0; i < finite.size(); ++i)
        finite[i] = finite[i] && is_finite(numbers[i]);
    else if (!std::all_of(numbers.begin(), numbers.end(), is_finite))
      finite.assign(finite.size(), false);
  }
  return finite;
}

// How far an element may be from the one wanted, where all are at most so large, or 1.
using Tolerance = std::function<double(double wanted, double most)>;

double greatest_finite(const std::vector<double>& numbers) {
  double greatest = 0;
  for (double number : numbers)
    if (std::isfinite(number))
      greatest = std::max(greatest, std::fabs(number));
  return greatest;
}

// Compares the elements that come about by finite numbers. There must be some.
bool agree(const RegionRun& run, const Tensor& wanted, const Tolerance& tolerance) {
  if (run.result.extents() != wanted.extents())
    return false;
  const std::vector<double> actual = widen<double>(run.result), expected = widen<double>(wanted);
  const std::vector<bool> counts = finite_on_the_way(run);
  const double most = std::min(1.0, greatest_finite(expected));
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool same =
        actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])) ||
        (std::isfinite(expected[i]) && std::fabs(actual[i] - expected[i]) <= tolerance(expected[i], most));
    if (counts[i] && !same)
      return false;
  }
  return std::find(counts.begin(), counts.end(), true) != counts.end();
}

bool agree_exactly(const UnaryRegion& region, const Draw& draw, const Function& function) {
  const Tensor x = as_tensor(draw.x, DType::F64);
  std::vector<Tensor> fixed;
  for (const Draw::Numbers& numbers : draw.fixed)
    fixed.push_back(as_tensor(numbers, DType::F64));
  const double rounding = rounding_of_numbers(region);
  // What is 0 must be it: an epsilon that was added there matters to what divides by it or takes its log.
  return agree(run(region, x, fixed, Precision::Exact), evaluate_function(function, x, fixed),
               [&](double wanted, double most) {
                 return std::fabs(wanted) < 1e-20 * most ? draw.nearness * most
                                                         : rounding * std::max(most, std::fabs(wanted));
               });
}

// Also what rounds on purpose, as (x + 2²³) - 2²³ does, is told apart so.
bool agree_in_own_precision(const UnaryRegion& region, const Draw& draw, const Function& function) {
  const Tensor x = as_tensor(draw.x, region.x.dtype());
  std::vector<Tensor> fixed;
  for (size_t i = 0; i < draw.fixed.size(); ++i)
    fixed.push_back(as_tensor(draw.fixed[i], region.fixed[i].dtype()));
  const double unit = rounding_step(region.root.dtype());
  return agree(run(region, x, fixed, Precision::Own), evaluate_function(function, x, fixed),
               [=](double wanted, double most) { return 8 * unit * std::max(8 * most, std::fabs(wanted)); });
}

// Whether the function does no worse than the region where all of x is -inf, as a mask leaves it: what the
// region makes finite there it was written to, by a select or a test for infinities.
bool keeps_guards(const UnaryRegion& region, Draw draw, const Function& function) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::ranges::fill(draw.x.values, -infinity);
  const Tensor x = as_tensor(draw.x, region.x.dtype());
  std::vector<Tensor> fixed;
  for (size_t i = 0; i < draw.fixed.size(); ++i)
    fixed.push_back(as_tensor(draw.fixed[i], region.fixed[i].dtype()));
  const std::vector<double> actual = widen<double>(run(region, x, fixed, Precision::Own).result),
                            other = widen<double>(evaluate_function(function, x, fixed));
  for (size_t i = 0; i < actual.size(); ++i)
    if (std::isfinite(actual[i]) && !std::isfinite(other[i]))
      return false;
  return true;
}

// 0 and large numbers.
std::vector<double> far_probes() {
  std::vector<double> probes = {0.0, -0.0};
  for (double x = 20; x < 1e30; x *= 2)
    probes.insert(probes.end(), {x, -x});
  return probes;
}

// Small numbers, and both sides of those at which the region may bend.
std::vector<double> near_probes(const UnaryRegion& region) {
  std::vector<double> probes;
  for (double x = 0.25; x <= 40; x += 0.25)
    probes.insert(probes.end(), {x, -x});
  for (double x = 1e-8; x < 0.1; x *= 3)
    probes.insert(probes.end(), {x, -x});
  for (Value number : region.numbers) {
    const double c = *uniform_number(number);
    for (double near : {c, c * (1 - 1e-4), c * (1 + 1e-4)})
      if (std::isfinite(near))
        probes.insert(probes.end(), {near, -near});
  }
  return probes;
}

Draw elementwise_draw(const std::vector<double>& values) {
  return {.x = {{static_cast<int64_t>(values.size())}, values}};
}

bool contains(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Sizes to run the region with: its own along the axes, since it may divide by them; a few rows of these.
std::optional<Extents> extents_of_x(const UnaryRegion& region, const std::vector<int64_t>& axes) {
  Extents extents;
  int64_t count = 1;
  for (int64_t axis = 0; axis < region.x.rank(); ++axis) {
    const Dim& dim = region.x.dim(axis);
    const int64_t rows = dim == Dim(1) ? 1 : 2;
    extents.push_back(contains(axes, axis) ? dim.constant().value_or(5) : rows);
    count *= extents.back();
    if (count == 0 || count > kMostElements)
      return std::nullopt;
  }
  return extents;
}

std::optional<Extents> extents_of_fixed(Value fixed, const Extents& x, const std::vector<int64_t>& axes) {
  const auto rank = static_cast<int64_t>(x.size());
  if (!fixed.shape().ranked() || fixed.rank() > rank)
    return std::nullopt;
  Extents extents;
  for (int64_t i = 0; i < fixed.rank(); ++i) {
    const int64_t axis = rank - fixed.rank() + i;
    const bool is_one = fixed.dim(i) == Dim(1);
    if (!is_one && !contains(axes, axis))
      return std::nullopt;
    extents.push_back(is_one ? 1 : x[static_cast<size_t>(axis)]);
  }
  return extents;
}

// Sizes for x and the fixed values, and zeros for their numbers.
std::optional<Draw> empty_draw(const UnaryRegion& region, const std::vector<int64_t>& axes) {
  if (!region.x.shape().ranked())
    return std::nullopt;
  const std::optional<Extents> x = extents_of_x(region, axes);
  if (!x)
    return std::nullopt;
  const auto zeros = [](const Extents& extents) {
    return std::vector<double>(static_cast<size_t>(element_count(extents)));
  };
  Draw draw = {.x = {*x, zeros(*x)}};
  for (Value fixed : region.fixed) {
    const std::optional<Extents> extents = extents_of_fixed(fixed, *x, axes);
    if (!extents)
      return std::nullopt;
    draw.fixed.push_back({*extents, zeros(*extents)});
  }
  return draw;
}

// Rows of large and small numbers, near to and far from 0, with one that stands out, and one of zeros. The
// fixed values have one sign and the other, so that what is cut off behind them shows.
struct Spread {
  double width, middle, first = 0, fixed = 1;  // the size of the fixed values
};
constexpr Spread kSpreads[] = {{1, 0}, {1, 3}, {1e-3, 0}, {300, -20}, {1, -20}, {1, 0, 300, 1e4}, {0, 0}};

Draw draw_row(const Draw& empty, size_t spread) {
  const auto& [width, middle, first, size] = kSpreads[spread];
  std::mt19937_64 random(spread);
  // Between -1 and 1. The library's distribution takes a logarithm or two for each number.
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  Draw draw = empty;
  for (double& value : draw.x.values)
    value = width * uniform() + middle;
  draw.x.values.front() += first;
  for (size_t i = 0; i < draw.fixed.size(); ++i)
    for (double& value : draw.fixed[i].values)
      value = ((spread + i) % 2 == 0 ? size : -size) * (uniform() + 2);
  draw.nearness = 1e-18;
  return draw;
}

// Where the element of this row-major index stands in its row along the axes, and how long the row is.
std::pair<int64_t, int64_t> place_in_row(const Extents& extents, const std::vector<int64_t>& axes,
                                         int64_t index) {
  const Extents strides = row_major_strides(extents);
  int64_t position = 0, length = 1;
  for (int64_t axis : axes) {
    const auto i = static_cast<size_t>(axis);
    position = position * extents[i] + index / strides[i] % extents[i];
    length *= extents[i];
  }
  return {position, length};
}

// A region that cannot be run so computes something else.
template <class F>
auto unless_it_fails(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

bool computes_elementwise(const UnaryRegion& region, const Function& function, Specials specials) {
  return unless_it_fails([&] {
    std::vector<double> probes = near_probes(region);
    const std::vector<double> far = far_probes();
    Draw far_draw = elementwise_draw(far);
    far_draw.nearness = 1e-18;
    if (!agree_exactly(region, elementwise_draw(probes), function) ||
        !agree_exactly(region, far_draw, function))
      return false;
    probes.insert(probes.end(), far.begin(), far.end());
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (specials == Specials::Kept)
      probes.insert(probes.end(), {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()});
    return agree_in_own_precision(region, elementwise_draw(probes), function);
  });
}

std::vector<double> values_at_telling_points(const Function& function) {
  const auto begin = NestedProbes::kPoints.begin();
  const std::vector<double> x(begin, begin + NestedProbes::kTelling);
  return unless_it_fails([&] { return widen<double>(evaluate_function(function, Tensor::of(x), {})); });
}

bool may_compute_elementwise(const UnaryRegion& region, std::span<const double> values) {
  return region.probes == nullptr ||
         region.probes->may_be(region.number, values, rounding_of_numbers(region));
}

double value_at(const UnaryRegion& region, double x) {
  if (const auto known = region.probes ? region.probes->value_at(region.number, x) : std::nullopt)
    return *known;
  const Tensor probe = Tensor::of(std::vector<double>{x});
  return widen<double>(run(region, probe, {}, Precision::Exact).result).front();
}

bool computes_along(const UnaryRegion& region, const std::vector<int64_t>& axes, const Function& function) {
  const std::optional<Draw> empty = empty_draw(region, axes);
  if (!empty)
    return false;
  return unless_it_fails([&] {
    for (size_t i = 0; i < std::size(kSpreads); ++i)
      if (!agree_exactly(region, draw_row(*empty, i), function))
        return false;
    return agree_in_own_precision(region, draw_row(*empty, 0), function) &&
           keeps_guards(region, draw_row(*empty, 0), function);
  });
}

std::optional<RowProbe> probe_row(const UnaryRegion& region, const std::vector<int64_t>& axes,
                                  const std::vector<double>& fixed) {
  constexpr double x = 1e-3;
  std::optional<Draw> draw = empty_draw(region, axes);
  if (!draw)
    return std::nullopt;
  int64_t length = 1;
  for (size_t i = 0; i < draw->x.values.size(); ++i) {
    const auto [position, size] = place_in_row(draw->x.extents, axes, static_cast<int64_t>(i));
    draw->x.values[i] = position == 0 ? x : position == 1 ? -x : 0;
    length = size;
  }
  if (length < 2)
    return std::nullopt;
  return unless_it_fails([&]() -> std::optional<RowProbe> {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < fixed.size(); ++i)
      tensors.push_back(filled(DType::F64, draw->fixed[i].extents, fixed[i]));
    const RegionRun done = run(region, as_tensor(draw->x, DType::F64), tensors, Precision::Exact);
    return RowProbe{x, widen<double>(done.result).front(), length};
  });
}

double nearest_number(const UnaryRegion& region, double value) {
  std::vector<double> candidates = {1, -1};
  for (Value number : region.numbers)
    candidates.push_back(*uniform_number(number));
  for (const Node* node : region.nodes)
    for (const auto& [name, attribute] : node->attributes())
      if (attribute.kind() == AttributeKind::Float)
        candidates.push_back(attribute);
  for (double candidate : candidates)
    if (std::fabs(value - candidate) <= 1e-6 * std::fabs(candidate))
      return candidate;
  return value;
}

}  // namespace tenon
