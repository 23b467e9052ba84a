// Programs made, and described, through the C interface.
#include "api/c_interface.h"
#include "tensor/tensor.h"

namespace tenon {
namespace {

TEST(Compile, DescribesInputsAndOutputs) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n,2], %k: i64[]) {
    %0 = shape(%x)
    %1 = add(%0, %k)
    return %1 as "sizes"
  })");
  ASSERT_EQ(tenon_program_count_inputs(program.get()), 2U);
  ASSERT_EQ(tenon_program_count_outputs(program.get()), 1U);
  const tenon_port& x = *tenon_program_input(program.get(), 0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, TENON_F32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.sizes[0], -1);
  EXPECT_EQ(x.sizes[1], 2);
  EXPECT_EQ(tenon_program_input(program.get(), 1)->rank, 0);
  EXPECT_EQ(tenon_program_input(program.get(), 2), nullptr);
  EXPECT_STREQ(tenon_program_output(program.get(), 0)->name, "sizes");
  EXPECT_EQ(tenon_program_output(program.get(), 0)->dtype, TENON_I64);
  EXPECT_EQ(tenon_program_output(program.get(), 1), nullptr);
}

// --- options ---

tenon_compile_options default_options() {
  tenon_compile_options options{};
  options.struct_size = sizeof options;
  return options;
}

std::string error_of_compile(const char* text, const tenon_compile_options& options) {
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_compile(load_text(text).get(), &options, &program), TENON_USER_ERROR);
  EXPECT_EQ(program, nullptr);
  return tenon_error_message();
}

constexpr const char* kRows = "graph main(%x: f32[n,2], %y: f32[m,2]) { %0 = neg(%x) return %0 as \"z\" }";

TEST(Compile, DimensionsOfTheOptionsAreBoundForOneProgram) {
  const ModelHandle model = load_text(kRows);
  const tenon_dimension sizes[] = {{"n", 3}, {"m", 4}};
  tenon_compile_options options = default_options();
  options.dimensions = sizes;
  options.dimension_count = 2;
  tenon_program* program = nullptr;
  ASSERT_EQ(tenon_compile(model.get(), &options, &program), TENON_OK) << tenon_error_message();
  const ProgramHandle owned(program);
  EXPECT_STREQ(tenon_program_input(program, 0)->type, "f32[3,2]");
  EXPECT_STREQ(tenon_program_input(program, 1)->type, "f32[4,2]");
  EXPECT_STREQ(tenon_model_input(model.get(), 0)->type, "f32[n,2]");
}

TEST(Compile, DimensionsOfTheOptionsThatDoNotFitAreRefused) {
  tenon_compile_options options = default_options();
  options.dimension_count = 1;
  EXPECT_EQ(error_of_compile(kRows, options), "dimensions is NULL");
  tenon_dimension size = {"k", 3};
  options.dimensions = &size;
  EXPECT_EQ(error_of_compile(kRows, options), "no input has a dimension k");
  size = {"n", -3};
  EXPECT_EQ(error_of_compile(kRows, options), "the dimension n cannot be -3");
  size.name = nullptr;
  EXPECT_EQ(error_of_compile(kRows, options), "the name of a dimension is NULL");
}

TEST(Compile, ThreadsThatCannotBeAreRefused) {
  tenon_compile_options options = default_options();
  options.threads = 1025;
  EXPECT_EQ(error_of_compile(kRows, options), "a program runs with 1 to 1024 threads, not with 1025");
}

TEST(Compile, KeepsCodeInTheFolderOfTheCache) {
  const ModelHandle model = load_text(kRows);
  const TemporaryFolder folder;
  const auto compile_with = [&](const char* cache) {
    tenon_compile_options options = default_options();
    options.cache_folder = cache;
    tenon_program* program = nullptr;
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_OK) << tenon_error_message();
    tenon_free_program(program);
  };
  compile_with("");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  compile_with(folder.path().c_str());
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
}

TEST(Compile, OptionsOfAnotherSizeAreRefused) {
  tenon_compile_options options = default_options();
  options.struct_size = 7;
  EXPECT_EQ(error_of_compile(kRows, options),
            fmt::format("options: struct_size is 7, but must be what sizeof says, which is {} in version {}",
                        sizeof options, tenon_version()));
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
    tenon_compile_options options = default_options();
    options.numerics = numerics;
    options.precision = precision;
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_USER_ERROR);
    return std::string(tenon_error_message());
  };
  EXPECT_EQ(error_with(3, 0), "numerics cannot be 3");
  EXPECT_EQ(error_with(0, 2), "precision cannot be 2");
  EXPECT_EQ(error_with(TENON_NUMERICS_STRICT, TENON_PRECISION_BF16),
            "precision bf16 is incompatible with numerics strict");
}

