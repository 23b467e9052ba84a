// Which values a program copies between the host and a GPU, and when.
#include "compiler/place_copies.h"

#include "compiler/expect_compiled.h"
#include "compiler/separate_gpu.h"

namespace tenon {
namespace {

// "to device 0; kernel0; to caller 1": with the numbers of slots.
std::string steps_of(std::string_view text, const compiler::CompileContext& context = for_gpu()) {
  const compiler::ScheduledGraph scheduled = compiler::schedule_graph(*read(text), context);
  std::vector<std::string> steps;
  for (const runtime::Step& step : scheduled.program->steps) {
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step))
      steps.push_back(kernel->name());
    if (const auto* host = std::get_if<runtime::HostStep>(&step))
      steps.emplace_back(host->op);
    if (const auto* copy = std::get_if<runtime::CopyStep>(&step)) {
      constexpr std::string_view kPlaces[] = {"device", "host", "caller"};
      steps.push_back(fmt::format("{} to {}", scheduled.program->slots[copy->slot].name,
                                  kPlaces[static_cast<size_t>(copy->to)]));
    }
    if (const auto* view = std::get_if<runtime::AliasStep>(&step))
      steps.push_back(fmt::format("view on the {}", view->on_device ? "device" : "host"));
  }
  return fmt::format("{}", fmt::join(steps, "; "));
}

TEST(PlaceCopies, OfInputsAndOutputs) {
  EXPECT_EQ(steps_of("graph g(%x: f32[4]) { %0 = relu(%x) return %0 }"),
            "v0 to device; kernel0; v1 to caller");
}

TEST(PlaceCopies, OnceForSeveralReaders) {
  EXPECT_EQ(steps_of(R"(graph g(%x: f32[40,40]) {
    %0 = matmul(%x, %x)
    %1 = reduce_sum(%x, axes=[0])
    return %0, %1
  })"),
            "v0 to device; kernel0; kernel1; v1 to caller; v2 to caller");
}

TEST(PlaceCopies, NotBetweenKernels) {
  EXPECT_EQ(steps_of(R"(graph g(%x: f32[40,40]) {
    %0 = matmul(%x, %x)
    %1 = matmul(%0, %0)
    return %1
  })"),
            "v0 to device; kernel0; kernel0; v2 to caller");
}

// What the host reads comes to it, and what it makes is there for the caller.
TEST(PlaceCopies, AroundHostSteps) {
  EXPECT_EQ(steps_of(R"(graph g(%x: f32[4]) {
    %0 = relu(%x)
    %1 = nonzero(%0)
    return %1
  })"),
            "v0 to device; kernel0; v1 to host; nonzero");
}

TEST(PlaceCopies, NotForWhatTheHostComputesAlone) {
  EXPECT_EQ(steps_of("graph g(%x: f32[4]) { %0 = nonzero(%x) return %0 }"), "nonzero");
}

// Both have them from the start.
TEST(PlaceCopies, NotOfConstants) {
  EXPECT_EQ(steps_of(R"(graph g(%x: f32[4]) {
    %w = constant(value=f32[4] {1, 2, 3, 4})
    %0 = add(%x, %w)
    return %0
  })"),
            "v0 to device; kernel0; v2 to caller");
}

TEST(PlaceCopies, OfViewsFromWhereTheElementsAre) {
  EXPECT_EQ(steps_of(R"(graph g(%x: f32[4,6]) {
    %s = constant(value=i64[1] {24})
    %0 = reshape(%x, %s)
    %1 = relu(%0)
    return %1
  })"),
            "view on the host; v2 to device; kernel0; v3 to caller");
}

TEST(PlaceCopies, NoneOnAProcessor) {
  EXPECT_EQ(steps_of("graph g(%x: f32[4]) { %0 = relu(%x) return %0 }", without_cache()), "kernel0");
}

}  // namespace
}  // namespace tenon
