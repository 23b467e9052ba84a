#include "report/measure.h"

#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/separate_gpu.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "verify/sample_inputs.h"

namespace tenon {

using compiler::ExplainedProgram;

namespace {

class Measure : public ::testing::Test {
 protected:
  void SetUp() override { register_ops(); }

  static Measurement measurement_of(std::string_view text, int threads = 1, double seconds = 0) {
    const std::unique_ptr<Graph> graph = parse(text);
    const ExplainedProgram compiled = compile_explained(*graph, here());
    return measure(*compiled.executor, compiled.fusion, sample_inputs(*graph), this_machine(),
                   {.threads = threads, .seconds = seconds});
  }
};

TEST_F(Measure, CountsOperationsAndBytes) {
  const Measurement measurement = measurement_of(R"(
    graph main(%x: f32[64,64], %w: f32[64,64]) {
      %y = mul(%x, %w)
      return %y
    })",
                                                 2);
  EXPECT_EQ(measurement.threads, 2);
  EXPECT_EQ(measurement.runs(), 5U);
  ASSERT_EQ(measurement.steps.size(), 1U);
  const MeasuredStep& step = measurement.steps.front();
  EXPECT_EQ(step.kind, MeasuredStep::Kind::Kernel);
  EXPECT_EQ(step.name, "kernel0");
  EXPECT_EQ(step.sources, std::vector<std::string>{"%y"});
  EXPECT_EQ(step.reads, (std::vector<std::string>{"f32[64,64]", "f32[64,64]"}));
  EXPECT_EQ(step.writes, std::vector<std::string>{"f32[64,64]"});
  EXPECT_EQ(step.flops, 64 * 64);
  EXPECT_EQ(step.bytes, 3 * 64 * 64 * 4);
  EXPECT_EQ(step.constant_bytes, 0);
  EXPECT_EQ(step.seconds.size(), 5U);
  EXPECT_GT(step.typical, 0);
  EXPECT_GT(step.at_least, 0);
  EXPECT_EQ(measurement.whole.flops, step.flops);
  EXPECT_EQ(measurement.whole.bytes, step.bytes);
  EXPECT_EQ(measurement.before_steps.size(), 5U);
}

// On a device that says of each kernel that it takes a second.
TEST_F(Measure, OnAGpu) {
  const std::unique_ptr<Graph> graph = parse(R"(
    graph main(%x: f32[64,64]) {
      %a = relu(%x)
      %i = nonzero(%a)
      return %a, %i
    })");
  const ExplainedProgram compiled = compile_explained(*graph, for_gpu());
  const Measurement measurement =
      measure(*compiled.executor, compiled.fusion, sample_inputs(*graph), this_machine(), {.seconds = 0});
  ASSERT_TRUE(measurement.gpu);
  EXPECT_EQ(measurement.gpu->name, "sm_90");
  EXPECT_EQ(measurement.ceilings.flops_per_second, peak_flops(*measurement.gpu));
  ASSERT_EQ(measurement.ceilings.bandwidths.size(), 2U);
  EXPECT_EQ(measurement.ceilings.bandwidths.back().bytes_per_second, 2.0 * (256 << 20));
  EXPECT_EQ(measurement.ceilings.bandwidth_for(1000),
            measurement.ceilings.bandwidths.front().bytes_per_second);
  std::vector<std::string> names;
  for (const MeasuredStep& step : measurement.steps)
    names.push_back(step.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"copy to the device", "kernel0", "copy to the host", "nonzero"}));
  const MeasuredStep& kernel = measurement.steps[1];
  EXPECT_EQ(kernel.typical, 1);
  EXPECT_GT(kernel.at_least, 0);
  ASSERT_EQ(kernel.launches.size(), 1U);
  EXPECT_EQ(kernel.launches.front().threads, 32);
  EXPECT_EQ(measurement.occupancy(kernel.launches.front()), 0.25);
  for (size_t step : {0, 2, 3}) {  // the host's, of which the ceilings of the GPU say nothing
    EXPECT_EQ(measurement.steps[step].at_least, 0);
    EXPECT_FALSE(measurement.steps[step].bound);
    EXPECT_TRUE(measurement.steps[step].launches.empty());
  }
  EXPECT_EQ(measurement.seconds_of(MeasuredStep::Kind::Kernel), 1);
  EXPECT_GT(measurement.seconds_of(MeasuredStep::Kind::Copy), 0);
}

