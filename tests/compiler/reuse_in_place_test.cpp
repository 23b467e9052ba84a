// Outputs of programs in the memory of their inputs.
#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using runtime::Executor;

namespace {

std::unique_ptr<Executor> compile_text(std::string_view text) {
  register_ops();
  compiler::CompileContext options = here();
  options.cache = std::nullopt;
  return compile(*parse(text), options);
}

// For each output, the inputs that it may lie over.
using Overwritable = std::vector<std::vector<size_t>>;
Overwritable overwritable(std::string_view text) { return compile_text(text)->program().overwritable; }

// As an optimiser takes a step: the parameter, and a mean of its gradients.
constexpr std::string_view kStep = R"(graph g(%p: f32[1000], %m: f32[1000], %g: f32[1000]) {
  %0 = constant(value=f32[] {0.9})
  %1 = constant(value=f32[] {0.1})
  %2 = mul(%m, %0)
  %3 = mul(%g, %1)
  %4 = add(%2, %3)
  %5 = mul(%4, %p)
  %6 = sub(%p, %5)
  return %6, %4
})";

Tensor counted(float first) {
  Tensor tensor(DType::F32, {1000});
  const std::span<float> elements = tensor.mutable_data<float>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = first + 0.01F * static_cast<float>(i);
  return tensor;
}

TEST(ReuseInPlace, StepsAreTakenWhereTheParametersAre) {
  const std::unique_ptr<Executor> step = compile_text(kStep);
  ASSERT_EQ(step->program().overwritable.size(), 2U);
  EXPECT_EQ(step->program().overwritable[0], (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(step->program().overwritable[1], (std::vector<size_t>{1, 2}));
  Tensor p = counted(1), m = counted(2);
  const Tensor g = counted(3);
  const Data want = step->run({p, m, g});
  const std::vector<void*> outputs = {p.mutable_bytes().data(), m.mutable_bytes().data()};
  const std::vector<const void*> inputs = {outputs[0], outputs[1], g.bytes().data()};
  step->run_into(inputs, outputs, {.threads = 2});
  EXPECT_TRUE(identical(p, want[0].tensor()));
  EXPECT_TRUE(identical(m, want[1].tensor()));
}

// Behind a product, the mean is stored last, since the parameter is made of what it lies over.
TEST(ReuseInPlace, StepsAreTakenBehindTheProductThatIsTheGradient) {
  const auto step = [](int64_t columns) {
    return fmt::format(R"(graph g(%p: f32[64,{0}], %m: f32[64,{0}], %x: f32[32,64], %dy: f32[32,{0}]) {{
  %0 = constant(value=f32[] {{0.9}})
  %1 = matmul(%x, %dy, transpose_a=true)
  %2 = mul(%m, %0)
  %3 = add(%1, %2)
  %4 = sub(%p, %3)
  return %4, %3
}})",
                       columns);
  };
  EXPECT_EQ(overwritable(step(64)), (Overwritable{{0}, {0, 1}}));
  // The last tile computes columns of the one before it again.
  EXPECT_EQ(overwritable(step(10)), (Overwritable{{}, {}}));
}

TEST(ReuseInPlace, NotWhereTheOldElementsAreReadAgain) {
  EXPECT_EQ(
      overwritable("graph g(%x: f32[1000], %w: f32[1000,1000]) {\n  %0 = neg(%x)\n  %1 = matmul(%x, %w)\n"
                   "  return %0, %1\n}"),
      (Overwritable{{}, {}}));
  EXPECT_EQ(overwritable("graph g(%x: f32[1000]) {\n  %0 = neg(%x)\n  return %0, %x\n}"),
            (Overwritable{{}, {}}));
}

TEST(ReuseInPlace, NotWhereOtherElementsAreRead) {
  EXPECT_EQ(
      overwritable("graph g(%x: f32[32,32]) {\n  %0 = transpose(%x, permutation=[1,0])\n  %1 = add(%x, %0)\n"
                   "  return %1\n}"),
      (Overwritable{{}}));
  EXPECT_EQ(overwritable("graph g(%x: f32[64]) {\n  %0 = softmax(%x, axis=0)\n  return %0\n}"),
            (Overwritable{{}}));
}

}  // namespace
}  // namespace tenon
