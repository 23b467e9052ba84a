// backend_test.cpp — a second backend, written against the interfaces alone: its code is the text of a
// kernel, and its device interprets that.
#include "compiler/backend.h"

#include "compiler/expect_compiled.h"
#include "compiler/interpreting_device.h"
#include "schedule/cpu/schedule_kernel.h"

namespace tenon {
namespace {

const compiler::Backend kInterpreting = {.name = "interpreted",
                                         .schedule = schedule::schedule_kernel,
                                         .schedule_nest = [](const loops::Kernel& nest) { return nest; },
                                         .generate = kernel_as_text,
                                         .make_device = [](int) -> std::shared_ptr<runtime::Device> {
                                           return std::make_shared<InterpretingDevice>();
                                         }};

TEST(Backend, MayInterpretKernels) {
  compiler::CompileContext context = without_cache();
  context.backend = &kInterpreting;
  expect_as_evaluated(*read(R"(graph g(%x: f32[n,9], %w1: f32[9,7], %w2: f32[7]) {
    %0 = matmul(%x, %w1)
    %1 = add(%0, %w2)
    %2 = softmax(%1, axis=-1)
    return %2
  })"),
                      {{"n", 5}}, context);
}

// With weights that are computed first, and nested graphs.
TEST(Backend, IsThatOfThePreparePartAndOfNestedGraphs) {
  compiler::CompileContext context = without_cache();
  context.backend = &kInterpreting;
  expect_as_evaluated(*read(R"(graph g(%x: f32[3,4], %w1: f32[4], %w: f32[4,4]) {
    %1 = unsqueeze(%w1, axes=[1])
    %2 = mul(%w, %1)
    %3 = matmul(%x, %2)
    return %3
  })"),
                      {}, context);
}

TEST(Backend, OfThisCpuIsTheFirst) {
  EXPECT_EQ(compiler::default_backend().name, "cpu");
  EXPECT_EQ(&compiler::default_backend(), &compiler::backends().front());
}

}  // namespace
}  // namespace tenon
