// The text of kernel graphs, read back; and what the checker says of graphs that are wrong.
#include "lowering/kernel_graph.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "lowering/check.h"
#include "lowering/equal.h"
#include "lowering/interpret.h"
#include "lowering/lower_graph.h"
#include "lowering/parse.h"
#include "lowering/print.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {

using lowering::BufferId;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

// A graph, and what it is lowered to, which refers to it.
struct Lowered {
  explicit Lowered(std::string_view text) {
    register_ops();
    graph = parse(text);
    kernels = lowering::lower_graph(*graph);
  }

  std::unique_ptr<Graph> graph;
  KernelGraph kernels;
};

constexpr std::string_view kProduct = R"(graph g(%x: f32[n,4], %y: f32[4,5]) {
      %0 = matmul(%x, %y)
      %1 = relu(%0)
      return %1
    })";

TEST(PrintKernelGraph, ShowsBuffersAndDefinitions) {
  const Lowered lowered(kProduct);
  EXPECT_EQ(print(lowered.kernels), R"(kernel graph "g" {
  input v0: f32[n,4] on cpu
  input v1: f32[4,5] on cpu
  buffer v2: f32[n,5] on cpu
  output v3: f32[n,5] on cpu
  buffer v2_t0_0: f32[n,5] on cpu
  define v2_t0_0 for i0 in 0..n, i1 in 0..5 over k0 in 0..4 from "matmul" {
    v2_t0_0[i0,i1] = 0
    v2_t0_0[i0,i1] += v0[i0,k0] * v1[k0,i1]
  }
  define v2 for i0 in 0..n, i1 in 0..5 from "matmul" {
    v2[i0,i1] = v2_t0_0[i0,i1]
  }
  define v3 for i0 in 0..n, i1 in 0..5 from "relu" {
    v3[i0,i1] = select(v2[i0,i1] < 0, 0, v2[i0,i1])
  }
  return v3
}
)");
}

void expect_round_trip(const KernelGraph& graph, const LiteralTable& literals = {}) {
  const std::string text = print(graph);
  SCOPED_TRACE(text);
  const KernelGraph again = lowering::parse_kernel_graph(text, {.literals = &literals});
  EXPECT_EQ(difference(graph, again), "");
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(check(again), std::vector<std::string>());
}

TEST(ParseKernelGraph, ReadsBackWhatLoweringMakes) {
  for (const char* text : {
           kProduct.data(),
           "graph g(%x: f32[6,4]) { %0 = unsqueeze(%x, axes=[0]) return %0 }",
           "graph g(%x: f32[6]) { %0 = nonzero(%x) return %0 }",
           "graph g(%x: f32[6,40]) { %0 = softmax(%x, axis=-1) return %0, %x }",
           "graph g(%x: f32[n,7]) { %0 = arg_max(%x, axis=1) return %0 }",
           "graph g(%x: f32[8,3], %i: i64[n]) { %0 = gather(%x, %i, axis=0) return %0 }",
           "graph g(%x: f32[4,9]) { %0 = cumulative_sum(%x, axis=1) return %0 }",
           "graph g(%x: f32[2,3]) { %c = constant(value=f32[2,3] {1,2,3,4,5,nan}) %0 = add(%x, %c) return %0 "
           "}",
       }) {
    const Lowered lowered(text);
    expect_round_trip(lowered.kernels);
  }
}

TEST(ParseKernelGraph, ReadsNestedGraphsOfHostCalls) {
  const Lowered lowered(R"(graph g(%x: f32[3], %c: bool[]) {
      %0 = if(%c, [%x]) then(%y: f32[3]) { %1 = exp(%y) return %1 } else(%y: f32[3]) { return %y }
      return %0
    })");
  ASSERT_EQ(lowered.kernels.nodes.front().kind, KernelNode::Kind::Host);
  expect_round_trip(lowered.kernels);
}

