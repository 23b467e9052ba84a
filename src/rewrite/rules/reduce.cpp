// reduce.cpp — reductions of nothing, and one spelling for the others: axes counted from the front, in order,
// and reduced dimensions kept or dropped by the reduction itself.
#include "ops/reduce.h"

#include <algorithm>
#include <numeric>

#include "ops/shapes.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

// Those that give x itself, down to the sign of a zero, where there is one element to reduce.
const std::set<std::string, std::less<>> kExact = {"reduce_max", "reduce_min", "reduce_prod"};
// A sum starts from 0, and -0 + 0 is 0.
const std::set<std::string, std::less<>> kAlmostExact = {"reduce_sum", "reduce_mean", "reduce_log_sum_exp"};
const std::set<std::string, std::less<>> kReductions = {"reduce_max", "reduce_min",  "reduce_prod",
                                                        "reduce_sum", "reduce_mean", "reduce_log_sum_exp"};
const std::set<std::string, std::less<>> kKeepers = {"reduce_max", "reduce_min",  "reduce_prod",
                                                     "reduce_sum", "reduce_mean", "reduce_log_sum_exp",
                                                     "arg_max",    "arg_min"};

bool is_plain(const Node& reduction) {
  return is_ranked(reduction.in("x")) && reduction.late_names().empty();
}

Ints axes_of(const Node& reduction) {
  const Ints axes = reduction.op().find_attribute("axes") ? reduction.attr("axes").as<Ints>()
                                                          : Ints{reduction.attr("axis")};
  return checked_axes(reduction.op().name, axes, reduction.in("x").rank());
}

Condition reduces_nothing(const Pattern& reduction) {
  return {"what is reduced has size 1", [=](const Match& m) {
            const Node& node = m.node(reduction);
            if (!is_plain(node))
              return false;
            const Ints axes = axes_of(node);
            return std::all_of(axes.begin(), axes.end(),
                               [&](int64_t axis) { return node.in("x").dim(axis) == Dim(1); });
          }};
}

Value copy_with(const Node& node, std::string_view attribute, Attribute value) {
  Attributes attributes = node.attributes();
  attributes.insert_or_assign(std::string(attribute), std::move(value));
  return node.graph().create(node.op(), {{"x", node.in("x")}}, std::move(attributes))->result();
}

// The shape that the reduction gives when it keeps dimensions that it drops, or drops those that it keeps.
Shape shape_if_kept_otherwise(const Node& reduction) {
  const Ints axes = axes_of(reduction);
  const bool keep = reduction.attr("keep_dims");
  std::vector<Dim> dims;
  for (int64_t i = 0; i < reduction.in("x").rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    if (!reduced || !keep)
      dims.push_back(reduced ? Dim(1) : reduction.in("x").dim(i));
  }
  return dims;
}

// Whether its only window sees all of x and nothing else.
bool sees_all(const Node& pool) {
  const Value x = pool.in("x");
  if (!is_ranked(x) || pool.attr("padding").as<std::string>() != "explicit")
    return false;
  const Ints &kernel = pool.attr("kernel"), &dilations = pool.attr("dilations"), &pads = pool.attr("pads");
  for (size_t i = 0; i < kernel.size(); ++i)
    if (x.dim(static_cast<int64_t>(i) + 2) != Dim(kernel[i]) || (dilations[i] != 1 && kernel[i] != 1))
      return false;
  return std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
}

