// top_k by thread blocks, interpreted, against the op's own evaluation; and where it stays with the host.
#include "schedule/cuda/sort_in_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/evaluate.h"
#include "ir/parse.h"
#include "loops/check.h"
#include "loops/interpret.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

using lowering::KernelNode;

struct Sorted {
  std::unique_ptr<Graph> source;
  lowering::KernelGraph graph;

  explicit Sorted(const std::string& text, const Gpu& gpu = gpu_named("sm_90")) {
    register_ops();
    source = parse(text);
    graph = lowering::lower_graph(*source);
    schedule::cuda::sort_in_blocks(graph, gpu);
  }
  const KernelNode& node() const { return graph.nodes.back(); }
  bool is_on_device() const { return node().kind == KernelNode::Kind::Nest; }
};

std::string top_k_of(const std::string& type, int64_t k, const std::string& attributes) {
  return fmt::format(
      "graph g(%x: {}) {{ %k = constant(value=i64[] {{{}}}) %v, %i = top_k(%x, %k{}) return %v, %i }}", type,
      k, attributes);
}

// Few different numbers, so that many are equal, and some that are none.
Tensor make_input(DType dtype, const Extents& extents) {
  std::mt19937 random(3);
  Tensor tensor(dtype, extents);
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  for (double& value : values)
    value = static_cast<double>(random() % 40) - 20;
  if (is_float(dtype))
    for (size_t i = 0; i < values.size(); i += 7)
      values[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -0.0;
  return narrow<double>(dtype, extents, values);
}

void expect_same(const std::string& text, const Tensor& x) {
  SCOPED_TRACE(text);
  const Sorted sorted(text);
  ASSERT_TRUE(sorted.is_on_device());
  EXPECT_EQ(loops::check(*sorted.node().nest), std::vector<std::string>());
  const std::vector<Tensor> found = loops::interpret(*sorted.node().nest, {x}, {});
  const Data expected = evaluate(*sorted.source, {x});
  for (size_t i = 0; i < 2; ++i) {
    const std::span<const std::byte> a = found[i].bytes(), b = expected[i].tensor().bytes();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << "result " << i;
  }
}

TEST(SortInBlocks, GivesWhatTheOpGives) {
  expect_same(top_k_of("f32[3,64]", 64, ""), make_input(DType::F32, {3, 64}));
  expect_same(top_k_of("f32[2,100]", 7, ""), make_input(DType::F32, {2, 100}));
  expect_same(top_k_of("f32[2,100]", 100, ", largest=false"), make_input(DType::F32, {2, 100}));
  expect_same(top_k_of("f16[3,33]", 5, ""), make_input(DType::F16, {3, 33}));
  expect_same(top_k_of("i64[40,3]", 40, ", axis=0, largest=false"), make_input(DType::I64, {40, 3}));
  expect_same(top_k_of("f64[2,9,3]", 4, ", axis=1"), make_input(DType::F64, {2, 9, 3}));
  expect_same(top_k_of("f32[5,1]", 1, ""), make_input(DType::F32, {5, 1}));
}

TEST(SortInBlocks, LeavesRowsToTheHostThatDoNotFit) {
  EXPECT_TRUE(Sorted(top_k_of("f32[2,16384]", 5, "")).is_on_device());
  EXPECT_FALSE(Sorted(top_k_of("f32[2,16385]", 5, "")).is_on_device());
  EXPECT_FALSE(Sorted(top_k_of("f32[n,m]", 1, ", axis=1")).is_on_device());
  EXPECT_TRUE(Sorted(top_k_of("f32[n,100]", 1, "")).is_on_device());
  Gpu small = gpu_named("sm_90");
  small.shared_bytes_per_block = 4096;
  EXPECT_TRUE(Sorted(top_k_of("f32[2,512]", 5, ""), small).is_on_device());
  EXPECT_FALSE(Sorted(top_k_of("f32[2,513]", 5, ""), small).is_on_device());
}

}  // namespace
}  // namespace tenon