std::string error_of(const std::string& text) {
  register_ops();
  try {
    lowering::parse_kernel_graph(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseKernelGraph, SaysWhereTextIsWrong) {
  EXPECT_EQ(error_of("graph g() {}"), "line 1, column 1: 'kernel' was expected");
  EXPECT_EQ(error_of("kernel graph \"g\" {\n  buffer v0: f32[2] on cpu\n  buffer v0: f32[2] on cpu\n}"),
            "line 3, column 12: two buffers are called v0");
  EXPECT_EQ(error_of("kernel graph \"g\" { return v7 }"), "line 1, column 27: 'v7' is no buffer");
  EXPECT_EQ(error_of("kernel graph \"g\" { compute }"),
            "line 1, column 20: 'define', 'host', 'nest', 'alias', 'kernel' or 'return' was expected");
  EXPECT_EQ(error_of("fused kernel graph \"g\" { kernel spiral { } }"),
            "line 1, column 33: a pattern of a kernel was expected: map, rows, contract, attention or tiles");
  EXPECT_EQ(error_of("kernel graph \"g\" { buffer v0: f32[] on cpu define v0 { } return }"),
            "line 1, column 54: a definition is an assignment, or two: the initial value, then what is "
            "combined with it");
  EXPECT_EQ(error_of("kernel graph \"g\" { return } kernel"),
            "line 1, column 29: the kernel graph ends here, but not the text");
}

// --- the checker ---

using Findings = std::vector<std::string>;

Findings findings_in(const std::string& text) {
  register_ops();
  return check(lowering::parse_kernel_graph(text));
}

// Of a graph with an input and an output of two elements each, and these lines.
Findings findings_with(const std::string& lines) {
  return findings_in("kernel graph \"g\" {\n  input x: f32[2] on cpu\n  output y: f32[2] on cpu\n" + lines +
                     "\n  return y\n}\n");
}

constexpr std::string_view kCopy = "define y for i0 in 0..2 { y[i0] = x[i0] }";

TEST(CheckKernelGraph, FindsNothingWhereNothingIsWrong) {
  EXPECT_EQ(findings_with(std::string(kCopy)), Findings());
  EXPECT_EQ(check(Lowered(kProduct).kernels), Findings());
}

TEST(CheckKernelGraph, FindsWritersThatMayNotBe) {
  EXPECT_EQ(findings_with(std::string(kCopy) + kCopy.data()), Findings{"y is written twice"});
  EXPECT_EQ(findings_with("define x for i0 in 0..2 { x[i0] = 1 }" + std::string(kCopy)),
            Findings{"x is an input, and written"});
  EXPECT_EQ(findings_with("constant c: f32[2] on cpu = f32[2] {1, 2}\n"
                          "define c for i0 in 0..2 { c[i0] = 1 }" +
                          std::string(kCopy)),
            Findings{"c is a constant, and written"});
  EXPECT_EQ(findings_with(""), Findings{"output y is never written"});
}

TEST(CheckKernelGraph, FindsReadsBeforeWrites) {
  EXPECT_EQ(findings_with("buffer t: f32[2] on cpu\n"
                          "define y for i0 in 0..2 { y[i0] = t[i0] }\n"
                          "define t for i0 in 0..2 { t[i0] = x[i0] }"),
            Findings{"y reads t before it is written"});
  EXPECT_EQ(findings_with("buffer t: f32[2] on cpu\ndefine y for i0 in 0..2 after t { y[i0] = x[i0] }"),
            Findings{"y waits for t, which no node before it writes"});
}

TEST(CheckKernelGraph, FindsRanksAndDtypesThatDoNotFit) {
  EXPECT_EQ(findings_with("define y for i0 in 0..2 { y[i0] = x[i0,0] }"),
            Findings{"y loads x as f32 of 2 dimensions, but it is f32[2]"});
  EXPECT_EQ(findings_with("define y for i0 in 0..2 { y[i0,0] = x[i0] }"),
            Findings{"y is f32[2], but is defined at 2 indices"});
  EXPECT_EQ(findings_with("define y for i0 in 0..2 { y[i0] = i32(x[i0]) }"),
            Findings{"y is f32[2], but its value is i32"});
  EXPECT_EQ(findings_with("define y for i0 in 0..2 { y[i0] = x[i1] }"),
            Findings{"y: i1 is neither an axis nor a size"});
  EXPECT_EQ(findings_with("define y for i0 in 0..2, i0 in 0..2 { y[i0] = x[i0] }"),
            Findings{"y: two axes are called i0"});
}

TEST(CheckKernelGraph, FindsReductionsThatAreNotSaidHow) {
  EXPECT_EQ(findings_with("define y for i0 in 0..2 over k0 in 0..2 { y[i0] = x[k0] }"),
            Findings{"y is reduced, but nothing says how values combine"});
  EXPECT_EQ(findings_with("define y for i0 in 0..2 over k0 in 0..2 { y[i0] += x[k0] }"),
            Findings{"y is reduced, but has no initial value"});
}

TEST(CheckKernelGraph, FindsAliasesOfOtherSizes) {
  EXPECT_EQ(findings_with("buffer t: f32[3] on cpu\nalias t of x\n" + std::string(kCopy)),
            Findings{"t is f32[3], which cannot be an alias of f32[2]"});
}

TEST(CheckKernelGraph, FindsNestsOfOtherBuffers) {
  EXPECT_EQ(findings_with("nest y of x { kernel k(a: f32[3]) -> (b: f32[2]) { b[0] = a[0] } }"),
            Findings{"y: the buffers of the nest are not those of the node"});
}

TEST(CheckKernelGraph, FindsLayoutsThatDoNotFit) {
  EXPECT_EQ(
      findings_with("constant c: f32[2,3] on cpu permuted [0,0] = f32[3,2] splat 1\n" + std::string(kCopy)),
      Findings{"c is f32[2,3], but its layout is no order of 2 dimensions"});
  EXPECT_EQ(
      findings_with("constant p: f32[1,2,2] on cpu packed of x order [0,1] reduced 1 lanes 2 groups 1\n" +
                    std::string(kCopy)),
      Findings{"p is made of x, which is no constant of the graph"});
}

TEST(CheckKernelGraph, FindsWhatChangesOfAGraphLeaveWrong) {
  KernelGraph graph = Lowered(kProduct).kernels;
  graph.nodes.back().reads.clear();
  EXPECT_EQ(check(graph), Findings{"v3: its reads and writes are not those of its definition"});
  graph.nodes.back().stage.reset();
  EXPECT_EQ(check(graph), Findings{"v3: what the node is, is not what it holds"});

  KernelGraph other = Lowered(kProduct).kernels;
  other.buffers.at("v2").dtype = DType::I32;
  EXPECT_EQ(check(other), (Findings{"v2 is i32[n,5], but is defined as f32[n,5]",
                                    "v3 loads v2 as f32 of 2 dimensions, but it is i32[n,5]",
                                    "v3 loads v2 as f32 of 2 dimensions, but it is i32[n,5]"}));
}

TEST(CheckKernelGraph, FindsGroupsThatCannotRun) {
  const auto with_groups = [](std::vector<std::vector<size_t>> groups) {
    KernelGraph graph = Lowered(kProduct).kernels;
    for (std::vector<size_t>& nodes : groups)
      graph.groups.push_back({.nodes = std::move(nodes)});
    return check(graph);
  };
  EXPECT_EQ(with_groups({{0, 1, 2}}), Findings());
  EXPECT_EQ(with_groups({{0, 1}}), Findings{"v3 is in 0 groups"});
  EXPECT_EQ(with_groups({{0, 1}, {1, 2}}), Findings{"v2 is in 2 groups"});
  EXPECT_EQ(with_groups({{0, 2}, {1}}), Findings{"group 0 needs v2, which no group before it writes"});
  EXPECT_EQ(with_groups({{0, 1, 2}, {}}), Findings{"group 1 is empty"});
  EXPECT_EQ(with_groups({{0, 1, 2}, {7}}), Findings{"group 1 has nodes that there are not"});
  Lowered host("graph g(%x: f32[6]) { %0 = nonzero(%x) %1 = exp(%x) return %0, %1 }");
  host.kernels.groups = {{.nodes = {0, 1}}};
  EXPECT_EQ(check(host.kernels), Findings{"group 0 has several nodes, not all of which are definitions"});
  KernelGraph tiled = Lowered(kProduct).kernels;
  tiled.groups = {{.nodes = {0, 1, 2}, .parts = {{.nodes = {0}}}}};
  EXPECT_EQ(check(tiled), Findings{"the parts of group 0 do not make it up"});
}

// --- the interpreter ---

std::vector<double> interpreted(const std::string& text, const std::vector<double>& x) {
  register_ops();
  const Tensor input = narrow<double>(DType::F32, {static_cast<int64_t>(x.size())}, x);
  RandomGenerator random(0);
  return widen<double>(
      lowering::interpret(lowering::parse_kernel_graph(text), {input}, random).front().tensor());
}

TEST(InterpretKernelGraph, ReadsConstantsInTheirLayout) {
  EXPECT_EQ(interpreted(R"(kernel graph "permuted" {
      input x: f32[2] on cpu
      constant c: f32[3,2] on cpu permuted [1,0] = f32[2,3] {1, 2, 3, 4, 5, 6}
      output y: f32[3] on cpu
      define y for i0 in 0..3 over k0 in 0..2 {
        y[i0] = 0
        y[i0] += x[k0] * c[i0,k0]
      }
      return y
    })",
                        {1, 10}),
            (std::vector<double>{41, 52, 63}));
}

