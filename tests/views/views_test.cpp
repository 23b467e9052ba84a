#include <fstream>
#include <sstream>

#include "../data/views/cond.cpp"
#include "../data/views/conv_bn_noaffine.cpp"
#include "../data/views/my_module.cpp"
#include "../data/views/tiny.cpp"
#include "frontends/builtin/builtin.h"
#include "source_tree.h"
#include "views/show.h"

namespace tenon {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(source_tree() / "tests/data/views" / name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Views, ShowTheTinyModelJustSo) {
  const auto graph = builtin::make_model("tiny");
  for (const View& view : all_views())
    EXPECT_EQ(view.render(*graph), read(fmt::format("tiny.{}", view.name))) << view.name;
}

TEST(Views, ShowControlFlowJustSo) {
  for (const std::string name :
       {"cond.fx", "cond.fx-code", "cond.relay", "cond.hlo", "while_loop.fx", "while_loop.fx-code",
        "while_loop.torchscript", "while_loop.onnx", "while_loop.hlo", "while_loop.relay", "scan.onnx",
        "scan.fx", "scan.hlo", "scan.relay", "scan.torchscript"}) {
    const size_t dot = name.find('.');
    EXPECT_EQ(show(name.substr(dot + 1), *builtin::make_model(name.substr(0, dot))), read(name)) << name;
  }
}

TEST(Views, ShowEveryBuiltInModel) {
  for (const builtin::Model& model : builtin::all_models()) {
    const auto graph = builtin::make_model(model.name);
    for (const View& view : all_views()) {
      const std::string text = view.render(*graph);
      EXPECT_TRUE(text.ends_with('\n')) << view.name << " of " << model.name;
      EXPECT_EQ(text, view.render(*graph)) << view.name << " of " << model.name;
    }
  }
}

TEST(Views, HaveADocLine) {
  for (const View& view : all_views())
    EXPECT_FALSE(view.doc.empty()) << view.name;
}

TEST(Views, ShowValuesOfUnknownRank) {
  for (std::string_view call :
       {"matmul(%a, %b, transpose_b=true)", "linear(%a, %b)", "softmax(%a)", "add(%a, %b)"})
    for (const View& view : all_views())
      EXPECT_FALSE(
          show_text(view.name, fmt::format("graph(%a: f32[*], %b: f32[*]) {{ %y = {} return %y }}", call))
              .empty())
          << view.name;
}

TEST(Views, ShowAGraphOfNothing) {
  for (const View& view : all_views()) {
    EXPECT_FALSE(show_text(view.name, "graph() { return }").empty()) << view.name;
    EXPECT_FALSE(show_text(view.name, "graph(%x: f32[2]) { return %x, %x }").empty()) << view.name;
  }
}

TEST(Fx, NamesConstantsResultsAndAbsentOperands) {
  EXPECT_EQ(show_text("fx-code", R"(graph(%x: f32[3]) {
              %m = constant(value=f32[] {1})
              %big = constant(value=f32[2,2] splat 3)
              %y = clip(%x, max=%m)
              %i = arg_max(%y, axis=0, last=true)
              return %i, %big })"),
            R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %_tensor_constant0 : [num_users=1] = get_attr[target=_tensor_constant0]
    %y : [num_users=1] = call_function[target=torch.clamp](args = (%x,), kwargs = {max: 1.0})
    %i : [num_users=1] = call_function[target=tenon.arg_max](args = (%y,), kwargs = {axis: 0, last: True})
    return (i, _tensor_constant0)
)");
}

TEST(Fx, CountsAUserOnce) {
  EXPECT_EQ(show_text("fx-code", "graph(%x: f32[3]) { %y = mul(%x, %x) return %y }"), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : [num_users=1] = call_function[target=operator.mul](args = (%x, %x), kwargs = {})
    return y
)");
}

