// linear.cpp — products with weights: one spelling, `linear`, that takes in the transposes, biases and scales
// around it. What is done to weights becomes nodes of their own, to be computed once.
#include "ops/linear.h"

#include <algorithm>
#include <numeric>

#include "ops/binary.h"
#include "ops/reshape.h"
#include "rewrite/quantised.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// The numbers that `c` adds to or multiplies each output of a linear layer by, as a vector or a single
// number; nothing when they also depend on other dimensions.
Value per_output(Value c) {
  if (!c.shape().ranked())
    return {};
  for (int64_t axis = 0; axis < c.rank() - 1; ++axis)
    if (c.dim(axis) != Dim(1))
      return {};
  return c.rank() <= 1 ? c : reshape(c, {-1});
}

bool is_per_output(Value c) {
  if (!c.shape().ranked())
    return false;
  for (int64_t axis = 0; axis < c.rank() - 1; ++axis)
    if (c.dim(axis) != Dim(1))
      return false;
  return true;
}

Condition is_per_output(const Pattern& c) {
  return {c.to_string() + " is one number or one for each output",
          [=](const Match& m) { return is_per_output(m[c]); }};
}

Condition is_matrix(const Pattern& w) {
  return {w.to_string() + " is a matrix",
          [=](const Match& m) { return m[w].shape().ranked() && m[w].rank() == 2; }};
}

bool swaps_last_two(const Node& transpose) {
  const std::vector<int64_t>& permutation = transpose.attr("permutation");
  const size_t rank = permutation.size();
  if (rank < 2)
    return false;
  for (size_t i = 0; i + 2 < rank; ++i)
    if (permutation[i] != static_cast<int64_t>(i))
      return false;
  return permutation[rank - 1] == static_cast<int64_t>(rank) - 2;
}

Value linear(Value x, Value weight, Value bias) {
  return x.graph().create("linear", {{"x", x}, {"weight", weight}, {"bias", bias}})->result();
}

// A matrix product whose operand of this name is transposed: the product can do that itself.
Rule transposed_operand(std::string_view name, const std::string& operand, std::string_view fires,
                        std::string_view stays) {
  const Pattern x = any("x"), y = any("y"), turned = unary("transpose", x);
  const Pattern product =
      operand == "a" ? op("matmul", {{"a", turned}, {"b", y}}) : op("matmul", {{"a", y}, {"b", turned}});
  const std::string flag = "transpose_" + operand;
  return {.name = name,
          .match = product,
          .replace = {"the same product of x, transposed there",
                      [=](const Match& m) {
                        Attributes attributes = m.node(product).attributes();
                        attributes.insert_or_assign(flag, !attributes.at(flag).as<bool>());
                        const Value a = operand == "a" ? m[x] : m[y], b = operand == "a" ? m[y] : m[x];
                        return m[x].graph().create("matmul", {{"a", a}, {"b", b}}, attributes)->result();
                      }},
          .when = {{"only the last two dimensions change places",
                    [=](const Match& m) { return swaps_last_two(m.node(turned)); }}},
          .numerics = Numerics::BitExact,
          .fires = fires,
          .stays = stays};
}

// --- convolutions of single pixels ---

bool is_of_single_pixels(const Node& conv) {
  const std::vector<int64_t>&pads = conv.attr("pads"), &strides = conv.attr("strides");
  const auto extents = conv.in("w").shape().extents();
  const auto is_one = [](int64_t size) { return size == 1; };
  return extents && std::all_of(extents->begin() + 2, extents->end(), is_one) &&
         std::all_of(strides.begin(), strides.end(), is_one) && conv.attr("groups").as<int64_t>() == 1 &&
         std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
}

