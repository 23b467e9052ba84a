// own_memory_test.cpp — programs for a GPU whose kernels have memory of their own, on a device that
// interprets them.
#include "compiler/describe.h"
#include "compiler/expect_compiled.h"
#include "compiler/separate_gpu.h"
#include "frontends/builtin/builtin.h"
#include "ir/evaluate.h"

namespace tenon {
namespace {

TEST(OwnMemory, RunsKernelsOfEveryPattern) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[n,40], %w1: f32[40,33], %w2: f32[33]) {
    %0 = matmul(%x, %w1)
    %1 = add(%0, %w2)
    %2 = softmax(%1, axis=-1)
    %3 = reduce_sum(%2, axes=[0])
    return %2, %3
  })"),
                      {{"n", 5}}, for_gpu());
}

TEST(OwnMemory, RowsOfAnyLength) {
  for (const int64_t columns : {3, 17, 500, 1100})
    expect_as_evaluated(*read(R"(graph g(%x: f32[n,m]) {
      %0 = softmax(%x, axis=-1)
      %1 = layer_norm(%0, axis=1)
      return %1
    })"),
                        {{"n", 3}, {"m", columns}}, for_gpu());
}

// Long reductions to few elements, along rows and across them, with what follows them.
TEST(OwnMemory, ReducesInParts) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[1200,70], %y: f32[3,9000], %z: f32[n,70]) {
    %0 = reduce_sum(%x, axes=[0])
    %1 = relu(%0)
    %2 = reduce_max(%y, axes=[1])
    %3 = reduce_mean(%y, axes=[0,1])
    %4 = reduce_sum(%z, axes=[0])
    return %1, %2, %3, %4
  })"),
                      {{"n", 45}}, for_gpu());
}

TEST(OwnMemory, TransposesByTiles) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[50,40], %y: f32[40,50], %z: f32[3,33,n], %w: f32[2,20,3,24]) {
    %0 = transpose(%x, permutation=[1,0])
    %1 = add(%0, %y)
    %2 = transpose(%z, permutation=[0,2,1])
    %3 = transpose(%w, permutation=[0,2,3,1])
    return %1, %2, %3
  })"),
                      {{"n", 37}}, for_gpu());
}

// Sizes may have the names that loops would have by themselves.
TEST(OwnMemory, TellsSizesFromLoops) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[e,row], %y: f32[total,20], %z: f32[read,part]) {
    %0 = relu(%x)
    %1 = reduce_sum(%y, axes=[0])
    %2 = transpose(%z, permutation=[1,0])
    return %0, %1, %2
  })"),
                      {{"e", 3}, {"row", 5}, {"total", 40}, {"read", 33}, {"part", 20}}, for_gpu());
}

// What a select does not choose is not read: it may be outside its buffer.
TEST(OwnMemory, ReadsNothingThatIsNotChosen) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[40,20], %y: f32[20,40], %a: f32[4,30], %b: f32[4,30]) {
    %0 = transpose(%x, permutation=[1,0])
    %1 = concat([%0, %y], axis=1)
    %2 = exp(%1)
    %3 = concat([%a, %b], axis=1)
    %4 = softmax(%3, axis=1)
    return %2, %4
  })"),
                      {}, for_gpu());
}

TEST(OwnMemory, HasNothingToComputeOfNoElements) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[4,0], %y: f32[4,1], %a: f32[20,0], %b: f32[0,20], %z: f32[100,4,0]) {
    %0 = add(%x, %y)
    %1 = matmul(%a, %b)
    %2 = reduce_sum(%z, axes=[0])
    return %0, %1, %2
  })"),
      {}, for_gpu());
}

// A view of an output follows it to where the caller wants it; a host step writes one.
TEST(OwnMemory, TakesOutputsWhereTheCallerWantsThem) {
  const auto graph = read(R"(graph g(%x: f32[4,8], %w1: f32[8,8], %w2: f32[32,3]) {
    %0 = matmul(%x, %w1)
    %s = constant(value=i64[2] {1,32})
    %1 = reshape(%0, %s)
    %2 = matmul(%1, %w2)
    %3 = exp(%2)
    return %0, %3
  })");
  const std::unique_ptr<runtime::Executor> executor = compile(*graph, for_gpu());
  runtime::DeviceMemory& memory = *executor->device().own_memory();
  const std::unique_ptr<runtime::Workspace> workspace = executor->device().make_workspace();
  std::vector<std::shared_ptr<std::byte[]>> kept;
  for (uint64_t run = 0; run < 4; ++run) {
    Data inputs = inputs_for(*graph, {});
    inputs.front() = numbers(DType::F32, {4, 8}, run);
    const Data expected = evaluate(*graph, inputs);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const Datum& input : inputs) {
      const auto bytes = static_cast<int64_t>(input.tensor().bytes().size());
      kept.push_back(memory.allocate(bytes));
      memory.upload(kept.back().get(), input.tensor().bytes().data(), bytes, *workspace);
      from.push_back(kept.back().get());
    }
    for (const Datum& output : expected) {
      kept.push_back(memory.allocate(static_cast<int64_t>(output.tensor().bytes().size())));
      to.push_back(kept.back().get());
    }
    const runtime::DevicePorts all{.inputs = std::vector<bool>(from.size(), true),
                                   .outputs = std::vector<bool>(to.size(), true)};
    executor->run_into(from, to, {.on_device = &all});
    for (size_t i = 0; i < expected.size(); ++i) {
      Tensor actual(DType::F32, expected[i].tensor().extents());
      memory.download(actual.mutable_bytes().data(), static_cast<const std::byte*>(to[i]),
                      static_cast<int64_t>(actual.bytes().size()), *workspace);
      const std::vector<double> a = widen<double>(actual), b = widen<double>(expected[i].tensor());
      for (size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], 1e-4) << "run " << run << ", output " << i;
    }
  }
}

