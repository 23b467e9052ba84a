#include "views/show.h"

namespace tenon {
namespace {

// A graph of one op, whose y is returned, and what fx's code and TorchScript show of it.
struct Case {
  std::string_view inputs, op, fx, torchscript;
};

void expect_shown(const std::vector<Case>& cases) {
  for (const auto& [inputs, op, fx, torchscript] : cases) {
    const std::string graph = fmt::format("graph({}) {{ {} return %y }}", inputs, op);
    const std::string code = show_text("fx-code", graph), script = show_text("torchscript", graph);
    EXPECT_NE(code.find(fx), std::string::npos) << "no " << fx << " in\n" << code;
    EXPECT_NE(script.find(torchscript), std::string::npos) << "no " << torchscript << " in\n" << script;
  }
}

TEST(TorchCalls, Slice) {
  const std::string_view most = "9223372036854775807";
  const auto slice = [](std::string_view start, std::string_view end, std::string_view step,
                        std::string_view axis) {
    return fmt::format(
        "%s = constant(value=i64[1]{{{}}}) %e = constant(value=i64[1]{{{}}}) "
        "%t = constant(value=i64[1]{{{}}}) %y = slice(%x, %s, %e, %t, axes=[{}])",
        start, end, step, axis);
  };
  const std::string first = slice("0", "4", "1", "-1"), last = slice("-1", most, "1", "0"),
                    every_other = slice("1", most, "2", "0"),
                    backwards = slice("-1", "-9223372036854775808", "-1", "1"),
                    part_backwards = slice("3", "1", "-1", "1");
  expect_shown({
      {"%x: f32[n,8]", first,
       "%y : [num_users=1] = call_function[target=operator.getitem](args = (%x, (slice(None, None, "
       "None), slice(None, 4, None))), kwargs = {})",
       "aten::slice(%x, %dim, %start, %end, %step)\n"},
      {"%x: f32[n,8]", last, "operator.getitem](args = (%x, slice(-1, None, None)), kwargs = {})",
       "%start : int = prim::Constant[value=-1]()\n"},
      {"%x: f32[n,8]", every_other, "(%x, slice(1, None, 2))", "%step : int = prim::Constant[value=2]()\n"},
      {"%x: f32[n,8]", backwards, "torch.flip](args = (%x, [1]), kwargs = {})", "aten::flip(%x, %dims)\n"},
      {"%x: f32[n,8]", part_backwards, "tenon.slice", "tenon::slice"},
      {"%x: f32[n,8], %s: i64[1], %e: i64[1]", "%y = slice(%x, %s, %e, axes=[0])",
       "operator.getitem](args = (%x, slice(%s, %e, None)), kwargs = {})",
       "  %start : int = aten::Int(%s)\n  %end : int = aten::Int(%e)\n"},
      {"%x: f32[n,8], %s: i64[2], %e: i64[2]", "%y = slice(%x, %s, %e, axes=[0, 1])", "tenon.slice",
       "tenon::slice"},
  });
  EXPECT_EQ(show_text("fx-code",
                      "graph(%x: f32[n,8]) { %s = constant(value=i64[2]{1, 2}) %e = "
                      "constant(value=i64[2]{3, 4}) %y = slice(%x, %s, %e, axes=[0, 1]) return %y }"),
            R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%x, slice(1, 3, None)), kwargs = {})
    %y : [num_users=1] = call_function[target=operator.getitem](args = (%getitem, (slice(None, None, None), slice(2, 4, None))), kwargs = {})
    return y
)");
}