// Rows padded to a cell of thousands of characters would take megabytes.
TEST(Fx, LetsALongCellStickOut) {
  std::string text = "graph(%x: f32[1]) {", list;
  for (int i = 0; i < 1000; ++i) {
    text += fmt::format(" %v{} = relu(%x)", i);
    list += fmt::format("{}%v{}", i == 0 ? "" : ", ", i);
  }
  const std::string shown =
      show_text("fx", fmt::format("{} %y = concat([{}], axis=0) return %y }}", text, list));
  EXPECT_LT(shown.size(), 100'000);
  EXPECT_NE(shown.find("call_function  v0      torch.relu  (x,)  {}\n"), std::string::npos)
      << shown.substr(0, 500);
  EXPECT_NE(shown.find(", v998, v999],)  {'dim': 0}\n"), std::string::npos);
}

TEST(Fx, KeepsPercentSignsOfStrings) {
  const std::string shown =
      show_text("fx-code", R"(graph(%x: f32[]) { %s = constant(value=str[] {"100%"}) return %x, %s })");
  EXPECT_TRUE(shown.ends_with("    return (x, \"100%\")\n")) << shown;
}

TEST(Hlo, NestsTheRowsOfAConstant) {
  const auto shown = [](std::string_view constant) {
    const std::string text =
        show_text("hlo", fmt::format("graph() {{ %c = constant(value={}) return %c }}", constant));
    const size_t begin = text.find(" constant(") + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(shown("i32[] {1}"), "constant(1)");
  EXPECT_EQ(shown("i32[3] {1, 2, 3}"), "constant({1, 2, 3})");
  EXPECT_EQ(shown("i32[2,2] {1, 2, 3, 4}"), "constant({ {1, 2}, {3, 4} })");
  EXPECT_EQ(shown("i32[2,1,2] {1, 2, 3, 4}"), "constant({ { {1, 2} }, { {3, 4} } })");
  EXPECT_EQ(shown("i32[0,2] {}"), "constant({})");
}

TEST(TorchScript, FetchesASubmoduleOnce) {
  EXPECT_EQ(show_text("torchscript", R"(graph(%x: f32[n,2]) {
              %w = parameter(name="a.b.weight", value=f32[2,2] splat 1)
              %c = parameter(name="a.b.bias", value=f32[2] splat 1)
              %y = linear(%x, %w, %c)
              return %y })"),
            R"(graph(%self : __torch__.Main,
      %x : Float(*, 2)):
  %a : __torch__.A = prim::GetAttr[name="a"](%self)
  %b : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="b"](%a)
  %weight : Float(2, 2) = prim::GetAttr[name="weight"](%b)
  %bias : Float(2) = prim::GetAttr[name="bias"](%b)
  %y : Float(*, 2) = aten::linear(%x, %weight, %bias)
  return (%y)
)");
}

TEST(Hlo, WritesBroadcastsOut) {
  EXPECT_EQ(show_text("hlo", R"(graph(%a: f32[4,1], %b: f32[3], %c: f32[]) {
              %0 = add(%a, %b)
              %1 = mul(%0, %c)
              %2 = less(%1, %0)
              return %2, %0 })"),
            R"(HloModule main

ENTRY main {
  p0 = f32[4,1] parameter(0)  // a
  p1 = f32[3] parameter(1)  // b
  p2 = f32[] parameter(2)  // c
  reshape = f32[4] reshape(p0)
  bcast = f32[4,3] broadcast(reshape), dimensions={0}
  bcast_1 = f32[4,3] broadcast(p1), dimensions={1}
  add = f32[4,3] add(bcast, bcast_1)
  bcast_2 = f32[4,3] broadcast(p2), dimensions={}
  multiply = f32[4,3] multiply(add, bcast_2)
  compare = pred[4,3] compare(multiply, add), direction=LT
  ROOT tuple = (pred[4,3], f32[4,3]) tuple(compare, add)
}
)");
}

