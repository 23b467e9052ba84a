#include "runtime/program_file.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "runtime/choose_target.h"
#include "target/named_targets.h"

namespace tenon::runtime {
namespace {

class ProgramFileTest : public ::testing::Test {
 protected:
  static SectionToWrite section(std::string name, const std::string& text) {
    return {.name = std::move(name), .pieces = {{0, std::as_bytes(std::span(text))}}};
  }

  void write() const {
    SectionToWrite weights = section("weights", first_);
    weights.pieces.push_back({4096, std::as_bytes(std::span(second_))});
    weights.alignment = 4096;
    write_program_file(path_, {section("notes", notes_), weights});
  }

  std::shared_ptr<const ProgramFile> with_byte(uint64_t offset) const {
    std::string bytes = read_file(path_);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 4);
    folder_.write("damaged.tnp", bytes);
    return ProgramFile::open(folder_ / "damaged.tnp");
  }

  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void expect_refused(const std::string& bytes, const std::string& message) const {
    const std::filesystem::path path = folder_.write("other.tnp", bytes);
    expect_error<UserError>([&] { ProgramFile::open(path); }, path.string() + ": " + message);
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.tnp";
  const std::string notes_ = "some notes", first_ = "first", second_ = std::string(100000, 'w');
};

TEST_F(ProgramFileTest, HasWhatWasWritten) {
  write();
  const auto file = ProgramFile::open(path_);
  EXPECT_TRUE(file->has("notes"));
  EXPECT_FALSE(file->has("note"));
  EXPECT_EQ(text(file->bytes_of("notes")), notes_);
  const std::span<const std::byte> weights = file->bytes_of("weights");
  EXPECT_EQ(file->offset_of("weights") % 4096, 0U);
  EXPECT_EQ(weights.size(), 4096 + second_.size());
  EXPECT_EQ(text(weights.first(6)), first_ + '\0');
  EXPECT_EQ(text(weights.subspan(4096, second_.size())), second_);
  file->check_weights();
  expect_error<UserError>([&] { file->bytes_of("code"); },
                          path_.string() + ": the saved program has no section \"code\"");
}

TEST_F(ProgramFileTest, KnowsADamagedSection) {
  write();
  const auto file = ProgramFile::open(path_);
  const std::string damaged = (folder_ / "damaged.tnp").string() + ": the saved program is damaged: ";
  expect_error<UserError>([&] { with_byte(file->offset_of("notes") + 3); },
                          damaged + "its section \"notes\" is not as it was written");
  const auto weights = with_byte(file->offset_of("weights") + 70000);
  expect_error<UserError>([&] { weights->check_weights(); },
                          damaged + "its section \"weights\" is not as it was written");
  for (uint64_t offset = 12; offset < 100; ++offset)
    EXPECT_THROW(with_byte(offset), UserError) << offset;
}

TEST_F(ProgramFileTest, KnowsWhatIsNone) {
  write();
  const std::string bytes = read_file(path_);
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, size_t{200}, size_t{32}})
    expect_refused(
        bytes.substr(0, size),
        fmt::format("the saved program is cut off: {} of its {} bytes are there", size, bytes.size()));
  expect_refused("", "this is no saved program\n  hint: the file is empty");
  expect_refused("graph main() {}", "this is no saved program");
  expect_refused(bytes.substr(0, 31), "this is no saved program");
  expect_refused(bytes + "more", "the saved program is damaged: its header is not as it was written");
  std::string later = bytes;
  later[8] = 2;
  expect_refused(later, "a later version of Tenon saved this program, in format 2; this one reads format 1");
  std::string without = bytes;
  without[8] = 0;
  expect_refused(without, "the saved program is damaged: its header is not as it was written");
}

class ChooseTarget : public ProgramFileTest {
 protected:
  void write(const std::vector<std::string>& names) const {
    std::vector<SavedTarget> targets;
    for (const std::string& name : names) {
      const Target target = target_named(name);
      targets.push_back({name, target.architecture, target.cpu, target.features});
    }
    const std::string text = print_targets(targets);
    write_program_file(path_, {section(std::string(kTargetsSection), text)});
  }
  std::string choose(const std::string& machine, const std::string& wanted = "") const {
    return choose_target(*ProgramFile::open(path_), target_named(machine), wanted);
  }
};

TEST_F(ChooseTarget, TakesTheBestThatTheMachineRuns) {
  write({"avx2", "amx", "avx512", "neon"});
  EXPECT_EQ(choose("avx2"), "avx2");
  EXPECT_EQ(choose("avx512"), "avx512");
  EXPECT_EQ(choose("amx"), "amx");
  EXPECT_EQ(choose("neon-i8mm"), "neon");
  EXPECT_EQ(choose("amx", "avx2"), "avx2");
}

TEST_F(ChooseTarget, SaysWhatIsMissing) {
  write({"avx512", "neon"});
  const std::string avx512 = "avx512 needs +avx512f, +avx512cd, +avx512bw, +avx512dq, +avx512vl, +avx512vnni";
  expect_error<UserError>([&] { choose("avx2"); },
                          path_.string() + ": the saved program has no code for this processor: " + avx512 +
                              "; neon needs arm64");
  expect_error<UserError>([&] { choose("avx2", "avx512"); },
                          path_.string() + ": the saved program has no code for this processor: " + avx512);
  expect_error<UserError>(
      [&] { choose("amx", "amx"); },
      path_.string() + ": the saved program has no code for amx; it has code for avx512, neon");
}

TEST_F(ChooseTarget, KnowsTheLevelsOfX86) {
  Target machine = target_named("avx2");
  machine.cpu = "x86-64-v2";
  write({"avx2"});
  expect_error<UserError>(
      [&] { choose_target(*ProgramFile::open(path_), machine); },
      path_.string() + ": the saved program has no code for this processor: avx2 needs x86-64-v3");
}

}  // namespace
}  // namespace tenon::runtime
