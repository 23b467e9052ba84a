#include "compiler/describe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using compiler::bytes_moved;
using compiler::compile;
using compiler::Needs;
using compiler::needs_of;
using compiler::sizes_of;
using runtime::Step;

namespace {

Needs needs(std::string_view graph, const Bindings& sizes = {}, bool fuse = true) {
  register_ops();
  return needs_of(compile(*parse(graph), {.target = this_machine(), .fuse = fuse})->program(), sizes);
}

TEST(NeedsOf, CountsBuffersOncePerStep) {
  constexpr std::string_view kChain = "graph(%x: f32[n,4]) { %a = relu(%x) %b = add(%a, %x) return %b }";
  EXPECT_EQ(needs(kChain, {{"n", 3}}).bytes_moved, 2 * 48);
  const Needs unfused = needs(kChain, {{"n", 3}}, false);
  EXPECT_EQ(unfused.kernels, 2);
  EXPECT_EQ(unfused.bytes_moved, 5 * 48);
  EXPECT_EQ(unfused.arena_bytes, 64);  // a, in whole cache lines
  EXPECT_EQ(unfused.arena_lower_bound, 64);
}

TEST(NeedsOf, LeavesOutWhatOnlyRunningTells) {
  const Needs unknown = needs("graph(%x: i64[8]) { %y = nonzero(%x) return %y }");
  EXPECT_EQ(unknown.host_steps, 1);
  EXPECT_EQ(unknown.bytes_moved, 64);  // x
  EXPECT_EQ(unknown.arena_bytes, 0);
}

TEST(BytesMoved, CountsEachStepByItself) {
  register_ops();
  const auto program = compile(*parse(R"(graph(%x: f32[n,4]) {
      %shape = constant(value=i64[1] {-1})
      %a = reshape(%x, %shape)
      %b = nonzero(%x)
      return %a, %b
    })"),
                               here());
  std::vector<int64_t> moved;
  for (const Step& step : program->program().steps)
    moved.push_back(bytes_moved(program->program(), step, {{"n", 3}}));
  std::sort(moved.begin(), moved.end());
  EXPECT_EQ(moved, (std::vector<int64_t>{0, 48}));  // a view moves nothing
}

TEST(NeedsOf, RefusesWhatCannotBeCounted) {
  constexpr std::string_view kExp = "graph(%x: f32[n,n]) { %y = exp(%x) return %y }";
  constexpr int64_t kLarge = int64_t{1} << 30;
  expect_error<UserError>(
      [&] {
        needs(kExp, {{"n", kLarge}});
      },
      "the model moves more bytes than can be counted");
  expect_error<UserError>(
      [&] {
        needs(kExp, {{"n", 2 * kLarge}});
      },
      fmt::format("f32[2147483648,2147483648] needs 4 bytes for each of "
                  "4611686018427387904 elements, but this machine has {} bytes of memory",
                  memory_limit()));
}

TEST(SizesOf, BindsWhatTheInputsHave) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse("graph(%x: f32[n,m], %y: f32[n]) { return %x }");
  EXPECT_EQ(
      sizes_of(compile(*graph, here())->program(), {Tensor(DType::F32, {2, 3}), Tensor(DType::F32, {2})}),
      (Bindings{{"n", 2}, {"m", 3}}));
}

TEST(Compile, TellsOfEachKernel) {
  register_ops();
  std::vector<int64_t> told;
  compile(*parse("graph(%x: f32[4], %y: f64[9]) { %a = relu(%x) %b = exp(%y) return %a, %b }"),
          {.target = this_machine(), .before_kernel = [&](int64_t kernels) { told.push_back(kernels); }});
  EXPECT_EQ(told, (std::vector<int64_t>{2, 2}));
}

}  // namespace
}  // namespace tenon
