// The C++ interface: the same calls, with exceptions for errors.
#include <gtest/gtest.h>

#include <tenon/tenon.hpp>

namespace tenon {

namespace {

TEST(CppInterface, LoadsCompilesAndRuns) {
  const Program program = compile(Model("builtin:tiny"), {.numerics = TENON_NUMERICS_STRICT});
  ASSERT_EQ(program.inputs().size(), 1U);
  EXPECT_EQ(program.inputs()[0].name, "x");
  EXPECT_EQ(program.inputs()[0].dtype, TENON_F32);
  EXPECT_EQ(program.inputs()[0].sizes, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(program.outputs()[0].sizes, (std::vector<int64_t>{1, 3}));

  const std::vector<float> x = {0, 0, 0, 0};
  std::vector<float> y(3);
  std::vector<int64_t> sizes(2);
  const tenon_tensor inputs[] = {input<float>(x, *program.inputs()[0].sizes)};
  tenon_tensor outputs[] = {output<float>(y, sizes)};
  program.run(inputs, outputs, {.threads = 1});
  EXPECT_EQ(y, (std::vector<float>{0, 0, 0.33703712F}));  // relu of the bias
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 3}));
}

TEST(CppInterface, DescribesModelsAndBindsDimensions) {
  const std::string text = "graph main(%x: f32[n,2]) { %0 = neg(%x) return %0 as \"y\" }";
  Model model = Model::from_memory(std::as_bytes(std::span(text)), "model.tenon");
  ASSERT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.inputs()[0].type, "f32[n,2]");
  EXPECT_EQ(model.inputs()[0].dimensions, (std::vector<std::string>{"n", "2"}));
  EXPECT_EQ(model.inputs()[0].sizes, (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(model.outputs()[0].name, "y");
  EXPECT_EQ(model.dimensions(), std::vector<std::string>{"n"});

  const Program of_three = compile(model, {.threads = 1, .cache_folder = "", .dimensions = {{"n", 3}}});
  EXPECT_EQ(of_three.outputs()[0].sizes, (std::vector<int64_t>{3, 2}));
  model.bind("n", 4);
  EXPECT_EQ(model.outputs()[0].type, "f32[4,2]");
  EXPECT_EQ(model.dimensions(), std::vector<std::string>());
}

TEST(CppInterface, StridedTensors) {
  const std::string text = "graph main(%x: f32[2,2]) { %0 = neg(%x) return %0 }";
  const Program program = compile(Model::from_memory(std::as_bytes(std::span(text)), "model.tenon"));
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> y(4);
  const std::vector<int64_t> transposed = {1, 2};
  std::vector<int64_t> sizes = {2, 2};
  const tenon_tensor inputs[] = {input<float>(x, sizes, transposed)};
  tenon_tensor outputs[] = {output<float>(y)};
  program.run(inputs, outputs);
  EXPECT_EQ(y, (std::vector<float>{-1, -3, -2, -4}));
  outputs[0] = output<float>(y, sizes, transposed);
  program.run(inputs, outputs);
  EXPECT_EQ(y, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_THROW(input<float>(x, sizes, std::span(transposed).first(1)), Error);
}

TEST(CppInterface, ErrorsAreExceptions) {
  const Program program = compile(Model("builtin:tiny"));
  try {
    program.run({}, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the program takes 1 inputs, but 0 were given");
    EXPECT_EQ(error.status(), TENON_USER_ERROR);
  }
  EXPECT_THROW(Model("none.onnx"), Error);
  EXPECT_THROW(Model::from_memory({}, "model.onnx"), Error);
  EXPECT_THROW(Model("builtin:tiny").bind("n", 2), Error);
}

TEST(CppInterface, DtypesOfElements) {
  EXPECT_EQ(v0::dtype_of<bool>(), TENON_BOOL);
  EXPECT_EQ(v0::dtype_of<uint8_t>(), TENON_U8);
  EXPECT_EQ(v0::dtype_of<int16_t>(), TENON_I16);
  EXPECT_EQ(v0::dtype_of<long long>(), TENON_I64);
  EXPECT_EQ(v0::dtype_of<signed char>(), TENON_I8);
  EXPECT_EQ(v0::dtype_of<std::complex<float>>(), TENON_C64);
  static_assert(v0::is_character<char> && v0::is_character<wchar_t> && v0::is_character<char8_t> &&
                v0::is_character<char16_t> && v0::is_character<char32_t>);
  static_assert(!v0::is_character<signed char> && !v0::is_character<unsigned char>);
}

}  // namespace
}  // namespace tenon