// Five lanes in panels of four: the second panel begins with the second lane.
TEST(InterpretKernelGraph, ReadsPanelsThatOverlap) {
  EXPECT_EQ(interpreted(R"(kernel graph "packed" {
      input x: f32[2] on cpu
      constant w: f32[2,5] on cpu = f32[2,5] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
      constant p: f32[2,2,4] on cpu packed of w order [1,0] reduced 1 lanes 4 groups 1
      output y: f32[5] on cpu
      define y for i0 in 0..5 over k0 in 0..2 packed_b(p, 4, 1, 1, false) {
        y[i0] = 0
        y[i0] += x[k0] * p[0,k0,i0]
      } as written for i0 in 0..5 over k0 in 0..2 {
        y[i0] = 0
        y[i0] += x[k0] * w[k0,i0]
      }
      return y
    })",
                        {1, 10}),
            (std::vector<double>{61, 72, 83, 94, 105}));
}

TEST(InterpretKernelGraph, FillsThePaddingOfResults) {
  EXPECT_EQ(interpreted(R"(kernel graph "padded" {
      input x: f32[2] on cpu
      output y: f32[4] on cpu
      define y for i0 in 0..2 border(f32(-inf)) { y[i0 + 1] = x[i0] }
      return y
    })",
                        {1, 10}),
            (std::vector<double>{-INFINITY, 1, 10, -INFINITY}));
}

}  // namespace
}  // namespace tenon
