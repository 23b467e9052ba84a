// Models loaded, from files and memory, and described through the C interface.
#include "api/c_interface.h"
#include "frontends/onnx_model.h"
#include "source_tree.h"

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
  EXPECT_EQ(tenon_load_memory(nullptr, 1, "model.onnx", nullptr, &model), TENON_USER_ERROR);
  expect_null("bytes");
  EXPECT_EQ(tenon_load_memory("x", 1, nullptr, nullptr, &model), TENON_USER_ERROR);
  expect_null("name");
  EXPECT_EQ(tenon_load_memory("x", 1, "model.onnx", nullptr, nullptr), TENON_USER_ERROR);
  expect_null("model");
  EXPECT_EQ(tenon_model_count_inputs(nullptr), 0U);
  expect_null("model");
  EXPECT_EQ(tenon_model_count_outputs(nullptr), 0U);
  expect_null("model");
  EXPECT_EQ(tenon_model_input(nullptr, 0), nullptr);
  expect_null("model");
  EXPECT_EQ(tenon_model_output(nullptr, 0), nullptr);
  expect_null("model");
  EXPECT_EQ(tenon_model_dimension(nullptr, 0), nullptr);
  expect_null("model");
  EXPECT_EQ(tenon_program_count_inputs(nullptr), 0U);
  expect_null("program");
  EXPECT_EQ(tenon_program_count_outputs(nullptr), 0U);
  expect_null("program");
  EXPECT_EQ(tenon_program_input(nullptr, 0), nullptr);
  expect_null("program");
  EXPECT_EQ(tenon_program_output(nullptr, 0), nullptr);
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

// --- from memory ---

tenon_status load_memory(const std::string& bytes, const char* name, tenon_model** model,
                         const char* folder = nullptr) {
  return tenon_load_memory(bytes.data(), bytes.size(), name, folder, model);
}

std::string error_of_memory(const std::string& bytes, const char* name, const char* folder = nullptr) {
  tenon_model* model = nullptr;
  EXPECT_EQ(load_memory(bytes, name, &model, folder), TENON_USER_ERROR);
  EXPECT_EQ(model, nullptr);
  return tenon_error_message();
}

// What it makes of one input of f32.
std::vector<float> apply(const ModelHandle& model, Array<float> x, size_t results) {
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_compile(model.get(), nullptr, &program), TENON_OK) << tenon_error_message();
  const ProgramHandle owned(program);
  std::vector<float> y(results);
  tenon_tensor output = Array<float>{}.tensor(TENON_F32);
  output.data = y.data();
  output.bytes = y.size() * sizeof(float);
  output.sizes = nullptr;
  std::vector<tenon_tensor> outputs = {output};
  EXPECT_EQ(run(owned, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
  return y;
}

// The bytes may change once the model is loaded.
TEST(LoadMemory, CopiesTheBytes) {
  std::string text =
      "graph main(%x: f32[2]) { %c = constant(value=f32[2] {10, 20}) %0 = add(%x, %c) return %0 }";
  tenon_model* model = nullptr;
  ASSERT_EQ(load_memory(text, "model.tenon", &model), TENON_OK) << tenon_error_message();
  const ModelHandle owned(model);
  text.assign(text.size(), '?');
  EXPECT_EQ(apply(owned, {{1, 2}, {2}}, 2), (std::vector<float>{11, 22}));
}

TEST(LoadMemory, GivesWhatTheFileGives) {
  for (const char* name : {"tiny.onnx", "tiny.pt2", "conv_bn_noaffine.onnx", "conv_bn_noaffine.pt2"}) {
    const std::filesystem::path path = source_tree() / "tests/data/models" / name;
    tenon_model *from_file = nullptr, *from_memory = nullptr;
    ASSERT_EQ(tenon_load(path.c_str(), &from_file), TENON_OK) << tenon_error_message();
    const ModelHandle file(from_file);
    ASSERT_EQ(load_memory(read_file(path), name, &from_memory), TENON_OK) << tenon_error_message();
    const ModelHandle memory(from_memory);
    const tenon_port& port = *tenon_model_input(from_file, 0);
    EXPECT_STREQ(tenon_model_input(from_memory, 0)->type, port.type);
    Array<float> x{{}, {port.sizes, port.sizes + port.rank}};
    int64_t count = 1;
    for (const int64_t size : x.sizes)
      count *= size;
    for (int64_t i = 0; i < count; ++i)
      x.elements.push_back(static_cast<float>(i % 7) - 3);
    const tenon_port& result = *tenon_model_output(from_file, 0);
    size_t results = 1;
    for (int32_t i = 0; i < result.rank; ++i)
      results *= static_cast<size_t>(result.sizes[i]);
    EXPECT_EQ(apply(file, x, results), apply(memory, x, results)) << name;
  }
}

TEST(LoadMemory, WhatIsNoModelIsRefused) {
  EXPECT_EQ(error_of_memory("x", "model.txt"), "model.txt: a model is a .onnx, .pt2, .gguf or .tenon file");
  EXPECT_EQ(error_of_memory("x", "builtin:tiny"),
            "builtin:tiny: a model is a .onnx, .pt2, .gguf or .tenon file");
  EXPECT_EQ(error_of_memory("graph main(", "model.tenon"),
            "model.tenon: line 1, column 12: an input such as %x: f32[2] was expected");
}

// However much of the bytes is missing, there is a message that names the model.
TEST(LoadMemory, TruncatedBytesAreRefused) {
  for (const char* name : {"tiny.onnx", "tiny.pt2"}) {
    const std::string bytes = read_file(source_tree() / "tests/data/models" / name);
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 8)
      EXPECT_EQ(error_of_memory(bytes.substr(0, size), name).find(fmt::format("{}: ", name)), 0U) << size;
  }
}

