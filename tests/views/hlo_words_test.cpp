#include "views/show.h"

namespace tenon {
namespace {

// A graph of one op, and lines that HLO shows for it, one after the other.
struct Case {
  std::string_view inputs, op;
  std::vector<std::string_view> lines;
};

void expect_lines(const std::vector<Case>& cases) {
  for (const auto& [inputs, op, lines] : cases) {
    const std::string shown = show_text("hlo", fmt::format("graph({}) {{ {} return %y }}", inputs, op));
    size_t at = 0;
    for (std::string_view line : lines) {
      at = shown.find(line, at);
      ASSERT_NE(at, std::string::npos) << "no " << line << " in\n" << shown;
    }
  }
}

TEST(HloWords, Slice) {
  const auto slice = [](std::string_view start, std::string_view end, std::string_view step,
                        std::string_view axis) {
    return fmt::format(
        "%s = constant(value=i64[1]{{{}}}) %e = constant(value=i64[1]{{{}}}) "
        "%t = constant(value=i64[1]{{{}}}) %y = slice(%x, %s, %e, %t, axes=[{}])",
        start, end, step, axis);
  };
  const std::string last = slice("-2", "9223372036854775807", "1", "-1"),
                    every_other = slice("1", "6", "2", "1"),
                    backwards = slice("-1", "-9223372036854775808", "-1", "1"),
                    unknown = slice("-1", "9", "1", "0");
  expect_lines({
      {"%x: f32[n,8]", last, {"f32[?,2] slice(p0), slice={[0:?], [6:8]}\n"}},
      {"%x: f32[n,8]", every_other, {"f32[?,3] slice(p0), slice={[0:?], [1:6:2]}\n"}},
      {"%x: f32[n,8]", backwards, {"f32[?,8] reverse(p0), dimensions={1}\n"}},
      {"%x: f32[n,8]", unknown, {"custom_call_target=\"tenon.slice\""}},
      {"%x: f32[4,8], %s: i64[1], %e: i64[1]",
       "%y: f32[2,8] = slice(%x, %s, %e, axes=[0])",
       {"reshape = s64[] reshape(p1)\n",
        "f32[2,8] dynamic-slice(p0, reshape, s64[] constant(0)), dynamic_slice_sizes={2,8}\n"}},
      {"%x: f32[4,8], %s: i64[1], %e: i64[1]",
       "%y = slice(%x, %s, %e, axes=[0])",
       {"custom_call_target=\"tenon.slice\""}},
      {"%x: f32[2,7]",
       "%s = constant(value=i64[2]{3, 4}) %y, %z = split(%x, %s, axis=1)",
       {"f32[2,3] slice(p0), slice={[0:2], [0:3]}\n", "f32[2,4] slice(p0), slice={[0:2], [3:7]}\n"}},
  });
}

TEST(HloWords, Shape) {
  expect_lines({
      {"%x: f32[2,3]", "%y = shape(%x)", {"s64[2] constant({2, 3})\n"}},
      {"%x: f32[]", "%y = shape(%x)", {"s64[0] constant({})\n"}},
      {"%x: f32[n,3]",
       "%y = shape(%x)",
       {"get_dimension_size = s32[] get-dimension-size(p0), dimensions={0}\n",
        "convert = s64[] convert(get_dimension_size)\n", "reshape = s64[1] reshape(convert)\n",
        "s64[2] concatenate(reshape, s64[1] constant({3})), dimensions={0}\n"}},
  });
}

TEST(HloWords, Gather) {
  expect_lines({
      {"%x: f32[4,5]",
       "%i = constant(value=i64[]{-1}) %y = gather(%x, %i, axis=1)",
       {"slice = f32[4,1] slice(p0), slice={[0:4], [4:5]}\n", "f32[4] reshape(slice)\n"}},
      {"%x: f32[4,5,6], %i: i64[2,3]",
       "%y = gather(%x, %i, axis=1)",
       {"compare = pred[2,3] compare(p1, s64[2,3] broadcast(s64[] constant(0))), direction=LT\n",
        "add = s64[2,3] add(p1, s64[2,3] broadcast(s64[] constant(5)))\n",
        "indices = s64[2,3] select(compare, add, p1)\n",
        "f32[4,2,3,6] gather(p0, indices), offset_dims={0,3}, collapsed_slice_dims={1}, start_index_map={1}, "
        "index_vector_dim=2, slice_sizes={4,1,6}\n"}},
      {"%x: f32[4,5,6], %i: i64[3,2]",
       "%y = gather_nd(%x, %i)",
       {"sizes = s64[3,2] broadcast(s64[2] constant({4, 5})), dimensions={1}\n",
        "add = s64[3,2] add(p1, sizes)\n",
        "f32[3,6] gather(p0, indices), offset_dims={1}, collapsed_slice_dims={0,1}, start_index_map={0,1}, "
        "index_vector_dim=1, slice_sizes={1,1,6}\n"}},
      {"%x: f32[4,5], %i: i64[4,2]",
       "%y = gather_elements(%x, %i, axis=1)",
       {"f32[4,2] gather(p0, indices), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
        "slice_sizes={1,1}\n"}},
      {"%x: f32[4,5], %i: i64[3,2]",
       "%y = gather_elements(%x, %i, axis=1)",
       {"custom_call_target=\"tenon.gather_elements\""}},
      {"%x: f32[n,5]",
       "%i = constant(value=i64[2]{-1, 0}) %y = gather(%x, %i)",
       {"custom_call_target=\"tenon.gather\""}},
      {"%x: f32[4,5]",
       "%i = constant(value=i64[2]{1, 0}) %y = gather(%x, %i)",
       {"f32[2,5] gather(p0, constant), "}},
      {"%x: f32[n,5], %i: i64[2]", "%y = gather(%x, %i)", {"f32[2,5] gather(p0, p1), "}},
  });
}

TEST(HloWords, PadAndTriangle) {
  expect_lines({
      {"%x: f32[2,3]",
       "%p = constant(value=i64[2]{1, 2}) %y = pad(%x, %p, axes=[-1])",
       {"f32[2,6] pad(p0, f32[] constant(0)), padding=0_0x1_2\n"}},
      {"%x: f32[2,3]",
       "%p = constant(value=i64[2]{1, 2}) %y = pad(%x, %p, axes=[1], mode=\"edge\")",
       {"custom_call_target=\"tenon.pad\""}},
      {"%x: f32[3,3]",
       "%y = triangle(%x, upper=false)",
       {"iota = s64[3,3] iota(), iota_dimension=0\n", "iota_1 = s64[3,3] iota(), iota_dimension=1\n",
        "compare = pred[3,3] compare(iota_1, iota), direction=LE\n",
        "f32[3,3] select(compare, p0, f32[3,3] broadcast(f32[] constant(0)))\n"}},
      {"%x: f32[3,3]",
       "%y = triangle(%x, upper=true, diagonal=1)",
       {"add(iota, s64[3,3] broadcast(s64[] constant(1)))\n", "direction=GE\n"}},
  });
}

TEST(HloWords, Formulas) {
  expect_lines({
      {"%x: f32[2]", "%y = is_nan(%x)", {"pred[2] compare(p0, p0), direction=NE\n"}},
      {"%x: f32[2]", "%y = gelu(%x)", {"f32[2] erf(multiply)\n", "f32[2] multiply(multiply_1, add)\n"}},
      {"%x: f32[2]", "%y = gelu(%x, approximate=\"tanh\")", {"f32[2] tanh(", "f32[2] multiply("}},
      {"%x: f32[2]",
       "%y = hard_sigmoid(%x)",
       {"multiply(p0, f32[2] broadcast(f32[] constant(0.2)))\n",
        "clamp(f32[2] broadcast(f32[] constant(0)), add, f32[2] broadcast(f32[] constant(1)))\n"}},
      {"%x: f32[2]", "%y = hard_swish(%x)", {" clamp(", "f32[2] multiply(p0, clamp)\n"}},
      {"%x: f32[2]", "%y = silu(%x)", {"f32[2] logistic(p0)\n", "f32[2] multiply(p0, logistic)\n"}},
      {"%x: f32[2]",
       "%y = elu(%x, alpha=2.0)",
       {"f32[2] exponential-minus-one(p0)\n",
        "multiply = f32[2] multiply(exponential_minus_one, f32[2] broadcast(f32[] constant(2)))\n",
        "f32[2] select(compare, p0, multiply)\n"}},
      {"%x: f32[2]",
       "%y = elu(%x, scale=3.0)",
       {"f32[2] multiply(select, f32[2] broadcast(f32[] constant(3)))\n"}},
      {"%x: f32[2]",
       "%y = softplus(%x)",
       {"f32[2] log-plus-one(exponential)\n", "f32[2] add(maximum, log_plus_one)\n"}},
      {"%x: f32[2]", "%y = mish(%x)", {"f32[2] tanh(add)\n", "f32[2] multiply(p0, tanh)\n"}},
      {"%x: f32[2]", "%y = leaky_relu(%x)", {"direction=GE\n", "f32[2] select(compare, p0, multiply)\n"}},
      {"%a: i64[2], %b: i64[2]",
       "%y = mod(%a, %b, sign_of_dividend=true)",
       {"ROOT remainder = s64[2] remainder(p0, p1)\n"}},
      {"%a: i64[2], %b: i64[2]",
       "%y = mod(%a, %b)",
       {"remainder = s64[2] remainder(p0, p1)\n", "xor = pred[2] xor(compare, compare_1)\n",
        "s64[2] select(and, add, remainder)\n"}},
  });
}

TEST(HloWords, Normalisations) {
  expect_lines({
      {"%x: f32[2,4], %s: f32[4], %b: f32[4]",
       "%y = layer_norm(%x, %s, %b)",
       {"reduce = f32[2] reduce(p0, f32[] constant(0)), dimensions={1}, to_apply=add_f32\n",
        "divide = f32[2] divide(reduce, f32[2] broadcast(f32[] constant(4)))\n",
        "bcast = f32[2,4] broadcast(divide), dimensions={0}\n", "subtract = f32[2,4] subtract(p0, bcast)\n",
        "multiply = f32[2,4] multiply(subtract, subtract)\n", "rsqrt = f32[2] rsqrt(add)\n",
        "f32[2,4] multiply(subtract, bcast_1)\n", "f32[2,4] broadcast(p1), dimensions={1}\n",
        "ROOT add_1 = f32[2,4] add("}},
      {"%x: f32[2,n]", "%y = layer_norm(%x)", {"custom_call_target=\"tenon.layer_norm\""}},
      {"%x: f32[2,3,4], %s: f32[3], %b: f32[3]",
       "%y = instance_norm(%x, %s, %b)",
       {"dimensions={2}, to_apply=add_f32\n", "f32[2,3,4] broadcast(p1), dimensions={1}\n"}},
  });
}

TEST(HloWords, Windows) {
  expect_lines({
      {"%x: f32[1,2,9,9]",
       "%y, %i = max_pool(%x, kernel=[3, 3], strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1])",
       {"f32[1,2,5,5] reduce-window(p0, f32[] constant(-inf)), window={size=1x1x3x3 stride=1x1x2x2 "
        "pad=0_0x0_0x1_1x1_1}, to_apply=maximum_f32\n"}},
      {"%x: f32[1,2,9]",
       "%y, %i = max_pool(%x, kernel=[3], strides=[1], dilations=[2], pads=[0, 0])",
       {"window={size=1x1x3 rhs_dilate=1x1x2}, to_apply=maximum_f32\n"}},
      {"%x: f32[1,2,9]",
       "%y, %i = max_pool(%x, kernel=[2], strides=[2], dilations=[1], pads=[0, 0], round_up=true)",
       {"custom_call_target=\"tenon.max_pool\""}},
      {"%x: f32[1,2,9]",
       "%y = average_pool(%x, kernel=[3], strides=[3], dilations=[1], pads=[0, 0])",
       {"f32[1,2,3] reduce-window(p0, f32[] constant(0)), window={size=1x1x3 stride=1x1x3}, "
        "to_apply=add_f32\n",
        "f32[1,2,3] divide(reduce_window, f32[1,2,3] broadcast(f32[] constant(3)))\n"}},
      {"%x: f32[1,2,9]",
       "%y = average_pool(%x, kernel=[3], strides=[1], dilations=[1], pads=[1, 1])",
       {"reduce_window_1 = f32[1,2,9] reduce-window(f32[1,2,9] broadcast(f32[] constant(1)), ",
        "divide(reduce_window, reduce_window_1)\n"}},
      {"%x: f32[2,4]",
       "%y = cumulative_sum(%x, axis=-1)",
       {"reduce-window(p0, f32[] constant(0)), window={size=1x4 pad=0_0x3_0}, to_apply=add_f32\n"}},
      {"%x: f32[2,4]", "%y = cumulative_sum(%x, axis=1, reverse=true)", {"window={size=1x4 pad=0_0x0_3}"}},
      {"%x: f32[2,4]", "%y = cumulative_sum(%x, axis=1, exclusive=true)", {"window={size=1x4 pad=0_0x4_-1}"}},
      {"%x: f32[2,n]", "%y = cumulative_sum(%x, axis=1)", {"custom_call_target=\"tenon.cumulative_sum\""}},
  });
}

TEST(HloWords, Scatter) {
  const std::string_view inputs = "%x: f32[4,5], %i: i64[4,2], %u: f32[4,2]";
  expect_lines({
      {inputs,
       "%y = scatter_elements(%x, %i, %u, axis=1)",
       {"second_f32 {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n",
        "f32[4,5] scatter(p0, indices, p2), update_window_dims={}, inserted_window_dims={1}, "
        "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, "
        "index_vector_dim=2, to_apply=second_f32\n"}},
      {inputs, "%y = scatter_elements(%x, %i, %u, axis=1, reduction=\"max\")", {"to_apply=maximum_f32\n"}},
      {inputs, "%y = scatter_elements(%x, %i, %u)", {"custom_call_target=\"tenon.scatter_elements\""}},
  });
}

TEST(HloWords, PowerOfTwoTypes) {
  expect_lines({
      {"%a: f32[2], %b: i64[2]",
       "%y = pow(%a, %b)",
       {"convert = f32[2] convert(p1)\n", "power(p0, convert)\n"}},
      {"%a: i64[2], %b: f32[2]",
       "%y = pow(%a, %b)",
       {"convert = f32[2] convert(p0)\n", "power = f32[2] power(convert, p1)\n",
        "ROOT convert_1 = s64[2] convert(power)\n"}},
  });
}

// What stands where it is used has no line of its own, unless it is what is returned.
TEST(HloWords, ReturnsASplatOnALineOfItsOwn) {
  expect_lines({{"%s: i64[2]",
                 "%c = constant(value=f32[] {3}) %y = broadcast(%c, %s)",
                 {"ROOT result = f32[?,?] broadcast(f32[] constant(3))\n"}}});
}

// The limit comes from outside, so it is part of the state; what is collected goes into a buffer.
TEST(HloLoops, CountTurns) {
  EXPECT_EQ(show_text("hlo", R"(graph(%x: f32[2], %w: f32[2], %n: i64[]) {
              %y = while(%n, carried=[%x], captured=[%w]) body(%iteration: i64[], %a: f32[2], %b: f32[2]) {
                %c = constant(value=bool[] {1})
                %0 = add(%a, %b)
                return %c, %0
              }
              return %y })"),
            R"(HloModule main

condition {
  p = (s64[], pred[], f32[2], f32[2], s64[]) parameter(0)
  go_on = pred[] get-tuple-element(p), index=1
  iteration = s64[] get-tuple-element(p), index=0
  trip_count = s64[] get-tuple-element(p), index=4
  compare = pred[] compare(iteration, trip_count), direction=LT
  ROOT and = pred[] and(go_on, compare)
}

body {
  p = (s64[], pred[], f32[2], f32[2], s64[]) parameter(0)
  iteration = s64[] get-tuple-element(p), index=0
  a = f32[2] get-tuple-element(p), index=2
  b = f32[2] get-tuple-element(p), index=3
  trip_count = s64[] get-tuple-element(p), index=4
  add = f32[2] add(a, b)
  add_1 = s64[] add(iteration, s64[] constant(1))
  constant = pred[] constant(true)
  ROOT tuple = (s64[], pred[], f32[2], f32[2], s64[]) tuple(add_1, constant, add, b, trip_count)
}

ENTRY main {
  p0 = f32[2] parameter(0)  // x
  p1 = f32[2] parameter(1)  // w
  p2 = s64[] parameter(2)  // n
  tuple = (s64[], pred[], f32[2], f32[2], s64[]) tuple(s64[] constant(0), pred[] constant(true), p0, p1, p2)
  while = (s64[], pred[], f32[2], f32[2], s64[]) while(tuple), condition=condition, body=body
  ROOT y = f32[2] get-tuple-element(while), index=2
}
)");
}

TEST(HloLoops, ScanBackwardsAlongAnotherAxis) {
  expect_lines(
      {{"%x: f32[3,n]",
        "%y = scan(scanned=[%x], axes=[1], reversed=[1], output_axes=[0], output_reversed=[0]) "
        "body(%row: f32[3]) { return %row }",
        {"size = s32[] get-dimension-size(scanned), dimensions={1}\n", "convert = s64[] convert(size)\n",
         "compare(iteration, convert), direction=LT\n", "subtract = s64[] subtract(convert, iteration)\n",
         "subtract_1 = s64[] subtract(subtract, s64[] constant(1))\n",
         "slice = f32[3,1] dynamic-slice(scanned, s64[] constant(0), subtract_1), "
         "dynamic_slice_sizes={3,1}\n",
         "row = f32[3] reshape(slice)\n", "reshape = f32[1,3] reshape(row)\n",
         "dynamic-update-slice(collected, reshape, iteration, s64[] constant(0))\n"}}});
}

TEST(HloLoops, CollectOnlySoManyTurns) {
  const auto loop = [](std::string_view count, std::string_view go_on) {
    return fmt::format(
        "%n = constant(value=i64[] {{4}}) %y, %z = while({}, {}, carried=[%x]) body(%iteration: i64[], %a: "
        "f32[2]) "
        "{{ %c = constant(value=bool[] {{1}}) return %c, %a, %a }}",
        count, go_on);
  };
  const std::string_view inputs = "%x: f32[2], %m: i64[], %go: bool[]", custom = "tenon.while";
  const std::string known = loop("%n", "%true"), counted = loop("%m", "%true"), told = loop("%n", "%go");
  const std::string always = "%true = constant(value=bool[] {1}) ";
  expect_lines({{inputs, always + known, {"f32[4,2] dynamic-update-slice("}},
                {inputs, always + counted, {custom}},
                {inputs, told, {custom}}});
}

}  // namespace
}  // namespace tenon
