// Tensors of the caller's that are strided, elsewhere, or of another version of the interface.
#include <complex>

#include "api/c_interface.h"

namespace tenon {
namespace {

using Floats = Array<float>;
using Sizes = std::vector<int64_t>;

// Doubles a matrix of 2 by 3 on strided memory.
class Strided : public testing::TestWithParam<const char*> {
 protected:
  tenon_status run_once() { return tenon_run(program_.get(), &x_, 1, &y_, 1, nullptr); }

  const ProgramHandle program_ = compile_text(
      fmt::format("graph main(%x: f32[{}]) {{ %0 = add(%x, %x) return %0 as \"y\" }}", GetParam()));
  Floats elements_{{1, 2, 3, 4, 5, 6}, {2, 3}}, results_{std::vector<float>(6), {2, 3}};
  tenon_tensor x_ = elements_.tensor(TENON_F32), y_ = results_.tensor(TENON_F32);
};

// Of fixed sizes, and of sizes that inputs decide.
INSTANTIATE_TEST_SUITE_P(Sizes, Strided, testing::Values("2,3", "n,3"));

TEST_P(Strided, ContiguousStridesAreTheDefault) {
  const Sizes strides = {3, 1};
  x_.strides = y_.strides = strides.data();
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_P(Strided, TransposedInput) {
  const Sizes strides = {1, 2};
  x_.strides = strides.data();
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{2, 6, 10, 4, 8, 12}));
}

TEST_P(Strided, InputFromTheEnd) {
  const Sizes strides = {-3, -1};
  x_.strides = strides.data();
  x_.data = &elements_.elements[5];
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{12, 10, 8, 6, 4, 2}));
}

TEST_P(Strided, BroadcastInput) {
  const Sizes strides = {0, 1};
  x_.strides = strides.data();
  x_.bytes = 3 * sizeof(float);
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{2, 4, 6, 2, 4, 6}));
}

// What lies between the elements of an output stays as it is.
TEST_P(Strided, OutputWithGaps) {
  results_.elements.assign(11, -1);
  y_ = results_.tensor(TENON_F32);
  const Sizes strides = {6, 2};
  y_.strides = strides.data();
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12}));
  EXPECT_EQ(results_.sizes, (Sizes{2, 3}));
}

TEST_P(Strided, TransposedOutputFromTheEnd) {
  const Sizes strides = {-1, -2};
  y_.strides = strides.data();
  y_.data = &results_.elements[5];
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(results_.elements, (std::vector<float>{12, 6, 10, 4, 8, 2}));
}

TEST_P(Strided, WhatReachesTooFarIsRefused) {
  const Sizes strides = {4, 1}, far = {INT64_MAX, INT64_MAX}, below = {INT64_MIN, 1};
  x_.strides = strides.data();
  EXPECT_EQ(run_once(), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "input x takes 28 bytes, but 24 are given");
  for (const Sizes& beyond : {far, below}) {
    x_.strides = beyond.data();
    EXPECT_EQ(run_once(), TENON_USER_ERROR);
    EXPECT_EQ(tenon_error_message(),
              fmt::format("the strides [{},{}] of input x reach further than can be counted", beyond[0],
                          beyond[1]));
  }
  x_.strides = nullptr;
  y_.strides = strides.data();
  EXPECT_EQ(run_once(), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "output y takes 28 bytes, but 24 are given");
}

TEST_P(Strided, OutputsWhoseElementsOverlapAreRefused) {
  for (const Sizes& strides : {Sizes{0, 1}, Sizes{1, 1}, Sizes{2, 1}, Sizes{-1, 1}}) {
    y_ = results_.tensor(TENON_F32);
    y_.strides = strides.data();
    EXPECT_EQ(run_once(), TENON_USER_ERROR);
    EXPECT_EQ(tenon_error_message(),
              fmt::format("the strides [{},{}] of output y place several elements at one address", strides[0],
                          strides[1]));
  }
}

TEST_P(Strided, OutputsWithAsManyStridesAsDimensions) {
  const Sizes strides = {1};
  y_.strides = strides.data();
  y_.rank = 1;
  y_.sizes = nullptr;
  EXPECT_EQ(run_once(), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "output y has 2 dimensions, but 1 strides are given");
}

// Sizes that only running tells.
TEST(StridedOutput, OfDynamicSizes) {
  const ProgramHandle program =
      compile_text("graph main(%x: f32[4]) { %0 = nonzero(%x) return %0 as \"y\" }");
  Floats x{{0, 5, 0, 6}, {4}};
  Array<int64_t> y{{-1, -1, -1}, {0, 0}};
  const Sizes strides = {3, 2};
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_I64)};
  outputs[0].strides = strides.data();
  ASSERT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  EXPECT_EQ(y.elements, (Sizes{1, -1, 3}));
  EXPECT_EQ(y.sizes, (Sizes{1, 2}));
}