TEST(TorchCalls, Attention) {
  const std::string_view inputs = "%q: f32[2,4,5,8], %k: f32[2,4,6,8], %m: bool[5,6], %g: f32[2,2,6,8]";
  expect_shown({
      {inputs, "%y = attention(%q, %k, %k, scale=0.5)",
       "scaled_dot_product_attention](args = (%q, %k, %k, None), kwargs = {is_causal: False, scale: 0.5})",
       "aten::scaled_dot_product_attention(%q, %k, %k, "},
      {inputs, "%y = attention(%q, %k, %k, %m, scale=0.5)", "(args = (%q, %k, %k, %m), ",
       "aten::scaled_dot_product_attention(%q, %k, %k, %m, "},
      {inputs, "%y = attention(%q, %k, %k, scale=0.5, window_after=0)", "{is_causal: True, scale: 0.5}",
       "prim::Constant[value=1]()"},
      {inputs, "%y = attention(%q, %g, %g, scale=0.5)", "{is_causal: False, scale: 0.5, enable_gqa: True}",
       "aten::scaled_dot_product_attention"},
      {inputs, "%y = attention(%q, %k, %k, scale=0.5, window_before=2)", "tenon.attention",
       "tenon::attention"},
      {inputs, "%y = attention(%q, %k, %k, %m, scale=0.5, window_after=0)", "tenon.attention",
       "tenon::attention"},
      {inputs, "%y = attention(%q, %k, %k, scale=0.5, softcap=3.0)", "tenon.attention", "tenon::attention"},
  });
}

TEST(TorchCalls, Einsum) {
  expect_shown({
      {"%a: f32[4,5], %b: f32[5,6]", R"(%y = einsum([%a, %b], equation="ij,jk->ik"))",
       "torch.einsum](args = ('ij,jk->ik', %a, %b), kwargs = {})",
       "  %tensors : Tensor[] = prim::ListConstruct(%a, %b)\n  %path : NoneType = prim::Constant()\n"
       "  %y : Float(4, 6) = aten::einsum(%equation, %tensors, %path)\n"},
  });
}

TEST(TorchCalls, Gather) {
  expect_shown({
      {"%x: f32[4,5]", "%i = constant(value=i64[]{-1}) %y = gather(%x, %i, axis=1)",
       "torch.select](args = (%x, 1, -1), kwargs = {})", "aten::select(%x, %dim, %index)\n"},
      {"%x: f32[4,5], %i: i64[2,3]", "%y = gather(%x, %i, axis=-1)",
       "operator.getitem](args = (%x, (slice(None, None, None), %i)), kwargs = {})",
       "  %indices : Tensor?[] = prim::ListConstruct(%none, %i)\n"},
      {"%x: f32[4,5], %i: i64[2,3]", "%y = gather(%x, %i)", "operator.getitem](args = (%x, %i), kwargs = {})",
       "aten::index(%x, %indices)\n"},
      {"%i: i64[2,3]", "%x = parameter(name=\"table\", value=f32[2,2]{1, 2, 3, 4}) %y = gather(%x, %i)",
       "torch.nn.functional.embedding](args = (%i, %x), kwargs = {})",
       "aten::embedding(%table, %i, %padding_idx, %scale_grad_by_freq, %sparse)\n"},
      {"%z: f32[2]",
       "%x = parameter(name=\"table\", value=f32[2,2]{1, 2, 3, 4}) %i = constant(value=i64[1]{-1}) %y = "
       "gather(%x, %i)",
       "operator.getitem](args = (%x, [-1]), kwargs = {})", "aten::index(%table, %indices)\n"},
      {"%x: f32[4,5], %i: i64[3,2]", "%y = gather_nd(%x, %i)",
       "torch.unbind](args = (%i, -1), kwargs = {})\n    %y : [num_users=1] = "
       "call_function[target=operator.getitem](args = (%x, %unbind), kwargs = {})",
       "%unbind : Tensor[] = aten::unbind(%i, %dim)\n  %y : Float(3) = aten::index(%x, %unbind)\n"},
      {"%x: f32[4,5], %i: i64[4,1]", "%y = gather_nd(%x, %i, batch_dims=1)", "tenon.gather_nd",
       "tenon::gather_nd"},
  });
}