TEST(Hlo, ReducesWithANamedComputation) {
  EXPECT_EQ(show_text("hlo", R"(graph(%x: f32[2,3]) {
              %0 = reduce_sum(%x, axes=[-1], keep_dims=true)
              %1 = reduce_mean(%0, axes=[0, 1])
              return %1 })"),
            R"(HloModule main

add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT add = f32[] add(a, b)
}

ENTRY main {
  p0 = f32[2,3] parameter(0)  // x
  reduce = f32[2] reduce(p0, f32[] constant(0)), dimensions={1}, to_apply=add_f32
  reshape = f32[2,1] reshape(reduce)
  reduce_1 = f32[] reduce(reshape, f32[] constant(0)), dimensions={0,1}, to_apply=add_f32
  ROOT divide = f32[] divide(reduce_1, f32[] constant(2))
}
)");
}

// Integers have no infinities to start a maximum with.
TEST(Hlo, ReducesFromTheLimitsOfTheDType) {
  const auto start = [](std::string_view op, std::string_view dtype) {
    const std::string shown =
        show_text("hlo", fmt::format("graph(%x: {}[2]) {{ %y = {}(%x, axes=[0]) return %y }}", dtype, op));
    const size_t begin = shown.find("reduce(p0, ") + 11;
    return shown.substr(begin, shown.find("), dimensions") - begin);
  };
  EXPECT_EQ(start("reduce_max", "f32"), "f32[] constant(-inf)");
  EXPECT_EQ(start("reduce_min", "f16"), "f16[] constant(inf)");
  EXPECT_EQ(start("reduce_max", "f8e4m3fn"), "f8e4m3fn[] constant(-448)");
  EXPECT_EQ(start("reduce_max", "i64"), "s64[] constant(-9223372036854775808)");
  EXPECT_EQ(start("reduce_min", "i64"), "s64[] constant(9223372036854775807)");
  EXPECT_EQ(start("reduce_max", "u8"), "u8[] constant(0)");
  EXPECT_EQ(start("reduce_min", "i8"), "s8[] constant(127)");
  EXPECT_EQ(start("reduce_sum", "i32"), "s32[] constant(0)");
  EXPECT_EQ(start("reduce_prod", "u16"), "u16[] constant(1)");
}

TEST(Hlo, MultipliesBatchesOfMatrices) {
  const auto dot = [](std::string_view a, std::string_view b, std::string_view attributes) {
    const std::string shown = show_text(
        "hlo",
        fmt::format("graph(%a: f32{}, %b: f32{}) {{ %y = matmul(%a, %b{}) return %y }}", a, b, attributes));
    return shown.substr(shown.find("ROOT"));
  };
  EXPECT_EQ(dot("[2,3]", "[4,3]", ", transpose_b=true"),
            "ROOT dot = f32[2,4] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n");
  EXPECT_EQ(dot("[5,2,3]", "[3]", ""),
            "ROOT dot = f32[5,2] dot(p0, p1), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n}\n");
  EXPECT_EQ(dot("[2,3]", "[5,3,4]", ""),
            "ROOT dot = f32[5,2,4] dot(bcast, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, "
            "rhs_contracting_dims={1}\n}\n");
}

TEST(Onnx, TransposesAWeightThatIsUsedElsewhereToo) {
  EXPECT_EQ(show_text("onnx", R"(graph(%x: f32[2,3]) {
              %w = parameter(name="w", value=f32[3,3] splat 1)
              %0 = linear(%x, %w)
              %1 = matmul(%0, %w)
              return %1 as "y" })"),
            R"(graph main
Inputs:
  x: float[2,3]
Initializers:
  w: float[3,3]
Nodes:
  Transpose[perm=[1, 0]](w) → w_transposed: float[3,3]
  MatMul(x, w_transposed) → linear: float[2,3]
  MatMul(linear, w) → y: float[2,3]
Outputs:
  y: float[2,3]
)");
}

