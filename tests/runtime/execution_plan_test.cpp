#include "runtime/execution_plan.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace tenon {

using runtime::evaluate_size;
using runtime::ExecutionPlan;
using runtime::Home;
using runtime::KernelStep;

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
  const Dim n = Dim::symbol("n");
  const Type type = Type::tensor(DType::F32, {n});
  runtime::Program program;
  program.inputs = {{"x", type}};
  program.outputs = {1};
  program.slots = {{.name = "x", .type = type, .home = Home::Input},
                   {.name = "y", .type = type, .home = Home::Output}};
  program.steps = {KernelStep{.regions = {{.iterations = n * n, .scratch = 0}},
                              .reads = {0},
                              .writes = {1},
                              .sizes = {n},
                              .sources = {"y"}}};
  const ExecutionPlan planner(program);
  EXPECT_EQ(planner.launch_of(0, *planner.plan({{"n", 3}}))->iterations(0), 9);
  expect_error<UserError>(
      [&] {
        planner.plan({{"n", int64_t{1} << 40}});
      },
      "size n*n overflows 64 bits or divides by zero");
}

}  // namespace
}  // namespace tenon