// Whether it moves the last dimension to the place of the channels, the second; or from there back.
bool moves_channels(const Node& transpose, bool to_the_second) {
  const std::vector<int64_t>& permutation = transpose.attr("permutation");
  std::vector<int64_t> wanted(permutation.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  if (to_the_second)
    std::rotate(wanted.begin() + 1, wanted.end() - 1, wanted.end());
  else
    std::rotate(wanted.begin() + 1, wanted.begin() + 2, wanted.end());
  return permutation == wanted;
}

// A convolution of single pixels between transposes is a linear layer of the channels.
Rule linear_of_pixels() {
  const Pattern x = any("x"), w = constant("w"), b = constant("b"), first = unary("transpose", x);
  const Pattern conv = op("conv", {{"x", first}, {"w", w}}).once(), biased = (conv + b).once();
  const Pattern last = unary("transpose", either({biased, conv}));
  return {
      .name = "linear-of-pixels",
      .match = last,
      .replace = {"linear(x, w)",
                  [=](const Match& m) {
                    const Extents extents = *m[w].shape().extents();
                    return linear(m[x], reshape(m[w], {extents[0], extents[1]}),
                                  m.has(biased) ? reshape(m[b], {-1}) : Value());
                  }},
      .when = {is_float(x),
               is_not_quantised(w),
               {"the rank is known",
                [=](const Match& m) { return m[x].shape().ranked() && m[x].rank() > 2; }},
               {"the convolution sees single pixels",
                [=](const Match& m) { return is_of_single_pixels(m.node(conv)); }},
               {"the channels are last, before and after it",
                [=](const Match& m) {
                  return moves_channels(m.node(first), true) && moves_channels(m.node(last), false);
                }},
               {"there is a number for each output in b",
                [=](const Match& m) {
                  return !m.has(biased) ||
                         (m[b].shape().ranked() && m[b].shape().element_count() == m[w].dim(0) &&
                          m[biased].type() == m[conv].type() && m[b].rank() + 1 >= m[x].rank() &&
                          m[b].dim(1 - m[x].rank()) == m[w].dim(0));
                }}},
      .numerics = Numerics::Reassociates,
      .fires =
          "(%x: T[n,3,4,2]) { %w = parameter(name=\"w\", value=T[3,2,1,1] {1, 2, 3, 4, 5, 6}) "
          "%b = parameter(name=\"b\", value=T[3,1,1] {1, 2, 3}) %0 = transpose(%x, permutation=[0, 3, 1, 2]) "
          "%1 = conv(%0, %w, strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]) %2 = add(%1, %b) "
          "%y = transpose(%2, permutation=[0, 2, 3, 1]) return %y }",
      .stays =
          "(%x: T[n,3,4,2]) { %w = parameter(name=\"w\", value=T[3,2,1,1] {1, 2, 3, 4, 5, 6}) "
          "%0 = transpose(%x, permutation=[0, 3, 1, 2]) "
          "%1 = conv(%0, %w, strides=[1, 2], dilations=[1, 1], pads=[0, 0, 0, 0]) "
          "%y = transpose(%1, permutation=[0, 2, 3, 1]) return %y }"};
}

Rules make_rules() {
  const Pattern x = any("x"), w = constant("w"), b = constant("b"), c = constant("c"), v = constant("v");
  const Pattern plain = op("linear", {{"x", x}, {"weight", w}}).once(),
                biased = op("linear", {{"x", x}, {"weight", w}, {"bias", b}}).once();
  const Pattern product = op("matmul", {{"a", x}, {"b", w}}).with("transpose_a", false);
  const Pattern inner = op("linear", {{"x", x}, {"weight", v}}).once(),
                inner_biased = op("linear", {{"x", x}, {"weight", v}, {"bias", c}}).once();
  const Pattern outer_biased =
      op("linear", {{"x", either({inner, inner_biased})}, {"weight", w}, {"bias", b}});
  return {
      transposed_operand(
          "transpose-left", "a",
          "(%x: T[2,n,m], %y: T[2,n,3]) { %t = transpose(%x, permutation=[0, 2, 1]) %z = matmul(%t, %y) "
          "return %z }",
          "(%x: T[n,2,m], %y: T[2,m,3]) { %t = transpose(%x, permutation=[1, 0, 2]) %z = matmul(%t, %y) "
          "return %z }"),
      transposed_operand(
          "transpose-right", "b",
          "(%x: T[2,n,m], %y: T[2,3,m]) { %t = transpose(%y, permutation=[0, 2, 1]) %z = matmul(%x, %t) "
          "return %z }",
          "(%x: T[2,n,m], %y: T[3,m,2]) { %t = transpose(%y, permutation=[2, 1, 0]) %z = matmul(%x, %t) "
          "return %z }"),
      linear_of_pixels(),
      {.name = "linear",
       .match = product,
       .replace = {"linear(x, transpose(w))",
                   [=](const Match& m) {
                     const bool is_transposed = m.node(product).attr("transpose_b");
                     return linear(m[x], is_transposed ? m[w] : transpose(m[w], {1, 0}), {});
                   }},
       .when = {is_float(x),
                is_matrix(w),
                is_not_fixed(x),
                // Others look for a product of what is dequantised, and a transpose would run each time.
                {"w is transposed already, or not made of quantised numbers",
                 [=](const Match& m) {
                   return m.node(product).attr("transpose_b").as<bool>() || !is_quantised(m[w]);
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,3,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%y = matmul(%x, %w) return %y }",
       .stays = "(%x: T[n,3,2]) { %w = parameter(name=\"w\", value=T[1,2,2] {1, 2, 3, 4}) "
                "%y = matmul(%x, %w) return %y }"},
      {.name = "linear-add-bias",
       .match = plain + c,
       .replace = {"linear(x, w, c)",
                   [=](const Match& m) {
                     const Dim outputs = m[w].dim(0);
                     const Value bias = per_output(m[c]);
                     const bool fits = bias.rank() == 1 && provably_equal(bias.dim(0), outputs);
                     return linear(m[x], m[w],
                                   fits ? bias : broadcast_to(bias, shape_of(reshape(m[w], {-1}))));
                   }},
       .when = {is_per_output(c),
                {"there is a number for each output",
                 [=](const Match& m) {
                   return m[c].rank() >= 1 && provably_equal(m[c].dim(-1), m[w].dim(0));
                 }}},
       .numerics = Numerics::Reassociates,
       .fires =
           "(%x: T[n,3,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
           "%b = parameter(name=\"b\", value=T[2] {5, 6}) %0 = linear(%x, %w) %y = add(%b, %0) return %y }",
       .stays = "(%x: T[n,3,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%b = parameter(name=\"b\", value=T[3,1] {5, 6, 7}) %0 = linear(%x, %w) %y = add(%b, %0) "
                "return %y }"},
      {.name = "linear-add-to-bias",
       .match = biased + c,
       .replace = {"linear(x, w, b + c)",
                   [=](const Match& m) { return linear(m[x], m[w], m[b] + per_output(m[c])); }},
       .when = {is_per_output(c)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%b = parameter(name=\"b\", value=T[2] {5, 6}) %c = constant(value=T[1,2] {1, 2}) "
                "%0 = linear(%x, %w, %b) %y = add(%0, %c) return %y }",
       .stays = "(%x: T[n,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%b = parameter(name=\"b\", value=T[2] {5, 6}) %c = constant(value=T[1,2] {1, 2}) "
                "%0 = linear(%x, %w, %b) %y = add(%0, %c) return %y, %0 }"},
      {.name = "scale-into-linear",
       .match = either({plain, biased}) * c,
       .replace = {"linear(x, w * c, b * c)",
                   [=](const Match& m) {
                     const Value factor = per_output(m[c]);
                     const Value column = factor.rank() == 0 ? factor : reshape(factor, {-1, 1});
                     return linear(m[x], m[w] * column, m.has(biased) ? m[b] * factor : Value());
                   }},
       .when = {is_per_output(c), is_not_quantised(w)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%b = parameter(name=\"b\", value=T[2] {5, 6}) %c = constant(value=T[1,2] {1, 2}) "
                "%0 = linear(%x, %w, %b) %y = mul(%0, %c) return %y }",
       .stays = "(%x: T[3,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%b = parameter(name=\"b\", value=T[2] {5, 6}) %c = constant(value=T[3,1] {1, 2, 3}) "
                "%0 = linear(%x, %w, %b) %y = mul(%0, %c) return %y }"},
      // Two layers with nothing between them are one; worth it when its weights are not more.
      {.name = "linear-of-linear",
       .match = either({op("linear", {{"x", either({inner, inner_biased})}, {"weight", w}}), outer_biased}),
       .replace = {"linear(x, w v, w c + b)",
                   [=](const Match& m) {
                     Value bias = m.has(outer_biased) ? m[b] : Value();
                     if (m.has(inner_biased)) {
                       const Value moved = matmul(m[w], m[c]);
                       bias = bias ? moved + bias : moved;
                     }
                     return linear(m[x], matmul(m[w], m[v]), bias);
                   }},
       .when = {is_ordinary_float(x),
                {"the product of the weights is no larger than they are",
                 [=](const Match& m) {
                   const auto outputs = m[w].dim(0).constant(), middle = m[w].dim(1).constant(),
                              inputs = m[v].dim(1).constant();
                   const int64_t more = m.has(inner_biased) && !m.has(outer_biased) ? 1 : 0;
                   return outputs && middle && inputs &&
                          *outputs * (*inputs + more) <= *middle * (*inputs + *outputs + more);
                 },
                 true},
                is_not_quantised(w),
                is_not_quantised(v)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2]) { %w = parameter(name=\"w\", value=T[2,2] {1, 2, 3, 4}) "
                "%v = parameter(name=\"v\", value=T[2,2] {1, 0.5, 0.25, 2}) "
                "%c = parameter(name=\"c\", value=T[2] {3, 4}) %b = parameter(name=\"b\", value=T[2] {5, 6}) "
                "%0 = linear(%x, %v, %c) %y = linear(%0, %w, %b) return %y }",
       .stays = "(%x: T[n,3]) { %w = parameter(name=\"w\", value=T[3,1] {1, 2, 3}) "
                "%v = parameter(name=\"v\", value=T[1,3] {1, 2, 3}) "
                "%0 = linear(%x, %v) %y = linear(%0, %w) return %y }"},
  };
}

}  // namespace

const Rules& linear_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
