// What compiled code refuses: as the reference does, before anything is read or written out of range.
#include "base/expect_error.h"
#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/graph_text.h"

namespace tenon {

using runtime::ElementError;

namespace {

std::unique_ptr<Graph> one_node(const std::string& inputs, const std::string& node) {
  return parse_graph(fmt::format("graph({}) {{ %y = {} return %y }}", inputs, node));
}

bool refuses(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError&) {
    return true;
  }
  return false;
}

// Reading or writing there would bring the program down, and it goes on working.
TEST(Refuse, IndicesThatAreOutOfRange) {
  const auto graph = parse_graph("graph(%x: f32[n], %i: i64[n]) { %y = gather(%x, %i) return %y }");
  const auto program = compile(*graph, here());
  const Tensor x = f32({2}, {1, 2});
  EXPECT_THROW(program->run({x, i64({2}, {0, 1e15})}), UserError);
  EXPECT_THROW(program->run({x, i64({2}, {-1e15, 0})}), UserError);
  expect_tensor(program->run({x, i64({2}, {-1, 0})})[0], f32({2}, {2, 1}));
}

TEST(Refuse, ElementsOfANestedGraph) {
  const auto graph = parse_graph(R"(graph(%test: bool[], %x: f32[2], %i: i64[1]) {
    %y = if(%test, [%x, %i]) then(%a: f32[2], %j: i64[1]) {
      %0 = gather(%a, %j)
      return %0
    } else(%a: f32[2], %j: i64[1]) {
      %0 = gather(%a, %j)
      return %0
    }
    return %y
  })");
  expect_error<ElementError>(
      [&] {
        compile(*graph, here())->run({Tensor::scalar(true), f32({2}, {1, 2}), i64({1}, {2})});
      },
      "node %y: node \"gather\": an index is out of range, or an integer is divided by zero");
}

// Not all that is computed in the same kernel.
TEST(Refuse, NamesTheNodesThatMayRefuse) {
  const auto graph = parse_graph(R"(graph(%x: f32[8], %i: i64[4], %j: i64[4]) {
    %0 = gather(%x, %i) from "/embed/Gather"
    %1 = neg(%0) from "/embed/Neg"
    %2 = exp(%1) from "/embed/Exp"
    %two = constant(value=i64[] {2})
    %half = div(%j, %two) from "/half/Div"
    %quotient = div(%i, %half) from "/quotient/Div"
    %3 = cast(%quotient, to=f32) from "/quotient/Cast"
    %4 = add(%2, %3) from "/Add"
    return %4
  })");
  const auto program = compile(*graph, here());
  ASSERT_EQ(program->program().steps.size(), 1U);
  for (const Data& data : {Data{Tensor(DType::F32, {8}), i64({4}, {1, 2, 3, 8}), i64({4}, {2, 2, 2, 2})},
                           Data{Tensor(DType::F32, {8}), i64({4}, {1, 2, 3, 4}), i64({4}, {2, 2, 2, 1})}})
    expect_error<ElementError>([&] { program->run(data); },
                               "node \"/embed/Gather\", \"/quotient/Div\": an index is out of range, or an "
                               "integer is divided by zero");
}

TEST(Refuse, NamesAFewOfManyNodes) {
  const auto graph = parse_graph(R"(graph(%x: i64[4], %i: i64[4]) {
    %0 = div(%x, %i) from "/a"
    %1 = div(%0, %i) from "/b"
    %2 = div(%1, %i) from "/c"
    %3 = div(%2, %i) from "/d"
    return %3
  })");
  const auto program = compile(*graph, here());
  ASSERT_EQ(program->program().steps.size(), 1U);
  expect_error<ElementError>(
      [&] {
        program->run({i64({4}, {1, 2, 3, 4}), i64({4}, {1, 2, 3, 0})});
      },
      "node \"/d\", \"/c\", \"/b\" and 1 more: an index is out of range, or an integer is divided by zero");
}

// Where no element of the result asks for them, too.
TEST(Refuse, IndicesThatAreOutOfRangeOfNothing) {
  const auto refuse = [](const std::string& inputs, const std::string& node, const Extents& x) {
    SCOPED_TRACE(node + " of " + inputs);
    const auto graph = one_node(inputs, node);
    const auto program = compile(*graph, here());
    for (double index : {1, 7}) {
      const Data data{Tensor(DType::F32, x), i64({2}, {1, index})};
      EXPECT_EQ(refuses([&] { evaluate(*graph, data); }), index == 7);
      EXPECT_EQ(refuses([&] { program->run(data); }), index == 7);
    }
  };
  refuse("%x: f32[3,0], %i: i64[2]", "gather(%x, %i)", {3, 0});
  refuse("%x: f32[n,3,m], %i: i64[k]", "gather(%x, %i, axis=1)", {2, 3, 0});
  refuse("%x: f32[n,3,m], %i: i64[k]", "gather(%x, %i, axis=1)", {0, 3, 4});
  refuse("%x: f32[3,4,n], %i: i64[2]", "gather_nd(%x, %i)", {3, 4, 0});
  refuse("%x: f32[3,2,n], %i: i64[2]", "reverse_sequence(%x, %i, time_axis=0, batch_axis=1)", {3, 2, 0});
}

