// What programs give, and what they keep while they run, stays whole whatever happens to memory around it.
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using compiler::CompileContext;
using runtime::Executor;

namespace {

constexpr int64_t kCount = 300'000;  // so many that their memory goes back to the system once it is free

std::unique_ptr<Executor> compile_text(std::string_view text) {
  register_ops();
  CompileContext options = here();
  options.cache = std::nullopt;
  return compile(*parse(text), options);
}

Tensor counted() {
  Tensor tensor(DType::F32, {kCount});
  const std::span<float> elements = tensor.mutable_data<float>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(i);
  return tensor;
}

// The last output of a program, when the program, its inputs and its other outputs are gone.
Datum last_output(std::string_view text) { return compile_text(text)->run({counted()}).back(); }

// A sequence of one tensor, the numbers of the input times `factor`.
void expect_numbers(const Datum& sequence, float factor) {
  const Tensor& tensor = std::get<Sequence>(sequence).elements.at(0).tensor();
  ASSERT_EQ(tensor.count(), kCount);
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(tensor.data<float>()[static_cast<size_t>(i)], factor * static_cast<float>(i));
}

TEST(Memory, SequencesOutliveTheOutputsThatTheyHold) {
  expect_numbers(last_output(R"(graph g(%x: f32[300000]) {
    %0 = neg(%x)
    %1 = sequence_construct([%0])
    return %0, %1
  })"),
                 -1);
}

TEST(Memory, SequencesOutliveTheOutputsOfABranch) {
  expect_numbers(last_output(R"(graph g(%x: f32[300000]) {
    %first = constant(value=i64[] {0})
    %zero = gather(%x, %first)
    %test = cast(%zero, to=bool)
    %0, %1 = if(%test, [%x]) then(%a: f32[300000]) {
      %0 = abs(%a)
      %1 = sequence_construct([%0])
      return %0, %1
    } else(%a: f32[300000]) {
      %0 = neg(%a)
      %1 = sequence_construct([%0])
      return %0, %1
    }
    return %0, %1
  })"),
                 -1);
}

TEST(Memory, SequencesOutliveWhatTheyHoldViewsOf) {
  const std::string of_output = R"(graph g(%x: f32[300000]) {
    %shape = constant(value=i64[2] {2, 150000})
    %0 = neg(%x)
    %1 = reshape(%0, %shape)
    %2 = sequence_construct([%1])
    return %0, %2
  })";
  const std::string of_input = R"(graph g(%x: f32[300000]) {
    %shape = constant(value=i64[2] {2, 150000})
    %0 = reshape(%x, %shape)
    %1 = sequence_construct([%0])
    return %1
  })";
  expect_numbers(last_output(of_output), -1);
  expect_numbers(last_output(of_input), 1);
}

// %3 lies where %0 lay, whose memory is free once %2 is made of it; how large %2 is, only running tells.
TEST(Memory, ViewsOfSizesThatOnlyRunningTellsOutliveTheArena) {
  const std::unique_ptr<Executor> program = compile_text(R"(graph g(%x: f32[4]) {
    %0 = exp(%x)
    %places = nonzero(%x)
    %shape = shape(%places)
    %2 = reshape(%0, %shape)
    %k = constant(value=i64[] {4})
    %3 = neg(%0)
    %4, %5 = top_k(%3, %k)
    %6 = neg(%4)
    %7, %8 = top_k(%6, %k)
    return %7, %2
  })");
  const Data results = program->run({Tensor::of(std::vector<float>{1, 1, 1, 1})});
  const Tensor before = results[1].tensor();
  const float e = before.data<float>()[0];
  EXPECT_NEAR(e, 2.7182817F, 1e-5);
  program->run({Tensor::of(std::vector<float>{2, 2, 2, 2})});
  for (const float element : before.data<float>())
    EXPECT_EQ(element, e);
}

// The largest of all products of two numbers, from a table of them that is in memory in between.
std::string table(std::string_view dtype, std::string_view rows, std::string_view columns) {
  return fmt::format(R"(graph g(%x: {0}[1,1]) {{
    %s = constant(value=i64[2] {{{1}, 2}})
    %t = constant(value=i64[2] {{2, {2}}})
    %a = broadcast(%x, %s)
    %b = broadcast(%x, %t)
    %c = matmul(%a, %b)
    %d = reduce_max(%c, axes=[0])
    %e = reduce_max(%d, axes=[0])
    return %e
  }})",
                     dtype, rows, columns);
}

TEST(Memory, RefusesTablesThatCannotBeCounted) {
  const std::unique_ptr<Executor> program = compile_text(table("f64", "1073741824", "1073741824"));
  expect_error<UserError>(
      [&] {
        program->run({Tensor(DType::F64, {1, 1})});
      },
      fmt::format("f64[1073741824,1073741824] needs 8 bytes for each of "
                  "1152921504606846976 elements, but this machine has {} bytes of memory",
                  memory_limit()));
}

TEST(Memory, RefusesTablesThatAreLargerThanTheMachine) {
  const std::unique_ptr<Executor> program = compile_text(table("f32", "1073741824", "1073741824"));
  const int64_t needed = plan_memory(program->program(), {}).bytes;
  EXPECT_GE(needed, int64_t{1} << 62);
  expect_error<UserError>(
      [&] {
        program->run({Tensor(DType::F32, {1, 1})});
      },
      fmt::format("the model needs {} bytes of memory, but this machine has {}", needed, memory_limit()));
}

}  // namespace
}  // namespace tenon
