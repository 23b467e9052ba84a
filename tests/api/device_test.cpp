// Programs for a device with memory of its own, on tensors there and on the host, in streams of the caller's.
// The device interprets kernels, and does nothing in a stream before that is waited for.
#include <thread>

#include "api/default_context.h"
#include "api/device_memory.h"
#include "api/model.h"
#include "compiler/compile.h"
#include "compiler/separate_device.h"

namespace tenon {
namespace {

using Floats = Array<float>;
constexpr tenon_device kCpu = {TENON_DEVICE_CPU, 0}, kGpu = {TENON_DEVICE_CUDA, 0};

ProgramHandle compile_for_device(const std::string& text) {
  compiler::CompileContext context = api::default_context({.threads = 1, .device = "cpu"});
  context.cache = std::nullopt;
  return ProgramHandle(new tenon_program(
      compiler::compile(*load_text(text)->graph, on_separate_device(std::move(context))), kGpu));
}

int count_workspaces(const ProgramHandle& program) {
  return dynamic_cast<const SeparateDevice&>(program->program->device()).workspaces;
}

// A tensor that is in either memory.
class Placed {
 public:
  Placed(const ProgramHandle& program, tenon_device where, std::vector<float> elements,
         const std::vector<int64_t>& sizes)
      : where_(where), on_device_(program, elements, sizes), on_host_{std::move(elements), sizes} {}

  tenon_tensor tensor() { return is_on_host() ? on_host_.tensor(TENON_F32) : on_device_.tensor(where_); }
  std::vector<float> elements() const { return is_on_host() ? on_host_.elements : on_device_.elements(); }

 private:
  bool is_on_host() const { return where_.type == TENON_DEVICE_CPU; }

