#include "compiler/tuned_choices.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace tenon {

using compiler::add_tuned;
using compiler::read_tuned;
using compiler::TunedChoices;
using lowering::ContractionChoice;

namespace {

namespace fs = std::filesystem;

class TunedChoicesTest : public testing::Test {
 protected:
  void write(const std::string& text) const {
    fs::create_directories(file_.parent_path());
    std::ofstream(file_, std::ios::binary) << text;
  }
  std::string content() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "cache" / "tuned.json";
  const TunedChoices some_{
      {0xfedcba9876543210, {{.winograd_tile = 4, .tile_rows = 2, .filter_parts = 3}, 0.5, 0.25}},
      {7, {{.mr = 6, .nr = 32, .pack_a = false, .bf16x3 = true}, 0.75, 0.5}}};
};

TEST_F(TunedChoicesTest, AreReadAsTheyWereWritten) {
  EXPECT_TRUE(read_tuned(file_).empty());
  add_tuned(file_, some_);
  EXPECT_EQ(read_tuned(file_), some_);
}

TEST_F(TunedChoicesTest, AreAddedToThoseThatThereAre) {
  add_tuned(file_, some_);
  add_tuned(file_, {{7, {{.mr = 5}, 0.5, 0.25}}, {8, {{.mr = 4}, 0.5, 0.25}}});
  const TunedChoices all = read_tuned(file_);
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at(7).choice, ContractionChoice{.mr = 5});
  EXPECT_EQ(all.at(8).choice, ContractionChoice{.mr = 4});
}

TEST_F(TunedChoicesTest, AreIgnoredWhereTheyAreDamaged) {
  add_tuned(file_, some_);
  const std::string whole = content();
  for (size_t length = 0; length + 2 < whole.size(); ++length) {
    write(whole.substr(0, length));
    EXPECT_TRUE(read_tuned(file_).empty()) << length;
  }
  for (
      const std::string text :
      {"[]", "3", "{}", R"({"format": 1, "choices": []})", R"({"format": 2, "choices": 3})",
       R"({"format": 2, "choices": [{"key": 7}]})",
       R"({"format": 2, "choices": [{"key": "x", "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7x", "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "123456789123456789123", "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": 0, "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": 1e9, "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": 1e300, "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": 2.7, "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": 18446744073709551615, "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "mr": "6", "before_ms": 1, "after_ms": 1}]})",
       R"({"format": 2, "choices": [{"key": "7", "pack_a": 1, "before_ms": 1, "after_ms": 1}]})"}) {
    write(text);
    EXPECT_TRUE(read_tuned(file_).empty()) << text;
  }
  write(whole);
  EXPECT_EQ(read_tuned(file_), some_);
}

// Neither ends the program: reading a folder fails, and what is read from a pipe never comes.
TEST_F(TunedChoicesTest, AreReadFromAFileAlone) {
  fs::create_directories(file_);
  EXPECT_TRUE(read_tuned(file_).empty());
  fs::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_TRUE(read_tuned(file_).empty());
}

TEST_F(TunedChoicesTest, SayWhyTheyCannotBeWritten) {
  std::ofstream(folder_.path() / "cache") << "no folder";
  EXPECT_TRUE(read_tuned(file_).empty());
  EXPECT_THROW(add_tuned(file_, some_), UserError);
}

}  // namespace
}  // namespace tenon