TEST(TorchCalls, Arithmetic) {
  const std::string_view integers = "%a: i64[2], %b: i64[2]", matrices = "%a: f32[2,3], %b: f32[4,3]";
  expect_shown({
      {integers, "%y = div(%a, %b)", "torch.div](args = (%a, %b), kwargs = {rounding_mode: 'trunc'})",
       "aten::div(%a, %b, %rounding_mode)\n"},
      {"%a: f32[2], %b: f32[2]", "%y = div(%a, %b)", "operator.truediv](args = (%a, %b), kwargs = {})",
       "aten::div(%a, %b)\n"},
      {integers, "%y = mod(%a, %b)", "torch.remainder](args = (%a, %b), kwargs = {})",
       "aten::remainder(%a, %b)\n"},
      {integers, "%y = mod(%a, %b, sign_of_dividend=true)", "torch.fmod](args = (%a, %b), kwargs = {})",
       "aten::fmod(%a, %b)\n"},
      {matrices, "%y = matmul(%a, %b, transpose_b=true)",
       "%transpose : [num_users=1] = call_function[target=torch.transpose](args = (%b, -2, -1), kwargs = "
       "{})\n    %y : [num_users=1] = call_function[target=torch.matmul](args = (%a, %transpose), kwargs = "
       "{})",
       "%transpose : Tensor = aten::transpose(%b, %dim0, %dim1)\n  %y : Float(2, 4) = aten::matmul(%a, "
       "%transpose)\n"},
      {"%x: f32[2]", "%y = hard_sigmoid(%x, alpha=0.1666666716337204)",
       "torch.nn.functional.hardsigmoid](args = (%x,), kwargs = {})", "aten::hardsigmoid(%x)\n"},
      {"%x: f32[2]", "%y = hard_sigmoid(%x)", "torch.clamp](args = (%add, 0.0, 1.0), kwargs = {})",
       "aten::clamp(%add, %min, %max)\n"},
      {"%x: f32[2,3,4]", "%y = reduce_prod(%x, axes=[0, 1])",
       "torch.prod](args = (%x, 1, False), kwargs = {})\n    %y : [num_users=1] = "
       "call_function[target=torch.prod](args = (%prod, 0, False), kwargs = {})",
       "aten::prod(%x, %dim, %keepdim, %dtype)\n"},
      {"%x: f32[2,3,4], %s: f32[3], %b: f32[3]", "%y = instance_norm(%x, %s, %b)",
       "torch.nn.functional.instance_norm](args = (%x, None, None, %s, %b, True, 0.1, 1e-05), kwargs = {})",
       "aten::instance_norm(%x, %s, %b, %running_mean, %running_var, %use_input_stats, %momentum, %eps, "
       "%cudnn_enabled)\n"},
  });
}

