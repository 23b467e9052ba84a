#include "passes/target/decompose_pooling.h"

#include <algorithm>
#include <map>

#include "ops/convolve_gradient.h"

namespace tenon {
namespace {

// What is estimated is counted in elements that are read and combined. One that may lie in the padding is
// asked for that, and to begin, end and store a result takes as long as a few elements.
constexpr double kPaddedElement = 2, kEachResult = 2.5;
constexpr double kWorthwhile = 0.85;        // a margin for the error of the estimate
constexpr int64_t kLikelySize = 64;         // of an image of dynamic size
constexpr int64_t kLongestReach = 1 << 20;  // of a window in any model; a longer one is not looked at

// The window of a pooling along one dimension.
struct Side {
  int64_t kernel = 1;
  Slide slide = {};

  bool is_trivial() const { return kernel == 1 && slide.stride == 1 && !is_padded(); }
  bool is_padded() const { return slide.before != 0 || slide.after != 0; }
  int64_t reach() const { return (kernel - 1) * slide.dilation; }
  int64_t count(int64_t size) const {
    return std::max<int64_t>((size + slide.before + slide.after - reach() - 1) / slide.stride + 1, 1);
  }
};

struct Pooling {
  std::vector<Side> sides;
  bool round_up = false;  // the last window may reach beyond

  double cells() const {
    double cells = 1;
    for (const Side& side : sides)
      cells *= static_cast<double>(side.kernel);
    return cells;
  }
};

Pooling along(const Pooling& pooling, size_t axis, const Side& side) {
  Pooling result{std::vector<Side>(pooling.sides.size())};
  result.sides[axis] = side;
  result.round_up = pooling.round_up && side.slide.stride > 1;
  return result;
}

// A sequence of poolings and its estimated cost.
struct Plan {
  std::vector<Pooling> poolings;
  double time = 0;
};

class Planner {
 public:
  Planner(bool is_mean, bool count_padding) : is_mean_(is_mean), count_padding_(count_padding) {}

  Plan plan(const Pooling& pooling, const std::vector<int64_t>& sizes) const {
    const Plan whole{{pooling}, time_of(pooling, sizes)};
    Plan parts;
    std::vector<int64_t> left = sizes;
    for (size_t axis : order_of(pooling)) {
      const Pooling side = along(pooling, axis, pooling.sides[axis]);
      Plan along_axis = plan_along(axis, side, left);
      left = sizes_after(side, left);
      parts.time += along_axis.time;
      std::ranges::move(along_axis.poolings, std::back_inserter(parts.poolings));
    }
    return !parts.poolings.empty() && parts.time < kWorthwhile * whole.time ? parts : whole;
  }

 private:
  // Those that leave fewer elements to the next come first.
  static std::vector<size_t> order_of(const Pooling& pooling) {
    std::vector<size_t> axes;
    for (size_t i = pooling.sides.size(); i-- > 0;)
      if (!pooling.sides[i].is_trivial())
        axes.push_back(i);
    std::ranges::stable_sort(axes, std::greater(), [&](size_t i) { return pooling.sides[i].slide.stride; });
    return axes;
  }

  static std::vector<int64_t> sizes_after(const Pooling& pooling, std::vector<int64_t> sizes) {
    for (size_t i = 0; i < sizes.size(); ++i)
      sizes[i] = pooling.sides[i].count(sizes[i]);
    return sizes;
  }

  static double time_of(const Pooling& pooling, const std::vector<int64_t>& sizes) {
    double results = 1;
    for (int64_t count : sizes_after(pooling, sizes))
      results *= static_cast<double>(count);
    const bool is_padded = pooling.round_up || std::ranges::any_of(pooling.sides, &Side::is_padded);
    return results * (pooling.cells() * (is_padded ? kPaddedElement : 1) + kEachResult);
  }

  Plan plan_along(size_t axis, const Pooling& pooling, const std::vector<int64_t>& sizes) const {
    const double time = time_of(pooling, sizes);
    const auto parts = best_parts(axis, pooling, sizes, kWorthwhile * time);
    if (!parts)
      return {{pooling}, time};
    const auto& [first, second] = *parts;
    Plan rest = plan_along(axis, second, sizes_after(first, sizes));
    rest.poolings.insert(rest.poolings.begin(), first);
    rest.time += time_of(first, sizes);
    return rest;
  }

