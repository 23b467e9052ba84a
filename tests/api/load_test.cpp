// Models and programs made, and described, through the C interface.
#include "api/c_interface.h"
#include "tensor/tensor.h"

namespace tenon {
namespace {

TEST(Load, WhatIsNoModelIsRefused) {
  tenon_model* model = nullptr;
  EXPECT_EQ(tenon_load("none.onnx", &model), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "cannot open none.onnx: No such file or directory");
  EXPECT_EQ(tenon_load(nullptr, &model), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "model_name is NULL");
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(tenon_load("builtin:tiny", nullptr), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "model is NULL");
}

// Whatever asks a model or program that is not there.
TEST(Load, RefusesNull) {
  const auto expect_null = [](std::string_view name) {
    EXPECT_EQ(tenon_error_message(), fmt::format("{} is NULL", name));
    tenon_model* none = nullptr;
    tenon_load("none.onnx", &none);  // another message, lest this one stays
  };
  tenon_model* model = nullptr;
  ASSERT_EQ(tenon_load("builtin:tiny", &model), TENON_OK);
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_bind(nullptr, "n", 1), TENON_USER_ERROR);
  expect_null("model");
  EXPECT_EQ(tenon_bind(model, nullptr, 1), TENON_USER_ERROR);
  expect_null("dimension");
  EXPECT_EQ(tenon_compile(nullptr, nullptr, &program), TENON_USER_ERROR);
  expect_null("model");
  EXPECT_EQ(tenon_compile(model, nullptr, nullptr), TENON_USER_ERROR);
  expect_null("program");
  EXPECT_EQ(tenon_count_inputs(nullptr), 0U);
  expect_null("program");
  EXPECT_EQ(tenon_count_outputs(nullptr), 0U);
  expect_null("program");
  EXPECT_EQ(tenon_input(nullptr, 0), nullptr);
  expect_null("program");
  EXPECT_EQ(tenon_output(nullptr, 0), nullptr);
  expect_null("program");
  EXPECT_EQ(tenon_run(nullptr, nullptr, 0, nullptr, 0, nullptr), TENON_USER_ERROR);
  expect_null("program");
  EXPECT_EQ(tenon_run(program, nullptr, 1, nullptr, 0, nullptr), TENON_USER_ERROR);
  expect_null("inputs");
  EXPECT_EQ(tenon_run(program, nullptr, 0, nullptr, 1, nullptr), TENON_USER_ERROR);
  expect_null("outputs");
  tenon_free_model(nullptr);
  tenon_free_program(nullptr);
  tenon_free_model(model);
}

TEST(Compile, DescribesInputsAndOutputs) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n,2], %k: i64[]) {
    %0 = shape(%x)
    %1 = add(%0, %k)
    return %1 as "sizes"
  })");
  ASSERT_EQ(tenon_count_inputs(program.get()), 2U);
  ASSERT_EQ(tenon_count_outputs(program.get()), 1U);
  const tenon_port& x = *tenon_input(program.get(), 0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, TENON_F32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.sizes[0], -1);
  EXPECT_EQ(x.sizes[1], 2);
  EXPECT_EQ(tenon_input(program.get(), 1)->rank, 0);
  EXPECT_EQ(tenon_input(program.get(), 2), nullptr);
  EXPECT_STREQ(tenon_output(program.get(), 0)->name, "sizes");
  EXPECT_EQ(tenon_output(program.get(), 0)->dtype, TENON_I64);
  EXPECT_EQ(tenon_output(program.get(), 1), nullptr);
}

TEST(Compile, WhatCannotBePassedIsRefused) {
  const ModelHandle model = load_text("graph main(%x: str[2]) { return %x }");
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_compile(model.get(), nullptr, &program), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "input x is str[2], which cannot be passed through the C interface");
  EXPECT_EQ(program, nullptr);
}

TEST(Compile, SizesThatCannotBeCountedAreRefused) {
  const ModelHandle model =
      load_text("graph main(%x: f64[1073741824,1073741824]) { %0 = reduce_max(%x, axes=[0,1]) return %0 }");
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_compile(model.get(), nullptr, &program), TENON_USER_ERROR);
  EXPECT_EQ(tenon_error_message(),
            fmt::format("input x: f64[1073741824,1073741824] needs 8 bytes for each of "
                        "1152921504606846976 elements, but this machine has {} bytes of memory",
                        memory_limit()));
}

TEST(Compile, OptionsThatAreNoneAreRefused) {
  const ModelHandle model = load_text("graph main(%x: f32[2]) { %0 = neg(%x) return %0 }");
  const auto error_with = [&](int64_t numerics, int64_t precision) {
    tenon_program* program = nullptr;
    const tenon_compile_options options{.size = sizeof options, .numerics = numerics, .precision = precision};
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_USER_ERROR);
    return std::string(tenon_error_message());
  };
  EXPECT_EQ(error_with(3, 0), "numerics cannot be 3");
  EXPECT_EQ(error_with(0, 2), "precision cannot be 2");
  EXPECT_EQ(error_with(TENON_NUMERICS_STRICT, TENON_PRECISION_BF16),
            "precision bf16 rounds what strict numerics leave as it is");
}

// 1 + 2^-10 is not a bf16.
TEST(Compile, PrecisionDecidesHowProductsAreRounded) {
  const ModelHandle model = load_text(R"(graph main(%x: f32[1,2]) {
    %w = constant(value=f32[2,1] {1, 1})
    %0 = matmul(%x, %w)
    return %0
  })");
  const auto product_with = [&](tenon_precision precision) {
    tenon_program* program = nullptr;
    const tenon_compile_options options{
        .size = sizeof options, .numerics = TENON_NUMERICS_DEFAULT, .precision = precision};
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_OK) << tenon_error_message();
    const ProgramHandle owned(program);
    Array<float> x{{1 + 0x1p-10F, 0}, {1, 2}}, y{{0}, {1, 1}};
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
    EXPECT_EQ(run(owned, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
    return y.elements[0];
  };
  EXPECT_EQ(product_with(TENON_PRECISION_F32), 1 + 0x1p-10F);
  EXPECT_EQ(product_with(TENON_PRECISION_BF16), 1);
}

// Under strict numerics x + 0.0 stays, which turns -0 into 0.
TEST(Compile, NumericsDecideWhatTheOptimiserDoes) {
  const ModelHandle model = load_text(R"(graph main(%x: f32[1]) {
    %c = constant(value=f32[] {0})
    %0 = add(%x, %c)
    return %0
  })");
  const auto signbit_with = [&](tenon_numerics numerics) {
    tenon_program* program = nullptr;
    const tenon_compile_options options{
        .size = sizeof options, .numerics = numerics, .precision = TENON_PRECISION_F32};
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_OK) << tenon_error_message();
    const ProgramHandle owned(program);
    Array<float> x{{-0.0F}, {1}}, y{{1}, {1}};
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
    EXPECT_EQ(run(owned, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
    return std::signbit(y.elements[0]);
  };
  EXPECT_FALSE(signbit_with(TENON_NUMERICS_STRICT));
  EXPECT_TRUE(signbit_with(TENON_NUMERICS_FAST));
}

TEST(Names, OfDtypes) {
  EXPECT_STREQ(tenon_dtype_name(TENON_BF16), "bf16");
  EXPECT_STREQ(tenon_dtype_name(TENON_C128), "c128");
  EXPECT_EQ(tenon_dtype_name(23), nullptr);  // strings
  EXPECT_EQ(tenon_dtype_name(26), nullptr);
  EXPECT_EQ(tenon_dtype_name(-1), nullptr);
}

}  // namespace
}  // namespace tenon
