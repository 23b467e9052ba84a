#include "runtime/execution_plan.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using runtime::evaluate_size;
using runtime::ExecutionPlan;
using runtime::Home;
using runtime::KernelStep;
using runtime::Slot;
using runtime::Step;

namespace {

TEST(EvaluateSize, SaysWhatIsWrongWithASize) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(evaluate_size(2 * n, {{"n", 3}}), 6);
  expect_error<UserError>([&] { evaluate_size(2 * n, {}); },
                          "size 2*n is unbound: it does not follow from the inputs");
  expect_error<UserError>(
      [&] {
        evaluate_size(2 * n, {{"n", INT64_MAX}});
      },
      "size 2*n overflows 64 bits or divides by zero");
  expect_error<UserError>([&] { evaluate_size(Dim(INT64_MAX) * 2, {}); }, "a size overflows 64 bits");
}

TEST(ExecutionPlan, SaysThatASizeIsTooLarge) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse("graph(%x: f32[n]) { %y = neg(%x) return %y }");
  const Dim n = Dim::symbol("n");
  const std::vector<Slot> slots = {{.name = "x", .type = graph->input(0).type(), .home = Home::Input},
                                   {.name = "y", .type = graph->output_types()[0], .home = Home::Output}};
  const std::vector<Step> steps = {
      KernelStep{.name = "square",
                 .regions = {{.function = nullptr, .iterations = n * n, .scratch = 0}},
                 .reads = {0},
                 .writes = {1},
                 .sizes = {n},
                 .sources = {"y"}}};
  const ExecutionPlan planner(*graph, slots, steps, {1});
  EXPECT_EQ(planner.launch_of(0, *planner.plan({{"n", 3}}))->iterations(0), 9);
  expect_error<UserError>(
      [&] {
        planner.plan({{"n", int64_t{1} << 40}});
      },
      "size n*n overflows 64 bits or divides by zero");
}

}  // namespace
}  // namespace tenon
