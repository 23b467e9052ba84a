#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

class Tune : public CommandLine {
 protected:
  // With a cache that is the test's own.
  Outcome run(const std::string& arguments) const { return shell("TENON_CACHE=cache tenon " + arguments); }

  // As if measuring with two threads had found windows in blocks of three rows best for every contraction of
  // a ResNet's block.
  void adopt_three_rows() {
    const Json json = Json::parse(run("tune builtin:resnet_block --seconds 0 --threads 2 --json -").out);
    std::filesystem::create_directories(folder_ / "cache");
    Json tuned = {{"format", 2}, {"choices", Json::array()}};
    for (const Json& each : json["contractions"])
      tuned["choices"].push_back(
          {{"key", each["key"]}, {"winograd_tile", 0}, {"mr", 3}, {"before_ms", 2}, {"after_ms", 1}});
    folder_.write("cache/tuned.json", tuned.dump());
  }
};

TEST_F(Tune, RefusesAGpu) {
  const Outcome outcome = run("tune builtin:resnet_block --device sm_90 --json out.json");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.error,
            "tenon: sm_90 (sm_90): nothing can be tuned for a GPU yet\n  hint: --device cpu tunes for the "
            "processor\n");
  EXPECT_EQ(files(), std::set<std::string>());
}

TEST_F(Tune, SaysWhatItFound) {
  const Outcome outcome = run("tune builtin:resnet_block --seconds 0 --threads 2 --json out.json");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  for (const char* part : {" of 2 contractions adopted, after ", "the whole model: ", " with 2 threads\n"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << outcome.out;
  const Json json = Json::parse(read_file(folder_ / "out.json"));
  EXPECT_EQ(json["model"], "builtin:resnet_block");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_GE(json["programs"], 1);
  ASSERT_EQ(json["contractions"].size(), 2U);
  const Json& first = json["contractions"][0];
  EXPECT_EQ(first["tried"], 1);
  EXPECT_GT(first["before_ms"], 0);
  EXPECT_EQ(first["adopted"], first["before"] != first["after"]);
}

// Whoever compiles the same later uses what was adopted; with another number of threads, it does not.
TEST_F(Tune, IsLookedUp) {
  adopt_three_rows();
  const auto rows_found = [&](const std::string& threads) {
    const Json again =
        Json::parse(run("tune builtin:resnet_block --seconds 0 --json - --threads " + threads).out);
    std::set<int64_t> rows;
    for (const Json& each : again["contractions"])
      rows.insert(each["before"].value("mr", int64_t{0}));
    return rows;
  };
  EXPECT_EQ(rows_found("2"), std::set<int64_t>{3});
  EXPECT_FALSE(rows_found("1").contains(3));
}

TEST_F(Tune, IsToldOfWhereTimesAreMeasured) {
  adopt_three_rows();
  const Outcome bench = run("bench builtin:resnet_block --seconds 0 --threads 2 --json bench.json");
  const Json json = Json::parse(read_file(folder_ / "bench.json"));
  EXPECT_GE(json["tuned_kernels"], 2);
  EXPECT_LE(json["tuned_kernels"], json["kernels"]);
  EXPECT_NE(bench.out.find(fmt::format("\n  tuned {:>27}\n", json["tuned_kernels"].get<int64_t>())),
            std::string::npos)
      << bench.out;
  const Outcome profile = run("profile builtin:resnet_block --seconds 0 --threads 2 --json profile.json");
  EXPECT_NE(profile.out.find(fmt::format("\ncomputed as tenon tune has chosen: {} steps\n",
                                         json["tuned_kernels"].get<int64_t>())),
            std::string::npos)
      << profile.out;
  int64_t tuned = 0;
  const Json profiled = Json::parse(read_file(folder_ / "profile.json"));
  for (const Json& step : profiled["steps"])
    tuned += step["tuned"].get<bool>() ? 1 : 0;
  EXPECT_EQ(tuned, json["tuned_kernels"]);
}

// They are for two threads.
TEST_F(Tune, IsNotToldOfWhereItIsNotUsed) {
  adopt_three_rows();
  const Outcome bench = run("bench builtin:resnet_block --seconds 0 --threads 1 --json bench.json");
  EXPECT_EQ(bench.out.find("tuned"), std::string::npos) << bench.out;
  EXPECT_EQ(Json::parse(read_file(folder_ / "bench.json"))["tuned_kernels"], 0);
  const Outcome profile = run("profile builtin:resnet_block --seconds 0 --threads 1");
  EXPECT_EQ(profile.out.find("tune"), std::string::npos) << profile.out;
}

TEST_F(Tune, LooksPastADamagedFile) {
  std::filesystem::create_directories(folder_ / "cache");
  folder_.write("cache/tuned.json", "{\"format\": 2, \"choices\": [{");
  EXPECT_EQ(run("run builtin:resnet_block").status, 0);
  EXPECT_EQ(run("tune builtin:resnet_block --seconds 0").status, 0);
  std::filesystem::remove(folder_ / "cache" / "tuned.json");
  std::filesystem::create_directories(folder_ / "cache" / "tuned.json");
  EXPECT_EQ(run("run builtin:resnet_block").status, 0);
}

TEST_F(Tune, SaysThatThereAreNoContractions) {
  expect_done("TENON_CACHE=cache tenon tune builtin:chain5_any_size --dim rows=8 --seconds 0",
              "There is nothing to tune: no contraction can be computed otherwise.\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache" / "tuned.json"));
}

TEST_F(Tune, RefusesWhatItCannotDo) {
  expect_refused("TENON_CACHE= tenon tune builtin:resnet_block",
                 "the cache is switched off, so that results could not be kept\n"
                 "  hint: TENON_CACHE names its folder");
  expect_refused(
      "TENON_CACHE=cache tenon tune builtin:attention_any_length",
      "what is fastest depends on sizes that the model leaves open\n"
      "  hint: bind them with --dim length=…, or give inputs of the sizes that matter with --inputs");
  expect_refused("TENON_CACHE=cache tenon tune builtin:resnet_block --json ./cache/tuned.json",
                 "--json is the file that adopted choices are kept in, ./cache/tuned.json");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache" / "tuned.json"));
  expect_refused("TENON_CACHE=/proc/none tenon tune builtin:resnet_block",
                 "cannot write /proc/none/tuned.json: No such file or directory");
}

}  // namespace
}  // namespace tenon::cli