  // The two poolings along an axis that take the least time, if that is less than `least`.
  std::optional<std::pair<Pooling, Pooling>> best_parts(size_t axis, const Pooling& pooling,
                                                        const std::vector<int64_t>& sizes,
                                                        double least) const {
    const Side& side = pooling.sides[axis];
    std::optional<std::pair<Pooling, Pooling>> best;
    if (pooling.round_up || (is_mean_ && !count_padding_ && side.is_padded()))
      return best;
    // With many more cells than the root of all, the first part is the longer one.
    for (int64_t cells = 1; cells < side.kernel && cells * cells <= 4 * side.kernel; ++cells) {
      const int64_t apart = distance(side.kernel, cells);
      if (apart == 0)
        continue;
      const auto [inner, outer] = split(side, cells, apart);
      std::pair parts{along(pooling, axis, inner), along(pooling, axis, outer)};
      const double time =
          time_of(parts.first, sizes) + time_of(parts.second, sizes_after(parts.first, sizes));
      if (time < least) {
        least = time;
        best = std::move(parts);
      }
    }
    return best;
  }

  // How far apart windows of so many cells make up a window of `kernel` cells: as far as may be, and for a
  // mean without any cell counting twice. 0 where they do not.
  int64_t distance(int64_t kernel, int64_t cells) const {
    if (is_mean_)
      return kernel % cells == 0 ? cells : 0;
    for (int64_t apart = cells; apart > 0; --apart)
      if ((kernel - cells) % apart == 0)
        return apart;
    return 0;
  }

  // The first part has all the padding, so that nothing after it need ask for that.
  static std::pair<Side, Side> split(const Side& side, int64_t cells, int64_t apart) {
    Side first = side,
         second{(side.kernel - cells) / apart + 1, {side.slide.stride, side.slide.dilation * apart}};
    first.kernel = cells;
    first.slide.stride = 1;
    return {first, second};
  }