TEST(Compile, DevicesThatAreNoneAreRefused) {
  tenon_compile_options options = default_options();
  options.device = {7, 0};
  EXPECT_EQ(error_of_compile(kRows, options), "programs cannot run on device 0 of unknown type 7");
  options.device = {TENON_DEVICE_CPU, 1};
  EXPECT_EQ(error_of_compile(kRows, options), "programs cannot run on cpu:1");
  options.device = {TENON_DEVICE_CUDA, -1};
  EXPECT_EQ(error_of_compile(kRows, options), "programs cannot run on cuda:-1");
}

// Callers of a version without devices have no memory for one.
TEST(Compile, OptionsOfEarlierVersionsHaveNoDevice) {
  tenon_compile_options options = default_options();
  options.struct_size = offsetof(tenon_compile_options, device);
  options.device = {7, 7};
  tenon_program* program = nullptr;
  ASSERT_EQ(tenon_compile(load_text(kRows).get(), &options, &program), TENON_OK) << tenon_error_message();
  EXPECT_EQ(tenon_synchronize(program), TENON_OK);
  tenon_free_program(program);
  EXPECT_EQ(tenon_synchronize(nullptr), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "program is NULL");
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
    tenon_compile_options options = default_options();
    options.precision = precision;
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
    tenon_compile_options options = default_options();
    options.numerics = numerics;
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

// --- callbacks ---

struct Heard {
  std::vector<std::string> progress, remarks;
  int64_t last_kernel = 0, kernels = 0;

  void listen(tenon_compile_options& options) {
    options.user_data = this;
    options.on_progress = [](void* user_data, const char* what, int64_t step, int64_t steps) {
      Heard& heard = *static_cast<Heard*>(user_data);
      heard.progress.emplace_back(what);
      if (heard.progress.back() != "kernel") {
        EXPECT_EQ(step, std::ssize(heard.progress));
        EXPECT_EQ(steps, 0);
        return;
      }
      EXPECT_EQ(step, ++heard.last_kernel);
      heard.kernels = steps;
    };
    options.on_remark = [](void* user_data, const char* node, const char* pass, const char* reason) {
      static_cast<Heard*>(user_data)->remarks.push_back(fmt::format("{}: {}: {}", node, pass, reason));
    };
  }
};

constexpr const char* kShared = R"(graph main(%x: f32[4,8], %w: f32[8,8], %v: f32[8,8]) {
  %0 = matmul(%x, %w)
  %1 = sin(%0)
  %2 = matmul(%1, %v)
  return %2
})";

TEST(Compile, TellsOfPassesThenOfKernels) {
  tenon_compile_options options = default_options();
  Heard heard;
  heard.listen(options);
  tenon_program* program = nullptr;
  ASSERT_EQ(tenon_compile(load_text(kShared).get(), &options, &program), TENON_OK) << tenon_error_message();
  const ProgramHandle owned(program);
  EXPECT_TRUE(
      std::ranges::is_partitioned(heard.progress, [](const std::string& what) { return what != "kernel"; }));
  EXPECT_NE(std::ranges::find(heard.progress, "simplify"), heard.progress.end());
  EXPECT_GT(heard.kernels, 0);
  EXPECT_EQ(heard.last_kernel, heard.kernels);
}

TEST(Compile, TellsWhatWasDeclined) {
  const auto remarks_on = [](const std::string& ones) {
    const ModelHandle model = load_text("graph main(%a: f32[3]) { %1 = constant(value=f32" + ones +
                                        ") %y = mul(%a, %1) from \"scale\" return %y }");
    tenon_compile_options options = default_options();
    Heard heard;
    heard.listen(options);
    tenon_program* program = nullptr;
    EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_OK) << tenon_error_message();
    tenon_free_program(program);
    return heard.remarks;
  };
  EXPECT_EQ(remarks_on("[2,1] {1, 1}"),
            (std::vector<std::string>{"node \"scale\": normalise: the result would be f32[3], not f32[2,3]",
                                      "node \"scale\": simplify: the result would be f32[3], not f32[2,3]"}));
  EXPECT_TRUE(remarks_on("[] {1}").empty());
}

TEST(Compile, OptionsOfEarlierVersionsHearNothing) {
  tenon_compile_options options = default_options();
  Heard heard;
  heard.listen(options);
  options.struct_size = offsetof(tenon_compile_options, on_progress);
  tenon_program* program = nullptr;
  ASSERT_EQ(tenon_compile(load_text(kShared).get(), &options, &program), TENON_OK) << tenon_error_message();
  const ProgramHandle owned(program);
  EXPECT_TRUE(heard.progress.empty() && heard.remarks.empty());
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
