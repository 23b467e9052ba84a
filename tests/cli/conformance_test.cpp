#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"
#include "frontends/onnx_model.h"

namespace tenon::cli {
namespace {

using namespace onnx::encode;

class ConformanceCommand : public CommandLine {
 protected:
  // A case that computes y = OP(x) of one float, which is 1, and wants `output`.
  void write_case(const std::string& name, const std::string& op, float output) const {
    std::filesystem::create_directories(folder_ / (name + "/test_data_set_0"));
    folder_.write(name + "/model.onnx", model({.nodes = {node(op, {"x"}, {"y"})},
                                               .inputs = {value("x", kFloat, {1})},
                                               .outputs = {value("y", kFloat, {1})}}));
    folder_.write(name + "/test_data_set_0/input_0.pb", tensor<float>("x", {1}, {1}));
    folder_.write(name + "/test_data_set_0/output_0.pb", tensor<float>("y", {1}, {output}));
  }
};

TEST_F(ConformanceCommand, IsDoneWhenAllCasesPass) {
  write_case("a", "Neg", -1);
  write_case("b", "Abs", 1);
  expect_done("tenon conformance .", "2 passed, 0 failed (0 wrong, 0 errors), 0 unsupported: 100.0 % pass\n");
}

TEST_F(ConformanceCommand, RunsCompiledModels) {
  write_case("a", "Neg", -1);
  write_case("b", "Abs", 3);
  expect("tenon conformance . --engine compiled", 1,
         "wrong b: output \"y\": element 0 of f32[1] is 1, expected 3\n"
         "1 passed, 1 failed (1 wrong, 0 errors), 0 unsupported: 50.0 % pass\n",
         "");
  const Outcome unknown = shell("tenon conformance . --engine warp");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("--engine: it must be reference, compiled, but is warp"), std::string::npos)
      << unknown.error;
}

TEST_F(ConformanceCommand, RefusesWhenOneDoesNot) {
  write_case("a", "Neg", -1);
  write_case("b", "Abs", 3);
  expect("tenon conformance . --json out.json", 1,
         "wrong b: output \"y\": element 0 of f32[1] is 1, expected 3\n"
         "1 passed, 1 failed (1 wrong, 0 errors), 0 unsupported: 50.0 % pass\n",
         "");
  const nlohmann::json json = nlohmann::json::parse(read_file(folder_ / "out.json"));
  EXPECT_EQ(json["passed"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["cases"][1]["name"], "b");
  EXPECT_EQ(json["cases"][1]["status"], "wrong");
  EXPECT_EQ(json["cases"][1]["dtype"], "f32");
}

TEST_F(ConformanceCommand, WritesNamesThatAreNotUtf8) {
  write_case("a\xff", "Neg", -1);
  EXPECT_EQ(shell("tenon conformance . --json out.json").status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "out.json"))["cases"][0]["name"], "a\ufffd");
}

TEST_F(ConformanceCommand, ACaseWithoutDataDoesNotPass) {
  write_case("a", "Neg", -1);
  std::filesystem::remove_all(folder_ / "a/test_data_set_0");
  expect("tenon conformance .", 1,
         "error a: there is no test_data_set_0, so there is nothing to compare with\n"
         "0 passed, 1 failed (0 wrong, 1 errors), 0 unsupported: 0.0 % pass\n",
         "");
}

TEST_F(ConformanceCommand, AFileThatCannotBeWrittenIsKnownBeforeItRuns) {
  write_case("a", "Neg", 3);
  std::filesystem::create_directories(folder_ / "folder");
  expect_refused("tenon conformance . --json folder", "cannot write folder: not a regular file");
  expect_refused("tenon conformance . --json none/out.json",
                 "cannot write none/out.json: No such file or directory");
  EXPECT_EQ(files(), (std::set<std::string>{"a", "folder"}));
}

TEST_F(ConformanceCommand, FoldersWithoutCasesAreRefused) {
  expect_refused("tenon conformance .", "there are no cases (folders with a model.onnx) in .");
  expect_refused("tenon conformance none", "none is not a folder");
}

}  // namespace
}  // namespace tenon::cli
