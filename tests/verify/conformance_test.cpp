#include "verify/conformance.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "frontends/onnx_model.h"
#include "ops/registry.h"

namespace tenon {
namespace {

using namespace onnx::encode;
namespace fs = std::filesystem;

// A case that computes y = Neg(x) of two floats; each test adds its data.
class Conformance : public ::testing::Test {
 protected:
  void SetUp() override {
    register_ops();
    write_model("Neg");
  }

  void write_model(const std::string& op, const Names& outputs = {"y"}) {
    Messages values;
    for (const std::string& name : outputs)
      values.push_back(value(name, kFloat, {2}));
    folder_.write(
        "model.onnx",
        model({.nodes = {node(op, {"x"}, outputs)}, .inputs = {value("x", kFloat, {2})}, .outputs = values}));
  }
  void write_data(int set, const std::string& name, const std::vector<float>& values) {
    const fs::path data = folder_ / fmt::format("test_data_set_{}", set);
    fs::create_directories(data);
    std::ofstream(data / (name + ".pb"), std::ios::binary) << tensor(name, {2}, values);
  }

  void expect(CaseStatus status, const std::string& detail) {
    const CaseResult result = run_case(folder_.path());
    EXPECT_EQ(name(result.status), name(status));
    EXPECT_EQ(result.detail, detail);
  }

  TemporaryFolder folder_;
};

TEST_F(Conformance, ACaseWhoseOutputsAreAsExpectedPasses) {
  for (const int set : {0, 1}) {
    write_data(set, "input_0", {1, 2});
    write_data(set, "output_0", {-1, -2});
  }
  expect(CaseStatus::Pass, "");
  const CaseResult result = run_case(folder_.path());
  EXPECT_EQ(result.opset, 17);
  EXPECT_EQ(result.dtype, "f32");
}

TEST_F(Conformance, AnyDataSetCanBeWrong) {
  for (const int set : {0, 1})
    write_data(set, "input_0", {1, 2});
  write_data(0, "output_0", {-1, -2});
  write_data(1, "output_0", {-1, 2});
  expect(CaseStatus::Wrong, "output \"y\": element 1 of f32[2] is -2, expected 2");
}

TEST_F(Conformance, ACaseWithoutDataIsAnError) {
  expect(CaseStatus::Error, "there is no test_data_set_0, so there is nothing to compare with");
}

TEST_F(Conformance, ADataSetWithoutAnOutputIsAnError) {
  write_data(0, "input_0", {1, 2});
  expect(CaseStatus::Error, "test_data_set_0 has no output_0.pb for the output \"y\"");
}

TEST_F(Conformance, ADataSetWithAnOutputTooManyIsAnError) {
  write_data(0, "input_0", {1, 2});
  write_data(0, "output_0", {-1, -2});
  write_data(0, "output_1", {-1, -2});
  expect(CaseStatus::Error, "test_data_set_0 has output_1.pb, but the model's outputs are y");
}

TEST_F(Conformance, ADataSetWithoutAnInputIsAnError) {
  write_data(0, "output_0", {-1, -2});
  expect(CaseStatus::Error,
         "cannot open " + (folder_ / "test_data_set_0/input_0.pb").string() + ": No such file or directory");
}

TEST_F(Conformance, ToleranceIsReadRelativeFirst) {
  write_data(0, "input_0", {1, 2});
  write_data(0, "output_0", {-1, -2.5});
  folder_.write("tol.txt", "0.25 0");
  expect(CaseStatus::Pass, "");
  folder_.write("tol.txt", "0 0.25");
  expect(CaseStatus::Wrong, "output \"y\": element 1 of f32[2] is -2, expected -2.5");
  folder_.write("tol.txt", "little");
  expect(CaseStatus::Error, "tol.txt does not hold two numbers");
}

TEST_F(Conformance, OutputsDrawnAtRandomNeedOnlyTheRightType) {
  write_model("RandomNormalLike");
  write_data(0, "input_0", {1, 2});
  write_data(0, "output_0", {5, 5});
  expect(CaseStatus::Pass, "");
}

TEST_F(Conformance, AModelThatCannotBeReadIsAnErrorWithItsReason) {
  folder_.write("model.onnx", "\x08");
  const CaseResult result = run_case(folder_.path());
  EXPECT_EQ(result.status, CaseStatus::Error);
  EXPECT_EQ(result.opset, 0);
  EXPECT_EQ(result.dtype, "");
  EXPECT_NE(result.detail, "");
}

TEST_F(Conformance, CasesAreFoundToAnyDepthInOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a/deep", "c"}) {
    fs::create_directories(folder / name);
    if (name != std::string("c"))
      folder.write(std::string(name) + "/model.onnx", "");
  }
  EXPECT_EQ(find_cases(folder.path()), (std::vector<fs::path>{folder / "a/deep", folder / "b"}));
  EXPECT_EQ(find_cases(folder / "b"), (std::vector<fs::path>{folder / "b"}));
  const std::string file = (folder / "b/model.onnx").string();
  expect_error<UserError>([&] { find_cases(file); }, file + " is not a folder");
}

}  // namespace
}  // namespace tenon
