#include "views/show.h"

namespace tenon {
namespace {

struct Case {
  std::string_view inputs, nodes, wanted;  // the body of the function
};

void expect_body(const Case& c) {
  const std::string shown =
      show_text("relay", fmt::format("graph({}) {{ {} return %y }}", c.inputs, c.nodes));
  const size_t begin = shown.find("{\n") + 2;
  EXPECT_EQ(shown.substr(begin, shown.rfind("\n}") - begin), c.wanted);
}

// TVM's own names, and its way to write out what it has no op for.
TEST(Relay, HasItsOwnWords) {
  const std::vector<Case> cases = {
      {"%x: f32[4,5]",
       "%s = constant(value=i64[1] {1}) %e = constant(value=i64[1] {3}) %y = slice(%x, %s, %e, axes=[1])",
       "  strided_slice(%x, begin=[1], end=[3], strides=[1], axes=[1])"},
      {"%x: f32[4,5], %e: i64[1]", "%s = constant(value=i64[1] {1}) %y = slice(%x, %s, %e, axes=[0])",
       "  dyn.strided_slice(%x, [1], %e, [1])"},
      {"%x: f32[4,5]", R"(%p = constant(value=i64[2] {1, 2}) %y = pad(%x, %p, axes=[-1], mode="edge"))",
       R"(  nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2]], pad_mode="edge"))"},
      {"%x: f32[4,5], %v: f32[]",
       "%p = constant(value=i64[4] {1, 2, 3, 4}) %y = pad(%x, %p, %v, axes=[0, 1])",
       R"(  nn.pad(%x, %v, pad_width=[[1, 3], [2, 4]], pad_mode="constant"))"},
      {"%x: f32[1,1,4,4]",
       "%m, %i = max_pool(%x, kernel=[2, 2], strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0], "
       "round_up=true) %y = neg(%m)",
       "  %0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], padding=[0, 0, 0, 0], "
       "ceil_mode=True);\n  negative(%0)"},
      {"%x: f32[1,1,4]",
       "%y = average_pool(%x, kernel=[2], strides=[2], dilations=[1], pads=[0, 1], count_padding=true)",
       "  nn.avg_pool1d(%x, pool_size=[2], strides=[2], dilation=[1], padding=[0, 1], ceil_mode=False, "
       "count_include_pad=True)"},
      {"%x: f32[2,3,4], %w: f32[4,5]", "%y = matmul(%x, %w)",
       "  %0 = reshape(%x, newshape=[-1, 4]);\n  %1 = nn.matmul(%0, %w, transpose_a=False, "
       "transpose_b=False);\n  reshape(%1, newshape=[2, 3, 5])"},
      {"%a: f32[n,2,3,4], %b: f32[n,2,5,4]", "%y = matmul(%a, %b, transpose_b=true)",
       "  %0 = reshape(%a, newshape=[-1, 3, 4]);\n  %1 = reshape(%b, newshape=[-1, 5, 4]);\n  %2 = "
       "nn.batch_matmul(%0, %1, transpose_a=False, transpose_b=True);\n  reshape(%2, newshape=[-1, 2, 3, "
       "5])"},
      {"%x: f32[4]", "%y = gelu(%x)",
       "  %0 = multiply(%x, 0.70710677f);\n  %1 = erf(%0);\n  %2 = multiply(%1, 0.5f);\n  %3 = add(0.5f, "
       "%2);\n  multiply(%x, %3)"},
      {"%x: f32[4]", R"(%y = gelu(%x, approximate="tanh"))",
       "  %0 = multiply(%x, %x);\n  %1 = multiply(%0, %x);\n  %2 = multiply(%1, 0.044715f);\n  %3 = add(%x, "
       "%2);\n  %4 = multiply(%3, 0.7978846f);\n  %5 = tanh(%4);\n  %6 = multiply(%x, 0.5f);\n  %7 = add(%5, "
       "1f);\n  multiply(%6, %7)"},
      {"%x: f16[4]", "%y = reciprocal(%x)", "  divide(1f16, %x)"},
      {"%x: f32[4]", "%y = hard_swish(%x)",
       "  %0 = add(%x, 3f);\n  %1 = clip(%0, a_min=0f, a_max=6f);\n  %2 = divide(%1, 6f);\n  multiply(%x, "
       "%2)"},
      {"%x: f32[4]", "%y = hard_sigmoid(%x)",
       "  %0 = multiply(%x, 0.2f);\n  %1 = add(%0, 0.5f);\n  clip(%1, a_min=0f, a_max=1f)"},
      {"%x: f32[4]", "%y = silu(%x)", "  %0 = sigmoid(%x);\n  multiply(%x, %0)"},
      {"%x: f32[4]", "%y = silu(%x, alpha=2.0)",
       "  %0 = multiply(%x, 2f);\n  %1 = sigmoid(%0);\n  multiply(%x, %1)"},
      {"%x: f32[4]", "%y = softplus(%x)", "  %0 = exp(%x);\n  %1 = add(%0, 1f);\n  log(%1)"},
      {"%x: f32[4]", "%y = mish(%x)",
       "  %0 = exp(%x);\n  %1 = add(%0, 1f);\n  %2 = log(%1);\n  %3 = tanh(%2);\n  multiply(%x, %3)"},
      {"%x: f32[4]", "%y = elu(%x, alpha=0.5)",
       "  %0 = exp(%x);\n  %1 = subtract(1f, %0);\n  %2 = nn.relu(%1);\n  %3 = multiply(%2, 0.5f);\n  %4 = "
       "nn.relu(%x);\n  subtract(%4, %3)"},
      {"%x: f32[4]", "%y = elu(%x, scale=2.0, input_scale=0.5)",
       "  %0 = multiply(%x, 0.5f);\n  %1 = exp(%0);\n  %2 = subtract(1f, %1);\n  %3 = nn.relu(%2);\n  %4 = "
       "multiply(%3, 1f);\n  %5 = nn.relu(%x);\n  %6 = subtract(%5, %4);\n  multiply(%6, 2f)"},
      {"%x: f32[4,5], %s: f32[5]", "%y = rms_norm(%x, %s)",
       "  %0 = multiply(%x, %x);\n  %1 = mean(%0, axis=[1], keepdims=True);\n  %2 = add(%1, 1e-05f);\n  %3 = "
       "sqrt(%2);\n  %4 = divide(%x, %3);\n  multiply(%4, %s)"},
      {"%x: f32[4]", "%a = constant(value=f32[] {0}) %b = constant(value=f32[] {6}) %y = clip(%x, %a, %b)",
       "  clip(%x, a_min=0f, a_max=6f)"},
      {"%x: f32[4], %a: f32[], %b: f32[]", "%y = clip(%x, %a, %b)",
       "  %0 = maximum(%x, %a);\n  minimum(%0, %b)"},
      {"%x: f32[4], %b: f32[]", "%y = clip(%x, max=%b)", "  minimum(%x, %b)"},
      {"%a: i32[4], %b: i32[4]", "%y = mod(%a, %b)", "  floor_mod(%a, %b)"},
      {"%a: i32[4], %b: i32[4]", "%y = mod(%a, %b, sign_of_dividend=true)", "  mod(%a, %b)"},
      {"%a: i32[4], %b: i32[4]", R"(%y = shift(%a, %b, direction="left"))", "  left_shift(%a, %b)"},
      {"%a: i32[4], %b: i32[4]", R"(%y = shift(%a, %b, direction="right"))", "  right_shift(%a, %b)"},
      {"%x: f32[4,5], %i: i64[3,2]", "%y = gather_nd(%x, %i)",
       "  %0 = transpose(%i, axes=[1, 0]);\n  gather_nd(%x, %0, batch_dims=0)"},
      {"%x: f32[4,5], %i: i64[3,2], %u: f32[3]", "%y = scatter_nd(%x, %i, %u)",
       R"(  %0 = transpose(%i, axes=[1, 0]);
  scatter_nd(%x, %0, %u, mode="update"))"},
      {"%x: f32[4,5], %i: i64[4,5]", R"(%y = scatter_elements(%x, %i, %x, axis=1, reduction="add"))",
       R"(  scatter_elements(%x, %i, %x, axis=1, reduction="add"))"},
      {"%x: f32[4,5]", "%y = nonzero(%x)", "  %0 = argwhere(%x);\n  transpose(%0, axes=[1, 0])"},
      {"%x: f32[4,5]", "%y = triangle(%x, upper=true, diagonal=1)", "  trilu(%x, 1, upper=True)"},
      {"%x: f32[4,5], %d: i64[]", "%y = triangle(%x, upper=false, diagonal=%d)",
       "  trilu(%x, %d, upper=False)"},
      {"%x: f32[4,5]",
       "%k = constant(value=i64[1] {2}) %v, %i = top_k(%x, %k, axis=0, largest=false) %y = neg(%v)",
       R"(  %0 = topk(%x, k=2, axis=0, ret_type="both", is_ascend=True, dtype="int64");
  negative(%0.0))"},
      {"%a: i64[], %b: i64[], %c: i64[]", "%y = range(%a, %b, %c)", "  arange(%a, %b, %c)"},
      {"%x: f32[4]", "%y = bit_cast(%x, to=i32)", R"(  reinterpret(%x, dtype="int32"))"},
      {"%a: f32[4,5], %b: f32[5,6]", R"(%y = einsum([%a, %b], equation="ij,jk->ik"))",
       R"(  einsum((%a, %b), equation="ij,jk->ik"))"},
      {"%x: f32[1,4,5], %s: f32[4], %b: f32[4]", "%y = group_norm(%x, %s, %b, groups=2)",
       "  nn.group_norm(%x, %s, %b, num_groups=2, epsilon=1e-05)"},
      {"%x: f32[1,4,5], %s: f32[4], %b: f32[4]", "%y = instance_norm(%x, %s, %b)",
       "  nn.instance_norm(%x, %s, %b, epsilon=1e-05)"},
      {"%x: f32[4]", "%y = is_inf(%x)", "  isinf(%x)"},
      {"%x: f32[1,5,4,4]", "%y = local_response_norm(%x, size=3)",
       "  nn.lrn(%x, size=3, alpha=0.0001, beta=0.75, bias=1.0)"},
      {"%x: f32[4,5], %l: i64[5]", "%y = reverse_sequence(%x, %l, time_axis=0, batch_axis=1)",
       "  reverse_sequence(%x, %l, seq_axis=0, batch_axis=1)"},
      {"%x: f32[4,5], %e: i64[1]", "%s = constant(value=i64[1] {1}) %y = slice(%x, %s, %e, axes=[1])",
       "  %0 = concatenate(([0], [1]), axis=0);\n  %1 = concatenate(([9223372036854775807], %e), axis=0);\n  "
       "%2 = concatenate(([1], [1]), axis=0);\n  dyn.strided_slice(%x, %0, %1, %2)"},
      {"%x: f32[4,5]", "%y = cumulative_sum(%x, axis=1, reverse=true)",
       "  %0 = reverse(%x, axis=1);\n  %1 = cumsum(%0, axis=1, exclusive=False);\n  reverse(%1, axis=1)"},
      {"%x: f32[4,5]", "%y = cumulative_prod(%x, axis=0, reverse=true, exclusive=true)",
       "  %0 = reverse(%x, axis=0);\n  %1 = cumprod(%0, axis=0, exclusive=True);\n  reverse(%1, axis=0)"},
      {"%x: f32[4,5], %s: f32[], %z: u8[]", "%y = quantize(%x, %s, %z, to=u8)",
       R"(  %0 = cast(%z, dtype="int32");
  qnn.quantize(%x, %s, %0, out_dtype="uint8", axis=1))"},
      {"%x: i8[4,5], %s: f32[5]", "%y = dequantize(%x, %s, to=f32)",
       "  qnn.dequantize(%x, %s, 0i32, axis=1)"},
      {"%x: f32[4,5]",
       "%k = constant(value=i64[3] {1, 2, 1}) %i = constant(value=i64[] {2}) %s = sequence_split(%x, %k) %y "
       "= sequence_at(%s, %i)",
       "  %0 = split(%x, indices_or_sections=[1, 3], axis=0);\n  %0.2"},
      {"%a: f32[4], %b: f32[4]", "%s = sequence_construct([%a, %b]) %y = sequence_concat(%s, axis=0)",
       "  %0 = (%a, %b);\n  concatenate(%0, axis=0)"},
      {"%a: f32[4]", "%s = sequence_construct([%a]) %y = sequence_concat(%s, axis=0, new_axis=true)",
       "  %0 = (%a,);\n  stack(%0, axis=0)"},
      {"%x: f32[2,5]",
       "%k = constant(value=i64[] {2}) %i = constant(value=i64[] {1}) %s = sequence_split(%x, %k, axis=-1) "
       "%y = sequence_at(%s, %i)",
       "  %0 = split(%x, indices_or_sections=[2, 4], axis=-1);\n  %0.1"},
      {"%x: f32[1,1,8,8], %r: f32[2,4], %i: i64[2]",
       "%y = roi_align(%x, %r, %i, size=[3, 4], scale=0.5, half_pixel=false)",
       R"(  %0 = cast(%i, dtype="float32");
  %1 = expand_dims(%0, axis=1);
  %2 = concatenate((%1, %r), axis=1);
  vision.roi_align(%x, %2, pooled_size=[3, 4], spatial_scale=0.5, sample_ratio=-1))"},
  };
  for (const Case& c : cases)
    expect_body(c);
}

TEST(Relay, DoesNotSayWhatItsWordsCannotTell) {
  const std::vector<Case> cases = {
      {"%x: f32[4,5,6], %e: i64[2]", "%y = slice(%x, %e, %e, axes=[2, 0])",
       R"(  call_extern("tenon.slice", %x, %e, %e, axes=[2, 0]))"},
      {"%x: f32[4,5], %s: f32[4,1]", "%y = quantize(%x, %s, to=i8, block_size=5)",
       R"(  call_extern("tenon.quantize", %x, %s, to="int8", block_size=5))"},
      {"%s: seq<f32[4]>, %i: i64[]", "%y = sequence_at(%s, %i)",
       R"(  call_extern("tenon.sequence_at", %s, %i))"},
      {"%x: f32[n,5]", "%k = constant(value=i64[] {2}) %y = sequence_split(%x, %k)",
       R"(  call_extern("tenon.sequence_split", %x, 2i64))"},
      {"%x: f32[4], %p: i64[2]", "%y = pad(%x, %p, axes=[0])",
       R"(  call_extern("tenon.pad", %x, %p, axes=[0]))"},
      {"%x: f32[4]", "%p = constant(value=i64[2] {-1, 0}) %y = pad(%x, %p, axes=[0])",
       R"(  call_extern("tenon.pad", %x, [-1, 0], axes=[0]))"},
      {"%x: f32[4]", "%y = elu(%x, alpha=-2.0, input_scale=-0.5)",
       R"(  call_extern("tenon.elu", %x, alpha=-2.0, input_scale=-0.5))"},
      {"%x: f32[*], %s: f32[5]", "%y = rms_norm(%x, %s)", R"(  call_extern("tenon.rms_norm", %x, %s))"},
      {"%a: f32[n,m,3,4], %b: f32[n,m,4,5]", "%y = matmul(%a, %b)",
       R"(  call_extern("tenon.matmul", %a, %b))"},
      {"%x: f32[4]", "%y = is_inf(%x, negative=false)",
       R"(  call_extern("tenon.is_inf", %x, negative=False))"},
      {"%x: f32[1,1,n]",
       R"(%y = average_pool(%x, kernel=[2], strides=[1], dilations=[1], padding="same_upper"))",
       R"(  call_extern("tenon.average_pool", %x, kernel=[2], strides=[1], dilations=[1], padding="same_upper"))"},
      {"%x: f32[1,1,8,8], %r: f32[2,4], %i: i64[2]", "%y = roi_align(%x, %r, %i, size=[3, 4])",
       R"(  call_extern("tenon.roi_align", %x, %r, %i, size=[3, 4]))"},
  };
  for (const Case& c : cases)
    expect_body(c);
}

TEST(Relay, ShowsANumberThatIsAWeightOfANestedGraph) {
  const std::string text = show_text("relay", R"(graph(%c: bool[], %x: f32[2]) {
    %y = if(%c, [%x]) then(%a: f32[2]) {
      %w = parameter(name="w", value=f32[] {2})
      %0 = mul(%a, %w)
      return %0
    } else(%b: f32[2]) {
      return %b
    }
    return %y })");
  EXPECT_NE(text.find("multiply(%x, meta[relay.Constant][0])"), std::string::npos) << text;
}

// What is collected grows along its axis, at its end or at its start.
TEST(Relay, CollectsFromTurnToTurn) {
  const std::string scan = show_text("relay", R"(graph(%x: f32[3,n]) {
    %y = scan(scanned=[%x], axes=[1], reversed=[1], output_axes=[1], output_reversed=[1]) body(%row: f32[3]) {
      %0 = exp(%row)
      return %0
    }
    return %y })");
  for (std::string_view line : {"if (less(%iteration, take(shape_of(%x, dtype=\"int64\"), 1i64))) {\n",
                                "%0 = take(%x, subtract(take(shape_of(%x, dtype=\"int64\"), 1i64), "
                                "add(%iteration, 1i64)), axis=1);\n",
                                "%scan(add(%iteration, 1i64), concatenate((%2, %collected), axis=1))\n",
                                "%3 = %scan(0i64, zeros(shape=[3, 0], dtype=\"float32\"));\n"})
    EXPECT_NE(scan.find(line), std::string::npos) << "no " << line << " in\n" << scan;
  const std::string loop = show_text("relay", R"(graph(%x: f32[2], %n: i64[]) {
    %y, %z = while(%n, carried=[%x]) body(%iteration: i64[], %a: f32[2]) {
      %c = constant(value=bool[] {1})
      return %c, %a, %iteration
    }
    return %y, %z })");
  for (std::string_view line :
       {"%while(add(%iteration, 1i64), True, %a, concatenate((%collected, %0), axis=0))\n",
        "%1 = %while(0i64, True, %x, zeros(shape=[0], dtype=\"int64\"));\n"})
    EXPECT_NE(loop.find(line), std::string::npos) << "no " << line << " in\n" << loop;
}

}  // namespace
}  // namespace tenon