TEST(Relay, EndsWithTheLastExpressionOrATuple) {
  EXPECT_EQ(
      show_text(
          "relay",
          "graph(%x: i32[n]) { %c = constant(value=i32[] {3}) %0 = add(%x, %c) %1 = neg(%0) return %0, %1 }"),
      R"(fn (%x: Tensor[(?), int32]) {
  %0 = add(%x, 3i32);
  %1 = negative(%0);
  (%0, %1)
}
)");
}

TEST(Cpp, TracesToTheSameGraph) {
  const auto expect_same = [](const std::string& name,
                              std::unique_ptr<Graph> (*trace_again)(const LiteralTable&)) {
    const auto graph = builtin::make_model(name);
    EXPECT_EQ(show("cpp", *graph), read(name + ".cpp"));
    const auto again = trace_again(large_literals(*graph));
    EXPECT_EQ(difference(*graph, *again), "");
    EXPECT_EQ(print(*graph), print(*again));
  };
  expect_same("tiny", ::trace_tiny);
  expect_same("my_module", ::trace_my_module);
  expect_same("conv_bn_noaffine", ::trace_conv_bn_noaffine);
  expect_same("cond", ::trace_cond);
}

TEST(Dependencies, TellChainsFromBranches) {
  EXPECT_EQ(show("deps", *builtin::make_model("fusion_candidate")), R"(who depends on whom:
  mul depends on: x
  add depends on: mul
  relu depends on: add
nodes: 5 (3 compute, 2 data)
shape: a chain
skip connections: none
chains that could fuse:
  mul → add → relu
)");
  EXPECT_EQ(show("deps", *builtin::make_model("residual_linear")), R"(who depends on whom:
  linear depends on: x, linear1_weight, linear1_bias
  relu depends on: linear
  linear_1 depends on: relu, linear2_weight, linear2_bias
  add depends on: x, linear_1
nodes: 8 (4 compute, 4 data)
shape: branches at x (2 users)
shape: joins at add
skip connections: x → add
chains that could fuse:
  linear → relu
  linear_1 → add
)");
}

// x is used twice, but no path leads from one use to the other.
TEST(Dependencies, SeeNoSkipWhereBranchesArePlain) {
  const std::string shown =
      show_text("deps", "graph(%x: f32[2]) { %a = exp(%x) %b = log(%x) %y = add(%a, %b) return %y }");
  EXPECT_NE(shown.find("shape: branches at x (2 users)\nshape: joins at y\nskip connections: none\n"),
            std::string::npos)
      << shown;
}

// Value i is used at once and again far behind, where all nodes between would have to be looked at.
TEST(Dependencies, SayWhereTheyStopLookingForSkips) {
  constexpr int count = 3000;
  std::string text = "graph(%x: f32[4]) {";
  for (int i = 0; i < count; ++i)
    text += fmt::format(" %a{0} = exp(%x)", i);
  for (int i = 0; i < count; ++i)
    text += fmt::format(" %b{0} = log(%a{0})", i);
  text += " %c0 = relu(%x)";
  for (int i = 0; i < count; ++i)
    text += fmt::format(" %c{} = add(%c{}, %a{})", i + 1, i, i);
  const std::string shown = show_text("deps", fmt::format("{} return %c{} }}", text, count));
  EXPECT_NE(shown.find("skip connections: none\n  from c"), std::string::npos);
  EXPECT_NE(shown.find(" on none were looked for: the graph is too large\n"), std::string::npos);
}

// Fusing through a value that is used elsewhere would compute it twice.
TEST(Dependencies, EndAChainWhereAValueIsShared) {
  const std::string shown =
      show_text("deps", "graph(%x: f32[2]) { %a = exp(%x) %b = log(%a) %c = neg(%b) return %a, %c }");
  EXPECT_NE(shown.find("chains that could fuse:\n  b → c\n"), std::string::npos) << shown;
}

}  // namespace
}  // namespace tenon