TEST(TorchCalls, WhatMovesElements) {
  const std::string_view scatter = "%x: f32[3], %i: i64[2], %u: f32[2]";
  expect_shown({
      {"%x: f32[2,3]", "%p = constant(value=i64[4]{0, 1, 0, 2}) %y = pad(%x, %p, axes=[0, 1])",
       "torch.nn.functional.pad](args = (%x, [1, 2], 'constant', None), kwargs = {})",
       "aten::pad(%x, %pad, %mode, %value)\n"},
      {"%x: f32[2,3]", "%p = constant(value=i64[4]{1, 0, 2, 0}) %y = pad(%x, %p, axes=[0, 1], mode=\"edge\")",
       "(%x, [0, 0, 1, 2], 'replicate', None)", "aten::pad("},
      {"%x: f32[2,3], %p: i64[4]", "%y = pad(%x, %p, axes=[0, 1])", "tenon.pad", "tenon::pad"},
      {"%x: f32[2,3]", "%y = nonzero(%x)", "torch.t](args = (%nonzero,), kwargs = {})",
       "aten::t(%nonzero)\n"},
      {"%x: f32[3,3]", "%y = triangle(%x, upper=true, diagonal=1)",
       "torch.triu](args = (%x, 1), kwargs = {})", "aten::triu(%x, %diagonal)\n"},
      {"%x: f32[3,3]", "%y = triangle(%x, upper=false)", "torch.tril](args = (%x, 0), kwargs = {})",
       "aten::tril(%x, %diagonal)\n"},
      {"%x: f32[9]", "%k = constant(value=i64[1]{2}) %y, %i = top_k(%x, %k)",
       "torch.topk](args = (%x, 2, -1, True, True), kwargs = {})",
       "aten::topk(%x, %k, %dim, %largest, %sorted)\n"},
      {scatter, "%y = scatter_elements(%x, %i, %u)", "torch.scatter](args = (%x, 0, %i, %u), kwargs = {})",
       "aten::scatter(%x, %dim, %i, %u)\n"},
      {scatter, "%y = scatter_elements(%x, %i, %u, reduction=\"add\")",
       "torch.scatter_reduce](args = (%x, 0, %i, %u, 'sum'), kwargs = {include_self: True})",
       "aten::scatter_reduce(%x, %dim, %i, %u, %reduce, %include_self)\n"},
      {"%x: f32[2,6], %p: i64[]",
       "%s = constant(value=i64[]{3}) %l = sequence_split(%x, %s, axis=1) %y = "
       "sequence_at(%l, %p)",
       "torch.split](args = (%x, 3, 1), kwargs = {})\n    %y : [num_users=1] = "
       "call_function[target=operator.getitem](args = (%l, %p), kwargs = {})",
       "  %position : int = aten::Int(%p)\n  %y : Float(2, 3) = aten::__getitem__(%l, %position)\n"},
      {"%x: f32[2,6], %p: i64[]", "%l = sequence_split(%x, keep_dims=false) %y = sequence_at(%l, %p)",
       "torch.unbind](args = (%x, 0), kwargs = {})", "aten::unbind(%x, %dim)\n"},
      {"%x: f32[2,6], %p: i64[]", "%l = sequence_split(%x) %y = sequence_at(%l, %p)",
       "torch.split](args = (%x, 1, 0), kwargs = {})", "aten::split(%x, %split_size_or_sections, %dim)\n"},
  });
}

TEST(TorchCalls, OtherWords) {
  expect_shown({
      {"%a: i64[2], %b: i64[2]", "%y = shift(%a, %b, direction=\"left\")",
       "operator.lshift](args = (%a, %b), kwargs = {})", "aten::__lshift__(%a, %b)\n"},
      {"%a: i64[2], %b: i64[2]", "%y = shift(%a, %b, direction=\"right\")",
       "operator.rshift](args = (%a, %b), kwargs = {})", "aten::__rshift__(%a, %b)\n"},
      {"%x: f32[1,4,3], %s: f32[4], %b: f32[4]", "%y = group_norm(%x, %s, %b, groups=2)",
       "torch.nn.functional.group_norm](args = (%x, 2, %s, %b, 1e-05), kwargs = {})",
       "aten::group_norm(%x, %num_groups, %s, %b, %eps, %cudnn_enabled)\n"},
      {"%x: f32[2]", "%y = is_inf(%x)", "torch.isinf](args = (%x,), kwargs = {})", "aten::isinf(%x)\n"},
      {"%x: f32[2]", "%y = is_inf(%x, negative=false)", "torch.isposinf]", "aten::isposinf(%x)\n"},
      {"%x: f32[2]", "%y = is_inf(%x, positive=false)", "torch.isneginf]", "aten::isneginf(%x)\n"},
      {"%x: f32[2]", "%y = elu(%x, alpha=2.0)",
       "torch.nn.functional.elu](args = (%x,), kwargs = {alpha: 2.0})",
       "aten::elu(%x, %alpha, %scale, %input_scale)\n"},
      {"%x: f32[2]", "%y = elu(%x, scale=2.0)",
       "torch.ops.aten.elu](args = (%x,), kwargs = {alpha: 1.0, scale: 2.0, input_scale: 1.0})",
       "aten::elu(%x, %alpha, %scale, %input_scale)\n"},
      {"%x: f32[2,2]", "%y = determinant(%x)", "torch.linalg.det](args = (%x,), kwargs = {})",
       "aten::linalg_det(%x)\n"},
      {"%a: i64[], %b: i64[], %c: i64[]", "%y = range(%a, %b, %c)",
       "torch.arange](args = (%a, %b, %c), kwargs = {})",
       "aten::arange(%start, %limit, %delta, %dtype, %layout, %device, %pin_memory)\n"},
      {"%x: f32[2,6]", "%l = sequence_split(%x) %y = sequence_length(%l)",
       "[target=len](args = (%l,), kwargs = {})",
       "  %len : int = aten::len(%l)\n  %y : Long() = prim::NumToTensor(%len)\n"},
  });
}

