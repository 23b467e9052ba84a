#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"
#include "tensor/npy.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

class Report : public CommandLine {
 protected:
  void SetUp() override {
    folder_.write(
        "ids.tenon",
        "graph main(%table: f32[4,2], %ids: i64[n]) {\n  %i = abs(%ids)\n  %y = gather(%table, %i) from "
        "\"lookup\"\n  return %y\n}\n");
  }
};

TEST_F(Report, WritesAPage) {
  const Outcome outcome = shell("tenon report builtin:tiny -o report.html --seconds 0 --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "wrote report.html\n");
  const std::string page = read_file(folder_ / "report.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("builtin:tiny"), std::string::npos);
}

TEST_F(Report, WritesTheDataAlone) {
  const Outcome outcome =
      shell("tenon report builtin:tiny -o report.json --seconds 0 --threads 1 --no-verify");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  const Json json = Json::parse(read_file(folder_ / "report.json"));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items())
    keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"version", "model", "machine", "summary", "strings", "nodes",
                                            "stages", "passes", "rewrites", "remarks", "kernels", "loops",
                                            "missed", "memory", "modules", "verification", "not_verified"}));
  EXPECT_EQ(json["model"], "builtin:tiny");
  EXPECT_EQ(json["machine"]["threads"], 1);
  EXPECT_EQ(json["not_verified"], "it was not wanted");
}

TEST_F(Report, RefusesWhatItCannotDo) {
  expect_refused("tenon report none.onnx -o r.html", "cannot open none.onnx: No such file or directory");
  expect_refused("tenon report builtin:tiny -o none/r.html",
                 "cannot write none/r.html: No such file or directory");
  expect_refused("tenon report ids.tenon -o ./ids.tenon",
                 "./ids.tenon is the model itself, which would be lost");
  EXPECT_EQ(shell("tenon report builtin:tiny").status, 2);
  const Outcome unknown = shell("tenon report builtin:tiny -o r.html --numerics sloppy");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("sloppy"), std::string::npos) << unknown.error;
  EXPECT_EQ(files(), (std::set<std::string>{"ids.tenon"}));
}

// Made-up indices are too large for a table of four rows from the second on.
TEST_F(Report, SaysWhichSizesAndInputsToGive) {
  EXPECT_EQ(shell("tenon report ids.tenon -o r.html --seconds 0").status, 0);
  const Outcome outcome = shell("tenon report ids.tenon -o r2.html --seconds 0 --dim n=2");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.error.find("node \"lookup\""), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("hint: the inputs were made up; give your own with --inputs"),
            std::string::npos)
      << outcome.error;
}

// No inputs that are drawn would do.
TEST_F(Report, VerifiesOnTheInputsThatAreGiven) {
  folder_.write("far.tenon",
                "graph main(%table: f32[200,2], %ids: i64[1]) {\n  %k = constant(value=i64[] {-1000})\n"
                "  %i = add(%ids, %k)\n  %y = gather(%table, %i)\n  %z = relu(%y)\n  %w = relu(%z)\n"
                "  return %w\n}\n");
  write_npz(folder_ / "in.npz",
            {{"table", Tensor(DType::F32, {200, 2})}, {"ids", Tensor::of<int64_t>({1150})}});
  const Outcome outcome = shell("tenon report far.tenon -o r.json --seconds 0 --inputs in.npz");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  const Json json = Json::parse(read_file(folder_ / "r.json"));
  EXPECT_FALSE(json.contains("not_verified")) << json["not_verified"];
  EXPECT_FALSE(json["verification"].empty());
}

}  // namespace
}  // namespace tenon::cli