// A host step between kernels, whose operand and result are copied; a value that both sides read; an input
// that is an output; and an output that is a view.
TEST(OwnMemory, CopiesWhatHostStepsNeed) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[6], %y: f32[2,3]) {
    %0 = exp(%x)
    %1, %5, %6, %7 = unique(%0, axis=0)
    %3 = tanh(%1)
    %8 = constant(value=i64[2] {3,2})
    %4 = reshape(%0, %8)
    return %3, %4, %y, %0
  })"),
                      {}, for_gpu());
}

// From the second run of a layout on, with memory that is elsewhere each time.
TEST(OwnMemory, LaunchesKernelsTogether) {
  const auto graph = read(R"(graph g(%x: f32[n,40], %w1: f32[40,33]) {
    %0 = matmul(%x, %w1)
    %1 = softmax(%0, axis=-1)
    %2 = reduce_sum(%1, axes=[0])
    return %1, %2
  })");
  const std::unique_ptr<runtime::Executor> executor = compile(*graph, for_gpu());
  const auto& device = dynamic_cast<const SeparateDevice&>(executor->device());
  for (int run = 0; run < 3; ++run)
    for (const int64_t rows : {5, 7}) {
      Data inputs = inputs_for(*graph, {{"n", rows}});
      inputs.front() = numbers(DType::F32, {rows, 40}, static_cast<uint64_t>(run));
      const Data expected = evaluate(*graph, inputs), actual = executor->run(inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        const std::vector<double> a = widen<double>(actual[i].tensor()),
                                  b = widen<double>(expected[i].tensor());
        ASSERT_EQ(a.size(), b.size());
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 1e-5) << "run " << run << " of " << rows << " rows";
      }
    }
  EXPECT_EQ(device.graphs, 2);
}

// --- what runs where ---

std::string placement_in(std::string_view text) {
  const std::unique_ptr<runtime::Executor> executor = compile(*read(text), for_gpu());
  const std::optional<compiler::Placement> placement = compiler::placement_of(executor->program());
  return placement ? describe(*placement) : "";
}

TEST(Placement, CountsNodesOfKernelsAndHostOps) {
  EXPECT_EQ(placement_in(R"(graph g(%x: f32[4,4]) {
    %a = relu(%x)
    %b = exp(%a)
    %c = nonzero(%b)
    %d = nonzero(%x)
    return %b, %c, %d
  })"),
            "2 nodes on the device, 2 on the host (nonzero 2)");
}

TEST(Placement, SaysThatTheHostRunsNothing) {
  EXPECT_EQ(placement_in("graph g(%x: f32[4,4]) { %0 = relu(%x) return %0 }"),
            "1 node on the device, none on the host");
}

// A softmax is several kernels' where its rows are split, and one node.
TEST(Placement, CountsANodeOfSeveralKernelsOnce) {
  EXPECT_EQ(placement_in("graph g(%x: f32[600000]) { %0 = softmax(%x, axis=0) return %0 }"),
            "1 node on the device, none on the host");
}

TEST(Placement, CountsNestedGraphs) {
  EXPECT_EQ(placement_in(R"(graph g(%c: bool[], %x: f32[4]) {
    %0 = if(%c, [%x]) then(%a: f32[4]) {
      %p = relu(%a)
      return %p
    } else(%b: f32[4]) {
      %q = exp(%b)
      return %q
    }
    return %0
  })"),
            "2 nodes on the device, 1 on the host (if 1)");
}

TEST(Placement, IsNotSaidOfAProcessor) {
  const std::unique_ptr<Graph> graph = read("graph g(%x: f32[4,4]) { %0 = relu(%x) return %0 }");
  EXPECT_FALSE(compiler::placement_of(compile(*graph, without_cache())->program()));
}

}  // namespace
}  // namespace tenon