TEST(TorchCalls, Images) {
  const std::string_view sizes = "%s = constant(value=i64[2]{8, 8}) ";
  const auto resize = [&](std::string_view how) {
    return fmt::format("{}%y = resize(%x, sizes=%s, axes=[2, 3], {})", sizes, how);
  };
  const std::string nearest = resize("positions=\"asymmetric\", round=\"down\""),
                    linear = resize("mode=\"linear\""),
                    cubic = resize("mode=\"cubic\", positions=\"shifted\"");
  expect_shown({
      {"%x: f32[1,2,9,9]",
       "%y, %i = max_pool(%x, kernel=[3, 3], strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1])",
       "%y : [num_users=1] = call_function[target=torch.nn.functional.max_pool2d](args = (%x, [3, 3], [2, "
       "2], "
       "[1, 1], [1, 1], False), kwargs = {})",
       "%y : Float(1, 2, 5, 5) = aten::max_pool2d(%x, %kernel_size, %stride, %padding, %dilation, "
       "%ceil_mode)\n"},
      {"%x: f32[1,2,9]", "%y, %i = max_pool(%x, kernel=[3], strides=[2], dilations=[1], pads=[0, 1])",
       "tenon.max_pool", "%y : Float(1, 2, 4), %i : Long(1, 2, 4) = tenon::max_pool("},
      {"%x: f32[1,2,9]", "%y = average_pool(%x, kernel=[3], strides=[2], dilations=[1], pads=[0, 0])",
       "torch.nn.functional.avg_pool1d](args = (%x, [3], [2], [0], False, False), kwargs = {})",
       "aten::avg_pool1d(%x, %kernel_size, %stride, %padding, %ceil_mode, %count_include_pad)\n"},
      {"%x: f32[1,2,9,9,9]",
       "%y = average_pool(%x, kernel=[3, 3, 3], strides=[2, 2, 2], dilations=[1, 1, 1], pads=[0, 0, 0, 0, 0, "
       "0])",
       "torch.nn.functional.avg_pool3d]",
       "aten::avg_pool3d(%x, %kernel_size, %stride, %padding, %ceil_mode, %count_include_pad, "
       "%divisor_override)\n"},
      {"%x: f32[1,2,9]", "%y = average_pool(%x, kernel=[3], strides=[2], dilations=[2], pads=[0, 0])",
       "tenon.average_pool", "tenon::average_pool"},
      {"%x: f32[1,2,4,4]", nearest,
       "torch.nn.functional.interpolate](args = (%x, [8, 8]), kwargs = {mode: 'nearest'})",
       "aten::upsample_nearest2d(%x, %output_size, %scale_factors)\n"},
      {"%x: f32[1,2,4,4]", linear, "kwargs = {mode: 'bilinear', align_corners: False})",
       "aten::upsample_bilinear2d(%x, %output_size, %align_corners, %scale_factors)\n"},
      {"%x: f32[1,2,4,4]", cubic, "tenon.resize", "tenon::resize"},
  });
}

}  // namespace
}  // namespace tenon
