#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Cache : public CommandLine {
 protected:
  void fill() {
    EXPECT_EQ(shell("TENON_CACHE=cache tenon run builtin:tiny").status, 0);
    folder_.write("cache/tuned.json",
                  R"({"format": 2, "choices": [{"key": "0f", "mr": 3, "before_ms": 2, "after_ms": 1}]})");
    folder_.write("cache/notes.txt", "mine");
  }
};

TEST_F(Cache, SaysWhatItHolds) {
  expect_done("TENON_CACHE=cache tenon cache",
              "cache\n0 compiled kernels (0 B), at most 1.0 GiB\n0 tuned choices\n");
  fill();
  const Outcome outcome = shell("TENON_CACHE=cache tenon cache | sed 's/([^)]*)/(SIZE)/'");
  EXPECT_EQ(outcome.out, "cache\n1 compiled kernel (SIZE), at most 1.0 GiB\n1 tuned choice\n");
  EXPECT_EQ(outcome.error, "");
}

TEST_F(Cache, ClearsWhatIsItsOwn) {
  fill();
  const Outcome outcome = shell("TENON_CACHE=cache tenon cache --clear | sed 's/([^)]*)/(SIZE)/'; ls cache");
  EXPECT_EQ(outcome.out, "removed 1 compiled kernel (SIZE) and 1 tuned choice\nnotes.txt\n");
  EXPECT_EQ(outcome.error, "");
  expect_done("TENON_CACHE=cache tenon cache --clear",
              "removed 0 compiled kernels (0 B) and 0 tuned choices\n");
}

TEST_F(Cache, LeavesAFolderInPlaceOfTheFileOfChoices) {
  std::filesystem::create_directories(folder_ / "cache/tuned.json");
  expect_done("TENON_CACHE=cache tenon cache --clear; ls cache",
              "removed 0 compiled kernels (0 B) and 0 tuned choices\ntuned.json\n");
}

TEST_F(Cache, IsFoundWhereTheEnvironmentSays) {
  expect_done("env -u TENON_CACHE XDG_CACHE_HOME=/none tenon cache | head -n 1", "/none/tenon\n");
  expect_done("env -u TENON_CACHE -u XDG_CACHE_HOME HOME=/none tenon cache | head -n 1",
              "/none/.cache/tenon\n");
  for (const char* command : {"tenon cache", "tenon cache --clear"})
    expect_refused(std::string("TENON_CACHE= ") + command,
                   "the cache is switched off\n  hint: TENON_CACHE names its folder");
}

}  // namespace
}  // namespace tenon::cli