  tenon_device where_;
  DeviceFloats on_device_;
  Floats on_host_;
};

// exp(2x) by two kernels, of fixed sizes and of sizes that inputs decide.
class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  const ProgramHandle program_ = compile_for_device(
      fmt::format("graph main(%x: f32[{}]) {{ %0 = add(%x, %x) %1 = reduce_sum(%0, axes=[1]) return %0 as "
                  "\"y\", %1 as \"sum\" }}",
                  GetParam()));
};

INSTANTIATE_TEST_SUITE_P(Sizes, OnDevice, testing::Values("2,3", "n,3"));

TEST_P(OnDevice, TakesTensorsInEitherMemory) {
  for (int run = 0; run < 3; ++run)  // from the second on, kernels are launched together
    for (const tenon_device of_x : {kCpu, kGpu})
      for (const tenon_device of_y : {kCpu, kGpu})
        for (const tenon_device of_sum : {kCpu, kGpu}) {
          Placed x(program_, of_x, {1, 2, 3, 4, 5, static_cast<float>(run)}, {2, 3});
          Placed y(program_, of_y, std::vector<float>(6), {2, 3}), sum(program_, of_sum, {0, 0}, {2});
          ASSERT_EQ(run_in(nullptr, program_, {x.tensor()}, {y.tensor(), sum.tensor()}), TENON_OK)
              << tenon_error_message();
          EXPECT_EQ(y.elements(), (std::vector<float>{2, 4, 6, 8, 10, 2 * static_cast<float>(run)}));
          EXPECT_EQ(sum.elements(), (std::vector<float>{12, 18 + 2 * static_cast<float>(run)}));
        }
}

TEST_P(OnDevice, ReturnsBeforeARunInAStreamHasEnded) {
  PendingStream stream;
  std::vector<std::unique_ptr<Placed>> all;
  const int made_before = count_workspaces(program_);
  for (int run = 0; run < 3; ++run) {  // each after the other, with the same memory
    const auto number = static_cast<float>(run);
    Placed& x = *all.emplace_back(std::make_unique<Placed>(
        program_, run == 1 ? kCpu : kGpu, std::vector<float>(6, number), std::vector<int64_t>{2, 3}));
    Placed& y = *all.emplace_back(
        std::make_unique<Placed>(program_, kGpu, std::vector<float>(6, -1), std::vector<int64_t>{2, 3}));
    Placed& sum = *all.emplace_back(
        std::make_unique<Placed>(program_, kGpu, std::vector<float>(2, -1), std::vector<int64_t>{2}));
    ASSERT_EQ(run_in(&stream, program_, {x.tensor()}, {y.tensor(), sum.tensor()}), TENON_OK)
        << tenon_error_message();
    EXPECT_EQ(y.elements(), std::vector<float>(6, -1));
  }
  EXPECT_FALSE(stream.is_idle());
  EXPECT_EQ(count_workspaces(program_) - made_before, 9 + 1);  // of the tensors, and of all runs
  stream.synchronize();
  for (size_t run = 0; run < 3; ++run) {
    const auto number = static_cast<float>(run);
    EXPECT_EQ(all[3 * run + 1]->elements(), std::vector<float>(6, 2 * number));
    EXPECT_EQ(all[3 * run + 2]->elements(), std::vector<float>(2, 6 * number));
  }
  EXPECT_EQ(tenon_synchronize(program_.get()), TENON_OK);
}

TEST_P(OnDevice, SynchronizesAllStreams) {
  PendingStream first, second;
  const std::vector<float> nothing(6, -1);
  Placed a(program_, kGpu, std::vector<float>(6, 1), {2, 3}),
      b(program_, kGpu, std::vector<float>(6, 2), {2, 3});
  Placed y(program_, kGpu, nothing, {2, 3}), z(program_, kGpu, nothing, {2, 3});
  Placed sum_y(program_, kGpu, {0, 0}, {2}), sum_z(program_, kGpu, {0, 0}, {2});
  ASSERT_EQ(run_in(&first, program_, {a.tensor()}, {y.tensor(), sum_y.tensor()}), TENON_OK);
  ASSERT_EQ(run_in(&second, program_, {b.tensor()}, {z.tensor(), sum_z.tensor()}), TENON_OK);
  second.synchronize();
  EXPECT_EQ(y.elements(), nothing);
  EXPECT_EQ(sum_z.elements(), (std::vector<float>{12, 12}));
  EXPECT_EQ(tenon_synchronize(program_.get()), TENON_OK);
  EXPECT_EQ(sum_y.elements(), (std::vector<float>{6, 6}));
}

TEST_P(OnDevice, WaitsForOutputsOnTheHost) {
  PendingStream stream;
  Placed x(program_, kGpu, std::vector<float>(6, 1), {2, 3});
  Placed y(program_, kCpu, std::vector<float>(6), {2, 3}), sum(program_, kGpu, {0, 0}, {2});
  ASSERT_EQ(run_in(&stream, program_, {x.tensor()}, {y.tensor(), sum.tensor()}), TENON_OK);
  EXPECT_TRUE(stream.is_idle());
  EXPECT_EQ(y.elements(), std::vector<float>(6, 2));
  EXPECT_EQ(sum.elements(), (std::vector<float>{6, 6}));
}

TEST_P(OnDevice, RunsInStreamsOfSeveralThreads) {
  const auto work = [&](float number) {
    PendingStream stream;
    for (int run = 0; run < 20; ++run) {
      Placed x(program_, kGpu, std::vector<float>(6, number), {2, 3});
      Placed y(program_, kGpu, std::vector<float>(6), {2, 3}), sum(program_, kGpu, {0, 0}, {2});
      ASSERT_EQ(run_in(&stream, program_, {x.tensor()}, {y.tensor(), sum.tensor()}), TENON_OK);
      stream.synchronize();
      ASSERT_EQ(sum.elements(), std::vector<float>(2, 6 * number));
    }
    ASSERT_EQ(tenon_synchronize(program_.get()), TENON_OK);  // the stream is gone afterwards
  };
  std::thread other(work, 1.F);
  work(2);
  other.join();
}

TEST_P(OnDevice, RefusesMemoryThatDoesNotFit) {
  Placed x(program_, kGpu, std::vector<float>(6, 1), {2, 3}),
      y = Placed(program_, kGpu, std::vector<float>(8), {2, 3});
  Placed sum(program_, kGpu, {0, 0}, {2});
  const auto error_of = [&](const tenon_tensor& input, const tenon_tensor& output) {
    EXPECT_EQ(run_in(nullptr, program_, {input}, {output, sum.tensor()}), TENON_USER_ERROR);
    return std::string(tenon_error_message());
  };
  tenon_tensor bad = x.tensor();
  bad.device.index = 1;
  EXPECT_EQ(error_of(bad, y.tensor()), "input x is on cuda:1, but the program runs on cuda:0");
  bad.device = kCpu;
  bad.device.index = 3;
  EXPECT_EQ(error_of(bad, y.tensor()), "input x is on cpu:3, but the program runs on cuda:0");
  Floats host{std::vector<float>(64), {2, 3}};
  bad = host.tensor(TENON_F32);
  bad.device = kGpu;
  bad.data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(bad.data) + 63) / 64 * 64);
  EXPECT_EQ(error_of(bad, y.tensor()), "input x is said to be on cuda:0, but its data is memory of the host");
  EXPECT_EQ(error_of(x.tensor(), bad),
            "output y is said to be on cuda:0, but its data is memory of the host");
  bad = y.tensor();
  bad.data = static_cast<std::byte*>(bad.data) + 4;
  EXPECT_EQ(error_of(x.tensor(), bad), "the data of output y must be aligned to 16 bytes");
  const std::vector<int64_t> strides = {1, 2};
  bad = x.tensor();
  bad.strides = strides.data();
  EXPECT_EQ(error_of(bad, y.tensor()),
            "input x has the strides [1,2], but tensors on cuda:0 must be contiguous");
  bad = y.tensor();
  bad.strides = strides.data();
  EXPECT_EQ(error_of(x.tensor(), bad),
            "output y has the strides [1,2], but tensors on cuda:0 must be contiguous");
  EXPECT_EQ(error_of(x.tensor(), x.tensor()), "output y overlaps input x");
  bad = sum.tensor();
  bad.data = static_cast<std::byte*>(y.tensor().data) + 16;
  EXPECT_EQ(run_in(nullptr, program_, {x.tensor()}, {y.tensor(), bad}), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "output sum overlaps output y");
}