// A model whose weights, {10, 20}, are in a file w.bin.
std::string model_with_weights_elsewhere() {
  using namespace onnx::encode;
  const Bytes weight = number(1, 2) + number(2, kFloat) + block(8, "w") +
                       block(13, block(1, "location") + block(2, "w.bin")) + number(14, 1);
  return model({.nodes = {node("Add", {"x", "w"}, {"y"})},
                .inputs = {value("x", kFloat, {int64_t{2}})},
                .outputs = {value("y", kFloat, {int64_t{2}})},
                .initializers = {weight}});
}

TEST(LoadMemory, FindsWeightsInTheFolderThatIsGiven) {
  const TemporaryFolder folder;
  folder.write("w.bin", onnx::encode::raw<float>({10, 20}));
  tenon_model* model = nullptr;
  ASSERT_EQ(load_memory(model_with_weights_elsewhere(), "m.onnx", &model, folder.path().c_str()), TENON_OK)
      << tenon_error_message();
  EXPECT_EQ(apply(ModelHandle(model), {{1, 2}, {2}}, 2), (std::vector<float>{11, 22}));
}

TEST(LoadMemory, LooksForNoFilesWithoutAFolder) {
  EXPECT_EQ(
      error_of_memory(model_with_weights_elsewhere(), "m.onnx"),
      "m.onnx: node \"y\": tensor \"w\": its elements are in a file, w.bin, but the model is in memory\n"
      "  hint: say in which folder that file is");
  EXPECT_EQ(
      error_of_memory("graph main(%x: f32[2]) { %c = constant(value=f32[2] file \"w.bin\" 0 8) return %c }",
                      "m.tenon"),
      "m.tenon: line 1, column 69: the constant is in a file, w.bin, but the model is in memory\n"
      "  hint: say in which folder that file is");
}

// --- inputs, outputs and dimensions, before anything is compiled ---

TEST(Model, DescribesInputsAndOutputs) {
  const ModelHandle model = load_text(R"(graph main(%x: f32[n,2], %k: i64[], %s: seq<f32[m]>, %w: str[2]) {
    %0 = concat([%x, %x], axis=0)
    %1 = nonzero(%x)
    return %0 as "twice", %1 as "places", %k as "same"
  })");
  ASSERT_EQ(tenon_model_count_inputs(model.get()), 4U);
  ASSERT_EQ(tenon_model_count_outputs(model.get()), 3U);
  const tenon_port& x = *tenon_model_input(model.get(), 0);
  EXPECT_EQ(x.struct_size, sizeof x);
  EXPECT_STREQ(x.name, "x");
  EXPECT_STREQ(x.type, "f32[n,2]");
  EXPECT_EQ(x.dtype, TENON_F32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_EQ(x.sizes[0], -1);
  EXPECT_EQ(x.sizes[1], 2);
  EXPECT_STREQ(x.dimensions[0], "n");
  EXPECT_STREQ(x.dimensions[1], "2");
  EXPECT_EQ(tenon_model_input(model.get(), 1)->rank, 0);
  EXPECT_EQ(tenon_model_input(model.get(), 2)->dtype, -1);
  EXPECT_EQ(tenon_model_input(model.get(), 2)->rank, -1);
  EXPECT_STREQ(tenon_model_input(model.get(), 2)->type, "seq<f32[m]>");
  EXPECT_EQ(tenon_model_input(model.get(), 3)->dtype, -1);
  EXPECT_EQ(tenon_model_input(model.get(), 3)->rank, 1);
  EXPECT_EQ(tenon_model_input(model.get(), 4), nullptr);
  const tenon_port& twice = *tenon_model_output(model.get(), 0);
  EXPECT_STREQ(twice.name, "twice");
  EXPECT_STREQ(twice.dimensions[0], "2*n");
  EXPECT_EQ(tenon_model_output(model.get(), 1)->sizes[1], -1);
  EXPECT_STREQ(tenon_model_output(model.get(), 1)->dimensions[1], "d0");
  EXPECT_EQ(tenon_model_output(model.get(), 3), nullptr);
}

TEST(Model, NamesTheDimensionsThatCanBeBound) {
  const ModelHandle model = load_text("graph main(%x: f32[n,2*m], %y: f32[m,n]) { return %x, %y }");
  EXPECT_STREQ(tenon_model_dimension(model.get(), 0), "m");
  EXPECT_STREQ(tenon_model_dimension(model.get(), 1), "n");
  EXPECT_EQ(tenon_model_dimension(model.get(), 2), nullptr);

  ASSERT_EQ(tenon_bind(model.get(), "m", 3), TENON_OK);
  EXPECT_STREQ(tenon_model_dimension(model.get(), 0), "n");
  EXPECT_EQ(tenon_model_dimension(model.get(), 1), nullptr);
  EXPECT_STREQ(tenon_model_output(model.get(), 0)->type, "f32[n,6]");
  EXPECT_EQ(tenon_bind(model.get(), "m", 3), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "no input has a dimension m");
  EXPECT_EQ(tenon_bind(model.get(), "n", -1), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "the dimension n cannot be -1");
}

}  // namespace
}  // namespace tenon