TEST(StridedInput, OfEveryElementSize) {
  const auto reversed = [](const char* dtype, tenon_dtype number, auto zero) {
    using T = decltype(zero);
    const ProgramHandle program = compile_text(fmt::format("graph main(%x: {}[3]) {{ return %x }}", dtype));
    Array<T> x{{T(1), T(2), T(3)}, {3}}, y{std::vector<T>(3), {3}};
    const int64_t stride = -1;
    tenon_tensor input = x.tensor(number);
    input.data = &x.elements[2];
    input.strides = &stride;
    std::vector<tenon_tensor> outputs = {y.tensor(number)};
    EXPECT_EQ(run(program, {input}, outputs), TENON_OK) << tenon_error_message();
    EXPECT_EQ(y.elements, (std::vector<T>{T(3), T(2), T(1)})) << dtype;
  };
  reversed("u8", TENON_U8, uint8_t{});
  reversed("i16", TENON_I16, int16_t{});
  reversed("i32", TENON_I32, int32_t{});
  reversed("f64", TENON_F64, double{});
  reversed("c128", TENON_C128, std::complex<double>{});
}

TEST(StridedInput, WithoutElements) {
  const ProgramHandle program = compile_text("graph main(%x: f32[n,3]) { %0 = neg(%x) return %0 }");
  Floats x{{}, {0, 3}}, y{{}, {0, 0}};
  const Sizes strides = {7, 5};
  tenon_tensor input = x.tensor(TENON_F32);
  input.strides = strides.data();
  std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
  EXPECT_EQ(run(program, {input}, outputs), TENON_OK) << tenon_error_message();
  EXPECT_EQ(y.sizes, (Sizes{0, 3}));
}

// --- devices ---

TEST(Device, OthersThanTheCpuAreRefused) {
  const ProgramHandle program = compile_text("graph main(%x: f32[1]) { %0 = neg(%x) return %0 as \"y\" }");
  Floats x{{1}, {1}}, y = x;
  const auto error_with = [&](tenon_device of_x, tenon_device of_y) {
    tenon_tensor input = x.tensor(TENON_F32);
    input.device = of_x;
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
    outputs[0].device = of_y;
    EXPECT_EQ(run(program, {input}, outputs), TENON_USER_ERROR);
    return std::string(tenon_error_message());
  };
  EXPECT_EQ(error_with({TENON_DEVICE_CUDA, 2}, {}), "input x is on cuda:2, but the program runs on cpu:0");
  EXPECT_EQ(error_with({TENON_DEVICE_CPU, 1}, {}), "input x is on cpu:1, but the program runs on cpu:0");
  EXPECT_EQ(error_with({}, {TENON_DEVICE_CUDA, 0}), "output y is on cuda:0, but the program runs on cpu:0");
  EXPECT_EQ(error_with({7, 0}, {}),
            "input x is on device 0 of unknown type 7, but the program runs on cpu:0");
}

// --- versions ---

// A tensor as a later version may have it: tensors of one call lie that far apart.
struct LaterTensor {
  tenon_tensor known;
  int64_t more;
};

TEST(Versions, LaterTensorsAreTakenWhereWhatIsNewIsZero) {
  const ProgramHandle program =
      compile_text("graph main(%a: f32[1], %b: f32[1]) { %0 = sub(%a, %b) %1 = add(%a, %b) return %0, %1 }");
  Floats a{{5}, {1}}, b{{3}, {1}}, c = a, d = a;
  LaterTensor inputs[] = {{a.tensor(TENON_F32), 0}, {b.tensor(TENON_F32), 0}};
  LaterTensor outputs[] = {{c.tensor(TENON_F32), 0}, {d.tensor(TENON_F32), 0}};
  for (LaterTensor* tensor : {&inputs[0], &inputs[1], &outputs[0], &outputs[1]})
    tensor->known.struct_size = sizeof(LaterTensor);
  const auto run_once = [&] {
    return tenon_run(program.get(), &inputs[0].known, 2, &outputs[0].known, 2, nullptr);
  };
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  EXPECT_EQ(c.elements, std::vector<float>{2});
  EXPECT_EQ(d.elements, std::vector<float>{8});

  inputs[1].more = 1;
  EXPECT_EQ(run_once(), TENON_USER_ERROR);
  EXPECT_EQ(tenon_error_message(),
            fmt::format("input 1: a field that version {} does not have is not 0", tenon_version()));
  inputs[1].more = 0;
  outputs[1].known.struct_size = sizeof(tenon_tensor);
  EXPECT_EQ(run_once(), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "output 1: struct_size is 56, but that of output 0 is 64");
}

TEST(Versions, SizesThatNoTensorHasAreRefused) {
  const ProgramHandle program = compile_text("graph main(%x: f32[1]) { %0 = neg(%x) return %0 }");
  Floats x{{1}, {1}}, y = x;
  for (const size_t size : {size_t{0}, size_t{55}, size_t{4097}, SIZE_MAX}) {
    tenon_tensor input = x.tensor(TENON_F32);
    input.struct_size = size;
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
    EXPECT_EQ(run(program, {input}, outputs), TENON_USER_ERROR);
    EXPECT_EQ(
        tenon_error_message(),
        fmt::format("input 0: struct_size is {}, but must be what sizeof says, which is 56 in version {}",
                    size, tenon_version()));
  }
}

}  // namespace
}  // namespace tenon