TEST_F(Measure, TheTimesOfTypicalRunsAddUp) {
  const Measurement measurement = measurement_of(R"(
    graph main(%x: f32[64,64], %w: f32[64,64]) {
      %p = matmul(%x, %w)
      %i = nonzero(%p)
      return %p, %i
    })");
  ASSERT_EQ(measurement.steps.size(), 2U);
  double sum = measurement.outside_steps();
  EXPECT_GT(sum, 0);
  for (const MeasuredStep& step : measurement.steps)
    sum += step.typical;
  EXPECT_NEAR(sum, measurement.whole.typical, 1e-12);
}

TEST_F(Measure, TypicalRunsAreTheMiddleHalf) {
  Measurement measurement;
  measurement.whole.seconds = {9, 2, 3, 1, 4, 100, 5};
  EXPECT_EQ(measurement.typical_runs(), (std::vector<size_t>{1, 2, 4, 6, 0}));
  EXPECT_EQ(measurement.median_run(), 4U);
  measurement.whole.seconds.push_back(0);
  EXPECT_EQ(measurement.typical_runs(), (std::vector<size_t>{1, 2, 4, 6}));
  measurement.whole.seconds = {7};
  EXPECT_EQ(measurement.typical_runs(), std::vector<size_t>{0});
}

// What takes far longer than starting a step does is slow for a reason of its own.
TEST_F(Measure, OnlyWhatIsShortIsOverhead) {
  EXPECT_EQ(bound_of(2e-6, 1e-6, 9e-6, 0), Bound::Compute);
  EXPECT_EQ(bound_of(1e-6, 2e-6, 9e-6, 0), Bound::Memory);
  EXPECT_EQ(bound_of(1e-7, 2e-7, 9e-6, 0), Bound::Overhead);
  EXPECT_EQ(bound_of(1e-7, 2e-7, 2e-5, 0), Bound::Code);
  EXPECT_EQ(bound_of(1e-7, 2e-7, 2e-5, 5e-6), Bound::Overhead);  // many threads take longer to start
  EXPECT_EQ(bound_of(1e-4, 2e-4, 1e-3, 0), Bound::Memory);
  EXPECT_EQ(bound_of(1e-5, 2e-5, 1e-3, 0), Bound::Code);
}

TEST_F(Measure, KnowsSizesThatOnlyRunningTells) {
  const Measurement measurement = measurement_of(R"(
    graph main(%x: f32[8]) {
      %i = nonzero(%x)
      %f = cast(%i, to=f32)
      %y = mul(%f, %f)
      return %y
    })");
  ASSERT_EQ(measurement.steps.size(), 2U);
  const MeasuredStep &host = measurement.steps[0], &kernel = measurement.steps[1];
  EXPECT_EQ(host.kind, MeasuredStep::Kind::Host);
  EXPECT_EQ(host.name, "nonzero");
  EXPECT_EQ(host.flops, std::nullopt);  // not 0: nobody counted them
  EXPECT_EQ(host.bytes, 8 * 4 + 8 * 8);
  EXPECT_EQ(kernel.bytes, 8 * 8 + 8 * 4);
  EXPECT_GE(kernel.flops, 8);
}

TEST_F(Measure, RunsNoMoreOftenThanItHasRoomFor) {
  const Measurement measurement = measurement_of("graph(%x: f32[4]) { %y = relu(%x) return %y }", 1, 1e300);
  EXPECT_EQ(measurement.runs(), 100'000U);
}

TEST_F(Measure, NoStepTakesNoTime) {
  const Measurement measurement = measurement_of(R"(
    graph main(%x: f32[2,2]) {
      %shape = constant(value=i64[1] {4})
      %y = reshape(%x, %shape)
      return %y
    })");
  for (const MeasuredStep& step : measurement.steps)
    for (double seconds : step.seconds)
      EXPECT_GE(seconds, 1e-9);
}

TEST_F(Measure, KnowsViewsAndConstants) {
  const Measurement measurement = measurement_of(R"(
    graph main(%x: f32[2,2]) {
      %w: f32[2,2] = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
      %a = matmul(%x, %w)
      %shape = constant(value=i64[1] {4})
      %y = reshape(%a, %shape)
      return %y
    })");
  double constants = 0;
  int views = 0;
  for (const MeasuredStep& step : measurement.steps) {
    constants += step.constant_bytes;
    views += step.kind == MeasuredStep::Kind::View ? 1 : 0;
  }
  EXPECT_EQ(constants, 4 * 4);
  EXPECT_EQ(views, 1);
}

}  // namespace
}  // namespace tenon