// Inference lets through what may fit.
TEST(Refuse, SizesThatDoNotFitWhenItRuns) {
  const auto refuse = [](const std::string& inputs, const std::string& node,
                         const std::vector<Extents>& sizes) {
    const auto graph = one_node(inputs, node);
    SCOPED_TRACE(node);
    Data data;
    for (size_t i = 0; i < sizes.size(); ++i)
      data.emplace_back(Tensor(graph->input(static_cast<int64_t>(i)).dtype(), sizes[i]));
    EXPECT_THROW(evaluate(*graph, data), UserError);
    EXPECT_THROW(compile(*graph, here())->run(data), UserError);
  };
  refuse("%a: f32[n,4], %b: f32[n,m]", "add(%a, %b)", {{2, 4}, {2, 3}});
  refuse("%a: f32[n,4], %b: f32[n,m]", "add(%a, %b)", {{2, 4}, {2, 0}});
  refuse("%a: f32[2,n], %b: f32[m,4]", "matmul(%a, %b)", {{2, 5}, {3, 4}});
  refuse("%a: f32[2,3,n], %b: f32[m,n,4]", "matmul(%a, %b)", {{2, 3, 5}, {3, 5, 4}});
  refuse("%a: f32[n,3], %b: f32[m,3]", "concat([%a, %b], axis=1)", {{2, 3}, {4, 3}});
  refuse("%a: f32[1,n,5], %b: f32[2,m,3]", "conv(%a, %b, strides=[1], dilations=[1], pads=[0,0])",
         {{1, 4, 5}, {2, 3, 3}});
  refuse("%a: f32[n,3], %i: i64[m,2]", "gather_elements(%a, %i, axis=1)", {{2, 3}, {4, 2}});
  refuse("%a: f32[n,3], %i: i64[m,1]", "gather_nd(%a, %i, batch_dims=1)", {{2, 3}, {4, 1}});
  refuse("%a: f32[n,m]", "squeeze(%a, axes=[0])", {{3, 2}});
  for (int64_t scales : {1, 3, 4}) {
    refuse("%x: f32[n,c,5], %s: f32[m], %b: f32[c]", "batch_norm(%x, %s, %b, %b, %b)",
           {{2, 2, 5}, {scales}, {2}});
    refuse("%x: f32[n,c,5], %s: f32[m], %b: f32[c]", "instance_norm(%x, %s, %b)", {{2, 2, 5}, {scales}, {2}});
    refuse("%x: f32[n,2,5], %s: f32[m], %b: f32[2]", "group_norm(%x, %s, %b, groups=2)",
           {{2, 2, 5}, {scales}, {2}});
  }
  refuse("%x: f32[n,1], %s: f32[m]", "rms_norm(%x, %s)", {{2, 1}, {3}});
  refuse("%x: f32[n,k], %s: f32[m], %b: f32[k]", "layer_norm(%x, %s, %b)", {{2, 1}, {3}, {1}});
  const auto graph = parse_graph(
      "graph(%a: f32[n,m]) { %s = constant(value=i64[1] {6}) %r = reshape(%a, %s) %y = neg(%r) return %y }");
  const auto program = compile(*graph, here());
  expect_error<UserError>(
      [&] {
        program->run({Tensor(DType::F32, {2, 2})});
      },
      "node %r: reshape: 4 elements do not fit into [6]\n  x  %a: f32[2,2]\n  shape  %s: i64[1]");
  EXPECT_EQ(program->run({Tensor(DType::F32, {2, 3})})[0].tensor().extents(), Extents{6});
}

// Sizes that depend on elements are known, and must fit, before a kernel relies on them.
TEST(Refuse, SizesThatComeOutAndDoNotFit) {
  const auto graph = parse_graph(R"(graph(%x: f32[n], %scale: f32[2]) {
      %at = nonzero(%x)
      %values = cast(%at, to=f32)
      %y = mul(%values, %scale)
      return %y
    })");
  const auto program = compile(*graph, here());
  const Tensor scale = f32({2}, {1, 2});
  expect_error<UserError>(
      [&] {
        program->run({f32({3}, {1, 1, 1}), scale});
      },
      "node %y: mul: the shapes do not broadcast\n  a  %values: f32[1,3]\n  b  %scale: f32[2]");
  const Data inputs = {f32({4}, {0, 1, 0, 1}), scale};
  expect_tensor(program->run(inputs)[0], evaluate(*graph, inputs)[0].tensor());
}

// The reference says so, or gives what there is of them.
TEST(Refuse, SizesThatCannotBeCounted) {
  const auto run = [](const std::string& sizes) {
    const auto graph = parse_graph("graph(%x: f32[]) { %s = constant(value=i64[3] {" + sizes +
                                   "}) %b = broadcast(%x, %s) %y = sqrt(%b) return %y }");
    return compile(*graph, here())->run({f32({}, {4})})[0].tensor().extents();
  };
  EXPECT_TRUE(refuses([&] { run("8980183084613588238, 3, 1"); }));
  EXPECT_EQ(run("8980183084613588238, 3, 0"), (Extents{8980183084613588238, 3, 0}));
  EXPECT_EQ(run("0, 3, 8980183084613588238"), (Extents{0, 3, 8980183084613588238}));
}

}  // namespace
}  // namespace tenon
