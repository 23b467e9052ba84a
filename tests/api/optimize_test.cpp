// Models optimised and written through the C and C++ interfaces.
#include <tenon/tenon.hpp>

#include "api/c_interface.h"
#include "frontends/onnx_model.h"

namespace tenon {
namespace {

namespace encode = onnx::encode;

constexpr size_t kSize = sizeof(tenon_optimize_options);

// Before opset 13 it normalises two axes together, which we can only say with reshapes.
encode::Bytes softmax_of_two_axes() {
  return encode::model({.nodes = {encode::node("Softmax", {"x"}, {"y"}, {encode::int_attribute("axis", 1)})},
                        .inputs = {encode::value("x", encode::kFloat, {"n", 3, 4})},
                        .outputs = {encode::value("y", encode::kFloat, {"n", 3, 4})}},
                       {}, {encode::opset(11)});
}

ModelHandle load_softmax(const TemporaryFolder& folder) {
  tenon_model* model = nullptr;
  EXPECT_EQ(tenon_load(folder.write("m.onnx", softmax_of_two_axes()).c_str(), &model), TENON_OK);
  return ModelHandle(model);
}

TEST(Optimize, AnOnnxFileThatWouldGrowStaysAsItIs) {
  const TemporaryFolder folder;
  const ModelHandle model = load_softmax(folder);
  EXPECT_EQ(tenon_optimize(model.get(), nullptr, (folder / "n.onnx").c_str()), TENON_OK);
  EXPECT_EQ(read_file(folder / "n.onnx"), softmax_of_two_axes());
  // From memory, too; by its other interface.
  const encode::Bytes bytes = softmax_of_two_axes();
  const auto from_memory = Model::from_memory(std::as_bytes(std::span(bytes)), "m.onnx");
  from_memory.optimize((folder / "o.onnx").string());
  EXPECT_EQ(read_file(folder / "o.onnx"), bytes);
}

TEST(Optimize, SizesThatWereBoundAreWritten) {
  const TemporaryFolder folder;
  const ModelHandle model = load_softmax(folder);
  ASSERT_EQ(tenon_bind(model.get(), "n", 2), TENON_OK);
  EXPECT_EQ(tenon_optimize(model.get(), nullptr, (folder / "n.onnx").c_str()), TENON_OK);
  EXPECT_EQ(Model((folder / "n.onnx").string()).inputs()[0].type, "f32[2,3,4]");
}

TEST(Optimize, OptionsSayWhichOpsAreWritten) {
  const TemporaryFolder folder;
  const ModelHandle model = load_text("graph(%x: f32[2]) {\n%y = gelu(%x)\nreturn %y\n}");
  const auto written = [&](const tenon_optimize_options& options) {
    EXPECT_EQ(tenon_optimize(model.get(), &options, (folder / "n.onnx").c_str()), TENON_OK)
        << tenon_error_message();
    return read_file(folder / "n.onnx");
  };
  EXPECT_NE(written({kSize, 0, 0}).find("Gelu"), std::string::npos);
  EXPECT_EQ(written({kSize, 0, 17}).find("Gelu"), std::string::npos);
  EXPECT_EQ(tenon_optimize(model.get(), nullptr, (folder / "n.tenon").c_str()), TENON_OK);
  EXPECT_NE(read_file(folder / "n.tenon").find("gelu(%x"), std::string::npos);
}

TEST(Optimize, RefusesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  const ModelHandle model = load_softmax(folder);
  const auto expect_refused = [&](const char* path, const tenon_optimize_options& options,
                                  const std::string& message) {
    EXPECT_EQ(tenon_optimize(model.get(), &options, path), TENON_USER_ERROR);
    EXPECT_EQ(tenon_error_message(), message);
  };
  expect_refused("n.pb", {kSize, 0, 0}, "cannot write n.pb: its name must end in .onnx or .tenon");
  expect_refused("n.tenon", {kSize, 0, 17}, "opset is for .onnx files, but n.tenon is written");
  expect_refused("n.onnx", {kSize, 7, 0}, "numerics cannot be 7");
  expect_refused(nullptr, {kSize, 0, 0}, "path is NULL");
  EXPECT_EQ(tenon_optimize(nullptr, nullptr, "n.onnx"), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "model is NULL");
}

}  // namespace
}  // namespace tenon