// What a kernel refuses in a run that had not ended.
TEST(RunsInStreams, SaySoWhenTheyAreSynchronized) {
  const ProgramHandle program = compile_for_device(R"(graph main(%x: f32[4], %i: i64[2]) {
    %0 = gather(%x, %i)
    return %0 as "y"
  })");
  PendingStream stream;
  Placed x(program, kGpu, {1, 2, 3, 4}, {4}), y(program, kGpu, {0, 0}, {2}), z(program, kGpu, {0, 0}, {2});
  Array<int64_t> far{{0, 9}, {2}}, good{{0, 3}, {2}};
  ASSERT_EQ(run_in(&stream, program, {x.tensor(), far.tensor(TENON_I64)}, {y.tensor()}), TENON_OK);
  ASSERT_EQ(run_in(&stream, program, {x.tensor(), good.tensor(TENON_I64)}, {z.tensor()}), TENON_OK);
  // A run that waits tells of its own elements alone.
  ASSERT_EQ(run_in(nullptr, program, {x.tensor(), good.tensor(TENON_I64)}, {y.tensor()}), TENON_OK);
  EXPECT_EQ(y.elements(), (std::vector<float>{1, 4}));
  EXPECT_EQ(tenon_synchronize(program.get()), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(),
               "node \"gather\": an index is out of range, or an integer is divided by zero");
  EXPECT_EQ(z.elements(), (std::vector<float>{1, 4}));
  EXPECT_EQ(tenon_synchronize(program.get()), TENON_OK);
  ASSERT_EQ(run_in(&stream, program, {x.tensor(), far.tensor(TENON_I64)}, {y.tensor()}), TENON_OK);
  stream.synchronize();
  ASSERT_EQ(run_in(nullptr, program, {x.tensor(), good.tensor(TENON_I64)}, {z.tensor()}), TENON_OK);
  EXPECT_EQ(tenon_synchronize(program.get()), TENON_USER_ERROR);
}

// A program that is freed waits for what is launched, as that uses its memory.
TEST(RunsInStreams, EndBeforeTheirProgramIsFreed) {
  PendingStream stream;
  ProgramHandle program = compile_for_device("graph main(%x: f32[4]) { %0 = exp(%x) return %0 }");
  Placed x(program, kGpu, {0, 0, 0, 0}, {4}), y(program, kGpu, {0, 0, 0, 0}, {4});
  ASSERT_EQ(run_in(&stream, program, {x.tensor()}, {y.tensor()}), TENON_OK);
  EXPECT_FALSE(stream.is_idle());
  program.reset();
  EXPECT_TRUE(stream.is_idle());
}

// Outputs of dynamic size, and those that are inputs, constants or each other.
TEST(DeviceOutputs, WhereverTheyComeFrom) {
  const ProgramHandle program = compile_for_device(R"(graph main(%x: f32[n], %m: f32[2]) {
    %0 = relu(%x)
    %1, %2, %3, %4 = unique(%0, axis=0)
    %5 = exp(%m)
    %6 = constant(value=f32[2] {5,6})
    return %1 as "unique", %m as "m", %5 as "a", %5 as "b", %6 as "c"
  })");
  for (const tenon_device of_inputs : {kCpu, kGpu})
    for (const tenon_device first : {kCpu, kGpu})
      for (const tenon_device second : {kCpu, kGpu}) {
        PendingStream stream;
        Placed x(program, of_inputs, {3, -1, 3, 2}, {4}), m(program, of_inputs, {0, 0}, {2});
        Placed unique(program, first, {0, 0, 0}, {1}), same(program, second, {7, 7}, {2});
        Placed a(program, first, {0, 0}, {2}), b(program, second, {0, 0}, {2}),
            c(program, first, {0, 0}, {2});
        ASSERT_EQ(run_in(&stream, program, {x.tensor(), m.tensor()},
                         {unique.tensor(), same.tensor(), a.tensor(), b.tensor(), c.tensor()}),
                  TENON_OK)
            << tenon_error_message();
        EXPECT_EQ(unique.elements(), (std::vector<float>{0, 2, 3}));
        EXPECT_EQ(same.elements(), (std::vector<float>{0, 0}));
        EXPECT_EQ(a.elements(), (std::vector<float>{1, 1}));
        EXPECT_EQ(b.elements(), (std::vector<float>{1, 1}));
        EXPECT_EQ(c.elements(), (std::vector<float>{5, 6}));
      }
}

}  // namespace
}  // namespace tenon
