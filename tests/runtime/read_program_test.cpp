// Programs whose tables make no sense, though they are as they were written.
#include "runtime/read_program.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "runtime/write_program.h"

namespace tenon::runtime {
namespace {

class ReadProgramTest : public ::testing::Test {
 protected:
  void write(const Program& program, const std::vector<Dim>& operations = {}) const {
    const std::string tables = write_tables(
        {.program = program, .imports = Imports(), .operations = operations, .place = [](const Tensor&) {
           return WeightPlace();
         }});
    const auto section = [](std::string name, std::string_view text) {
      return SectionToWrite{.name = std::move(name), .pieces = {{0, std::as_bytes(std::span(text))}}};
    };
    write_program_file(path_, {section(tables_section("native"), tables), section(code_section("native"), ""),
                               section(std::string(kWeightsSection), "")});
  }

  Program read() const { return *read_program(*ProgramFile::open(path_), "native", nullptr).program; }

  void expect_refused(const Program& program, const std::vector<Dim>& operations = {}) const {
    write(program, operations);
    expect_error<UserError>([&] { read(); },
                            path_.string() + ": the saved program is damaged: its tables make no sense");
  }

  static Program named(std::string name) {
    Program program;
    program.name = std::move(name);
    program.target = this_machine();
    return program;
  }

  // An if between two values, by the first.
  static Program branch() {
    Program program = named("main");
    for (const char* name : {"c", "x", "y"})
      program.slots.push_back({.name = name, .type = Type::tensor(DType::F32, {})});
    HostStep step{.op = "if",
                  .described = "node \"a\"",
                  .sources = {"a"},
                  .control = ControlFlow{.has_condition = true, .captured = 1},
                  .reads = {0, 1},
                  .writes = {2}};
    for (const char* name : {"then", "else"}) {
      auto region = std::make_shared<Program>(named(name));
      region->inputs = {{"x", Type::tensor(DType::F32, {}), true}};
      region->output_names = {"y"};
      region->outputs = {0};
      region->slots = {{.name = "x", .type = Type::tensor(DType::F32, {}), .home = Home::Input}};
      step.regions.emplace(name, std::move(region));
    }
    program.steps = {std::move(step)};
    return program;
  }

  static ControlFlow& control_of(Program& program) {
    return *std::get<HostStep>(program.steps.front()).control;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.tnp";
};

TEST_F(ReadProgramTest, GivesWhatWasWritten) {
  write(branch());
  const Program program = read();
  EXPECT_EQ(program.slots.size(), 3U);
  EXPECT_EQ(std::get<HostStep>(program.steps.front()).described, "node \"a\"");
}

TEST_F(ReadProgramTest, RefusesOperandsThatThereAreNot) {
  Program program = branch();
  control_of(program).captured = 2;
  expect_refused(program);
  // Their sum is right, but wraps around.
  program = branch();
  control_of(program).carried = 1;
  control_of(program).scanned = ~uint64_t{0};
  expect_refused(program);
}

TEST_F(ReadProgramTest, RefusesMemoryThatIsNowhere) {
  Program program = branch();
  program.slots[2].alias = 1;
  write(program);
  EXPECT_EQ(read().slots[2].alias, 1U);
  program.slots[1].alias = 2;
  expect_refused(program);
  program.slots[1].alias = 7;
  expect_refused(program);
}

// Following each alias of it to the end would take minutes.
TEST_F(ReadProgramTest, ReadsLongChainsOfAliasesAtOnce) {
  constexpr size_t kCount = 200'000;
  Program program = named("main");
  program.slots.assign(kCount, {.name = "x", .type = Type::tensor(DType::F32, {})});
  for (size_t i = 0; i + 1 < kCount; ++i)
    program.slots[i].alias = i + 1;
  write(program);
  EXPECT_EQ(read().slots.size(), kCount);
  program.slots.back().alias = kCount / 2;
  expect_refused(program);
}

TEST_F(ReadProgramTest, RefusesOperationsOfKernelsThatThereAreNot) { expect_refused(branch(), {Dim(1)}); }

}  // namespace
}  // namespace tenon::runtime