  bool is_mean_, count_padding_;
};

// --- what poolings a graph has ---

// A pooling that may be split, with its padding as numbers.
std::optional<Pooling> pooling_of(const Node& node, const Journal& journal) {
  const bool is_mean = node.is("average_pool");
  if (!is_mean && !node.is("max_pool"))
    return std::nullopt;
  const Value x = node.in("x");
  // What lies between two poolings is rounded, and must have an infinity for windows that see only padding.
  if (is_mean
          ? !journal.allows(Numerics::Reassociates) || (x.dtype() != DType::F32 && x.dtype() != DType::F64)
          : node.result(1).use_count() > 0 || (is_float(x.dtype()) && info(x.dtype()).bits < 16))
    return std::nullopt;
  const std::vector<int64_t>& kernel = node.attr("kernel");
  const auto window = explicit_window(node, x, std::vector<Dim>(kernel.begin(), kernel.end()));
  if (!window)
    return std::nullopt;
  const bool is_explicit = node.attr("padding").as<std::string>() == "explicit";  // others let windows fit
  Pooling pooling{.sides = {}, .round_up = is_explicit && node.attr("round_up")};
  for (size_t i = 0; i < kernel.size(); ++i)
    pooling.sides.push_back({kernel[i], window->slides[i]});
  if (std::ranges::any_of(pooling.sides, [](const Side& side) { return side.reach() > kLongestReach; }))
    return std::nullopt;
  return pooling;
}

Planner planner_of(const Node& node) {
  const bool is_mean = node.is("average_pool");
  return {is_mean, is_mean && node.attr("count_padding")};
}

Node* create(const Node& like, Value x, const Pooling& pooling) {
  std::vector<int64_t> kernel, strides, dilations, pads, after;
  for (const Side& side : pooling.sides) {
    kernel.push_back(side.kernel);
    strides.push_back(side.slide.stride);
    dilations.push_back(side.slide.dilation);
    pads.push_back(side.slide.before);
    after.push_back(side.slide.after);
  }
  pads.insert(pads.end(), after.begin(), after.end());
  Attributes attributes = like.attributes();
  attributes.insert_or_assign("kernel", kernel);
  attributes.insert_or_assign("strides", strides);
  attributes.insert_or_assign("dilations", dilations);
  attributes.insert_or_assign("pads", pads);
  attributes.insert_or_assign("padding", std::string("explicit"));
  attributes.insert_or_assign("round_up", pooling.round_up);
  return x.graph().create(like.op(), {{"x", x}}, attributes);
}

// --- windows of what smaller windows gave ---

// Along one dimension, at every element: the window of windows `small` that sees what `large` does. Where
// the edge cuts some off, the first or last that is left must still see the edge.
std::optional<Side> side_from(const Side& small, const Side& large, int64_t size) {
  const Slide &inner = small.slide, &outer = large.slide;
  const int64_t before = outer.before - inner.before, after = outer.after - inner.after,
                more = large.kernel - small.kernel;
  if (inner.stride != 1 || outer.stride != 1 || inner.dilation != 1 || outer.dilation != 1 ||
      std::min({inner.before, inner.after, before, after}) < 0 || std::max(before, after) > more)
    return std::nullopt;
  int64_t apart = std::max<int64_t>(
      std::min({inner.before + 1, inner.after + 1, small.kernel, small.count(size), more}), 1);
  while (more % apart != 0)
    --apart;
  return Side{more / apart + 1, {1, apart, before, after}};
}

std::optional<Pooling> pooling_from(const Pooling& small, const Pooling& large, Value x) {
  Pooling result;
  for (size_t i = 0; i < small.sides.size(); ++i) {
    const int64_t size = x.dim(static_cast<int64_t>(i) + 2).constant().value_or(1);  // at least
    const std::optional<Side> side = side_from(small.sides[i], large.sides[i], size);
    if (!side)
      return std::nullopt;
    result.sides.push_back(*side);
  }
  return result;
}

// How one of several poolings of an image is computed: of the image, or of what another one gave.
struct Step {
  Node* node;
  Pooling pooling;
  const Step* of;
  Plan plan;
  Value result;
};

std::vector<int64_t> sizes_of(Value x) {
  std::vector<int64_t> sizes;
  for (int64_t i = 2; i < x.rank(); ++i)
    sizes.push_back(x.dim(i).constant().value_or(kLikelySize));
  return sizes;
}

// The smaller windows first.
std::vector<Step> plan_steps(const std::vector<Node*>& nodes, const Journal& journal) {
  std::vector<Step> steps;
  steps.reserve(nodes.size());  // steps know each other
  for (Node* node : nodes)
    steps.push_back({node, *pooling_of(*node, journal), nullptr, {}, {}});
  std::ranges::stable_sort(steps, {}, [](const Step& step) { return step.pooling.cells(); });
  for (Step& step : steps) {
    const Value x = step.node->in("x");
    const Planner planner = planner_of(*step.node);
    step.plan = planner.plan(step.pooling, sizes_of(x));
    for (const Step* small = steps.data(); small != &step && step.node->is("max_pool"); ++small)
      if (const auto rest = pooling_from(small->pooling, step.pooling, x))
        if (Plan plan = planner.plan(*rest, sizes_of(small->node->result(0))); plan.time < step.plan.time) {
          step.plan = std::move(plan);
          step.of = small;
        }
  }
  return steps;
}

// All poolings of one kind of an image, in the order of the graph.
void compute_in_steps(Graph& graph, const std::vector<Node*>& nodes, Journal& journal) {
  std::vector<Step> steps = plan_steps(nodes, journal);
  if (std::ranges::all_of(steps,
                          [](const Step& step) { return !step.of && step.plan.poolings.size() == 1; }) ||
      !journal.is_open())
    return;
  {
    const InsertBefore here(nodes.front());
    for (Step& step : steps) {
      const WithSources sources(*step.node);
      step.result = step.of != nullptr ? step.of->result : step.node->in("x");
      for (const Pooling& pooling : step.plan.poolings)
        step.result = create(*step.node, step.result, pooling)->result(0);
    }
  }
  journal.applied("decompose-pooling", nodes,
                  nodes.front()->is("max_pool") ? Numerics::BitExact : Numerics::Reassociates);
  for (const Step& step : steps)
    if (step.result.type() == step.node->result(0).type())
      graph.replace(step.node, step.result.node()->results());
}

}  // namespace

void decompose_pooling(Graph& graph, Journal& journal) {
  std::map<std::pair<Value, std::string_view>, std::vector<Node*>> poolings;
  std::vector<const std::vector<Node*>*> in_order;
  for (Node* node : graph.nodes())
    if (pooling_of(*node, journal)) {
      std::vector<Node*>& alike = poolings[{node->in("x"), node->op().name}];
      if (alike.empty())
        in_order.push_back(&alike);
      alike.push_back(node);
    }
  for (const std::vector<Node*>* alike : in_order)
    compute_in_steps(graph, *alike, journal);
}

}  // namespace tenon
