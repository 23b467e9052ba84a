// prepare_test.cpp — weights that are computed and laid out before the first run.
#include "runtime/prepare.h"

#include "compiler/expect_compiled.h"
#include "compiler/print_program.h"

namespace tenon {
namespace {

using runtime::Executor;
using runtime::Prepare;

std::unique_ptr<Graph> scaled_weights() {
  return read(R"(graph g(%x: f32[20,512], %w1: f32[512], %w: f32[512,256]) {
    %1 = unsqueeze(%w1, axes=[1])
    %2 = mul(%w, %1)
    %3 = matmul(%x, %2)
    return %3
  })");
}

TEST(Prepare, ComputesWeightsByAProgramOfItsOwn) {
  const std::unique_ptr<Executor> executor = compile(*scaled_weights(), without_cache());
  const Prepare& prepare = executor->program().prepare;
  ASSERT_EQ(prepare.programs.size(), 1);
  EXPECT_TRUE(prepare.programs[0]->inputs.empty());
  EXPECT_EQ(prepare.steps.size(), 1);
  expect_as_evaluated(*scaled_weights());
}

TEST(Prepare, IsShownBeforeTheSteps) {
  const std::unique_ptr<Executor> executor = compile(*scaled_weights(), without_cache());
  const std::string text = compiler::print_program(executor->program(), {});
  EXPECT_TRUE(has(text, "  prepare {\n")) << text;
  EXPECT_TRUE(has(text, "pack_b[")) << text;
  EXPECT_TRUE(has(text, "](weights0.0)\n")) << text;
}

std::unique_ptr<Graph> narrow_weights() {
  return read(R"(graph g(%x: f32[20,64], %w: f32[64,48]) {
    %h = constant(value=f32[] {127.0})
    %0 = mul(%x, %h)
    %1 = add(%0, %h)
    %2 = cast(%1, to=u8)
    %3 = mul(%w, %h)
    %4 = cast(%3, to=i8)
    %5 = widening_matmul(%2, %4, accumulator=i32)
    return %5
  })");
}

TEST(Prepare, PacksWordsBeforePanels) {
  const std::unique_ptr<Executor> executor = compile(*narrow_weights(), without_cache());
  const std::string text = compiler::print_program(executor->program(), {});
  EXPECT_TRUE(has(text, " lanes] of vnni_pack[0](")) << text;
  expect_as_evaluated(*narrow_weights());
}

// The reference evaluator computes them where there is no device.
TEST(Prepare, GivesTheSameWithoutADevice) {
  const compiler::ScheduledGraph scheduled = schedule_graph(*scaled_weights(), without_cache());
  EXPECT_TRUE(scheduled.program->prepare.programs.empty());
  EXPECT_EQ(std::ranges::count_if(scheduled.constants, [](const Tensor& each) { return each.count() > 0; }),
            1);
}

// What cannot be computed is an error when it is run, and where it is not, as in a loop of no iterations,
// none.
TEST(Prepare, FailsWhenConstantsAreNeededThatCannotBeComputed) {
  constexpr std::string_view kBody = R"({
      %go = constant(value=bool[] {1})
      %a = constant(value=i32[2] {8,8})
      %b = constant(value=i32[2] {2,0})
      %c = div(%a, %b)
      %y = add(%x, %c)
      return %go, %y
    })";
  for (const int trips : {0, 1}) {
    const auto graph =
        read(fmt::format("graph g(%z: i32[2]) {{ %n = constant(value=i64[] {{{}}}) %0 = while(%n, "
                         "carried=[%z]) body(%i: i64[], %x: "
                         "i32[2]) {} return %0 }}",
                         trips, kBody));
    const std::unique_ptr<runtime::Executor> program = compile(*graph, without_cache());
    const Data inputs = {Tensor::of<int32_t>({1, 2})};
    if (trips == 0)
      EXPECT_EQ(program->run(inputs).front().tensor().data<int32_t>()[1], 2);
    else
      EXPECT_THROW(program->run(inputs), UserError);
  }
}

}  // namespace
}  // namespace tenon