Axes spatial_axes(Value x) {
  Axes axes(static_cast<size_t>(x.rank()) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

// A pool with one window is a reduction, which is how a global pool is written.
Rules pool_rules() {
  const Pattern average = result_of("average_pool"), greatest = result_of("max_pool");
  return {
      {.name = "average-pool-of-all",
       .match = average,
       .replace = {"reduce_mean(x)",
                   [=](const Match& m) {
                     const Value x = m.node(average).in("x");
                     return reduce_mean(x, spatial_axes(x), Keep::Dims);
                   }},
       .when = {{"its window sees all of x", [=](const Match& m) { return sees_all(m.node(average)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,2,3,4]) { %y = average_pool(%x, kernel=[3, 4], strides=[1, 2], dilations=[1, 1], "
                "pads=[0, 0, 0, 0]) return %y }",
       .stays = "(%x: T[n,2,3,4]) { %y = average_pool(%x, kernel=[3, 4], strides=[1, 2], dilations=[1, 1], "
                "pads=[0, 0, 0, 1]) return %y }"},
      {.name = "max-pool-of-all",
       .match = greatest,
       .replace = {"reduce_max(x)",
                   [=](const Match& m) {
                     const Value x = m.node(greatest).in("x");
                     return reduce_max(x, spatial_axes(x), Keep::Dims);
                   }},
       .when = {{"its window sees all of x", [=](const Match& m) { return sees_all(m.node(greatest)); }},
                {"the indices are not wanted",
                 [=](const Match& m) { return m.node(greatest).result(1).use_count() == 0; }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,2,3]) { %y, %i = max_pool(%x, kernel=[3], strides=[1], dilations=[1], pads=[0, 0]) "
                "return %y }",
       .stays = "(%x: T[n,2,3]) { %y, %i = max_pool(%x, kernel=[3], strides=[1], dilations=[1], pads=[0, 0]) "
                "return %y, %i }"},
  };
}

Rules make_rules() {
  const Pattern exact = result_of("reduce", kExact), almost = result_of("reduce", kAlmostExact);
  const Pattern any_reduction = result_of("reduce", kReductions);
  const Pattern kept = result_of("reduce", kKeepers).once();
  const Pattern squeezed = either({unary("squeeze", kept), unary("unsqueeze", kept)});
  const auto view_of_operand = [](const Match& m) {
    return view(m.root().node()->in("x"), m.root().shape());
  };
  return {
      {.name = "reduce-one-element",
       .match = exact,
       .replace = {"view(x)", view_of_operand},
       .when = {reduces_nothing(exact)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1,3]) { %y = reduce_max(%x, axes=[1]) return %y }",
       .stays = "(%x: T[n,1,3]) { %y = reduce_max(%x, axes=[1, 2]) return %y }"},
      {.name = "add-up-one-element",
       .match = almost,
       .replace = {"view(x)", view_of_operand},
       .when = {reduces_nothing(almost),
                {"it is no logarithm of integers, which is rounded to one",
                 [=](const Match& m) {
                   return is_float(m.root().dtype()) || !m.node(almost).is("reduce_log_sum_exp");
                 }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,1,3]) { %y = reduce_mean(%x, axes=[1], keep_dims=true) return %y }",
       .stays = "(%x: i64[n,1,3]) { %y = reduce_mean(%x, axes=[0]) %z = reduce_log_sum_exp(%x, axes=[1]) "
                "return %y, %z }"},
      {.name = "axes-from-the-front",
       .match = any_reduction,
       .replace = {"reduce(x, axes=…)",
                   [=](const Match& m) {
                     const Node& node = m.node(any_reduction);
                     return copy_with(node, "axes", axes_of(node));
                   }},
       .when = {{"axes are not in order",
                 [=](const Match& m) {
                   const Node& node = m.node(any_reduction);
                   return is_plain(node) && node.attr("axes").as<Ints>() != axes_of(node);
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m,3]) { %y = reduce_sum(%x, axes=[-1, 0]) return %y }",
       .stays = "(%x: T[n,m,3]) { %y = reduce_sum(%x, axes=[0, 2]) return %y }"},
      {.name = "keep-reduced-dimensions",
       .match = squeezed,
       .replace = {"reduce(x, keep_dims=…)",
                   [=](const Match& m) {
                     const Node& node = m.node(kept);
                     return copy_with(node, "keep_dims", !node.attr("keep_dims").as<bool>());
                   }},
       .when = {{"it undoes keep_dims",
                 [=](const Match& m) {
                   const Node& node = m.node(kept);
                   return is_plain(node) && is_ranked(m.root()) &&
                          shape_if_kept_otherwise(node) == m.root().shape();
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[2,m,3]) { %0 = reduce_max(%x, axes=[1]) %y = unsqueeze(%0, axes=[1]) "
                "%1 = arg_max(%x, axis=0, keep_dims=true) %z = squeeze(%1, axes=[0]) return %y, %z }",
       .stays =
           "(%x: T[n,m,3]) { %0 = reduce_max(%x, axes=[1]) %y = unsqueeze(%0, axes=[1]) return %0, %y }"},
  };
}

}  // namespace

const Rules& reduce_rules() {
  static const Rules reductions = make_rules(), pools = pool_rules(), rules = joined({&reductions, &pools});
  return rules;
}

}  // namespace tenon
