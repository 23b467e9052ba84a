// transpose.cpp — transposes that do nothing, that meet another, or that only move dimensions of size 1.
#include <algorithm>
#include <numeric>

#include "ops/reshape.h"
#include "rewrite/rules/rules.h"
#include "rewrite/view.h"

namespace tenon {
namespace {

using Permutation = std::vector<int64_t>;

const Permutation& permutation_of(const Node& transpose) { return transpose.attr("permutation"); }

// What transposing by `first` and then by `second` is.
Permutation compose(const Permutation& first, const Permutation& second) {
  Permutation both;
  for (int64_t axis : second)
    both.push_back(first[static_cast<size_t>(axis)]);
  return both;
}

// Whether the dimensions that may be larger than 1 stay in their order.
bool moves_nothing(const Node& transpose) {
  int64_t last = -1;
  for (int64_t axis : permutation_of(transpose)) {
    if (transpose.in("x").dim(axis) == Dim(1))
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

// The permutation of x that, with the dimensions of size 1 then coming or going, is the transpose of a
// squeeze or unsqueeze of x: what stays of the dimensions, in their new order.
std::optional<Permutation> permutation_before(const Node& squeeze, const Permutation& permutation) {
  const bool adds = squeeze.is("unsqueeze");
  const Permutation& axes = squeeze.attr("axes");
  const int64_t rank = std::max(squeeze.in("x").rank(), squeeze.result().rank());
  // Where the dimensions that x and its view share stand in the larger of the two.
  Permutation shared;
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      shared.push_back(i);
  Permutation before;
  if (adds) {
    for (int64_t axis : permutation)
      if (const auto it = std::find(shared.begin(), shared.end(), axis); it != shared.end())
        before.push_back(it - shared.begin());
    return before;
  }
  // What is dropped goes first, where it is in nobody's way.
  before = axes;
  for (int64_t axis : permutation)
    before.push_back(shared[static_cast<size_t>(axis)]);
  return before;
}

Rules make_rules() {
  const Pattern x = any("x");
  const Condition ranked = {"the rank is known", [=](const Match& m) { return m[x].shape().ranked(); }};
  const Pattern inner = unary("transpose", x), outer = unary("transpose", inner);
  const Pattern root = unary("transpose", x);
  const Pattern squeezed = either({unary("squeeze", inner), unary("unsqueeze", inner)});
  const Pattern around = unary("transpose", squeezed);
  return {
      {.name = "transpose-of-transpose",
       .match = outer,
       .replace = {"transpose(x)",
                   [=](const Match& m) {
                     return transpose(m[x],
                                      compose(permutation_of(m.node(inner)), permutation_of(m.node(outer))));
                   }},
       .when = {ranked},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m,2]) { %0 = transpose(%x, permutation=[1, 2, 0]) "
                "%1 = transpose(%0, permutation=[0, 2, 1]) return %1 }",
       .stays = "(%x: T[n,m,2]) { %0 = unsqueeze(%x, axes=[0]) "
                "%1 = transpose(%0, permutation=[0, 2, 1, 3]) return %1 }"},
      {.name = "transpose-of-size-one",
       .match = root,
       .replace = {"view(x)", [=](const Match& m) { return view(m[x], m.root().shape()); }},
       .when = {ranked,
                {"only dimensions of size 1 move",
                 [=](const Match& m) { return moves_nothing(m.node(root)); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1,m,1]) { %0 = transpose(%x, permutation=[1, 0, 3, 2]) "
                "%1 = transpose(%x, permutation=[0, 1, 2, 3]) return %0, %1 }",
       .stays = "(%x: T[n,1,m,1]) { %0 = transpose(%x, permutation=[2, 1, 0, 3]) return %0 }"},
      {.name = "transpose-around-squeeze",
       .match = around,
       .replace = {"view(transpose(x))",
                   [=](const Match& m) {
                     const Node& squeeze = m.node(squeezed);
                     const auto before = permutation_before(squeeze, permutation_of(m.node(around)));
                     return view(transpose(m[x], compose(permutation_of(m.node(inner)), *before)),
                                 m.root().shape());
                   }},
       .when = {ranked,
                {"the axes are in order",
                 [=](const Match& m) {
                   const Permutation& axes = m.node(squeezed).attr("axes");
                   return std::is_sorted(axes.begin(), axes.end()) && (axes.empty() || axes.front() >= 0);
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m,1]) { %0 = transpose(%x, permutation=[1, 0, 2]) %1 = unsqueeze(%0, axes=[1]) "
                "%2 = transpose(%1, permutation=[2, 0, 3, 1]) %3 = squeeze(%0, axes=[2]) "
                "%4 = transpose(%3, permutation=[1, 0]) return %2, %4 }",
       .stays = "(%x: T[n,m,1]) { %1 = unsqueeze(%x, axes=[1]) "
                "%2 = transpose(%1, permutation=[2, 0, 3, 1]) return %2 }"},
  };
}

}  // namespace

const Rules& transpose_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
