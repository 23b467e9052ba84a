#include <gtest/gtest.h>

#include "api/c_interface.h"
#include "compile_here.h"
#include "compiler/save_program.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {
namespace {

class Open : public ::testing::Test {
 protected:
  void SetUp() override {
    register_ops();
    const std::unique_ptr<Graph> graph = parse(R"(
      graph main(%x: f32[n,2]) {
        %w = constant(value=f32[2,2] {1, 2, 3, 4})
        %y = matmul(%x, %w)
        return %y
      })");
    compiler::save_program({.model = *graph, .optimised = *graph, .made_with = ""},
                           {{"native", without_cache()}}, path_);
  }

  ProgramHandle open(const tenon_open_options* options = nullptr) const {
    tenon_program* program = nullptr;
    EXPECT_EQ(tenon_open(path_.c_str(), options, &program), TENON_OK) << tenon_error_message();
    return ProgramHandle(program);
  }

  static void expect_refused(const std::filesystem::path& path, const tenon_open_options* options,
                             const std::string& message) {
    tenon_program* program = nullptr;
    EXPECT_EQ(tenon_open(path.c_str(), options, &program), TENON_USER_ERROR);
    EXPECT_EQ(program, nullptr);
    EXPECT_EQ(tenon_error_message(), message);
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.tnp";
};

TEST_F(Open, GivesAProgramThatRuns) {
  const tenon_open_options options = {.struct_size = sizeof options, .target = "native", .check_weights = 1};
  for (const ProgramHandle& program : {open(), open(&options)}) {
    ASSERT_EQ(tenon_program_count_inputs(program.get()), 1U);
    EXPECT_STREQ(tenon_program_input(program.get(), 0)->type, "f32[n,2]");
    EXPECT_STREQ(tenon_program_output(program.get(), 0)->name, "y");
    Array<float> x{{1, 0, 0, 1, 1, 1}, {3, 2}}, y{std::vector<float>(6), {0, 0}};
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32)};
    ASSERT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
    EXPECT_EQ(y.elements, (std::vector<float>{1, 2, 3, 4, 4, 6}));
    EXPECT_EQ(y.sizes, (std::vector<int64_t>{3, 2}));
  }
}

TEST_F(Open, SaysWhatIsWrong) {
  const std::string none = (folder_ / "none.tnp").string();
  expect_refused(none, nullptr, "cannot open " + none + ": No such file or directory");
  tenon_open_options options = {.struct_size = sizeof options, .target = "avx2", .check_weights = 0};
  expect_refused(path_, &options,
                 path_.string() + ": the saved program has no code for avx2; it has code for native");
  options.struct_size = 1;
  expect_refused(path_, &options,
                 "options: struct_size is 1, but must be what sizeof says, which is 24 in version 0.1.0");
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_open(nullptr, nullptr, &program), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "path is NULL");
  EXPECT_EQ(tenon_open(path_.c_str(), nullptr, nullptr), TENON_USER_ERROR);
  EXPECT_STREQ(tenon_error_message(), "program is NULL");
}

TEST_F(Open, FindsDamagedWeightsWhereItIsAskedTo) {
  std::string bytes = read_file(path_);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::filesystem::path damaged = folder_.write("damaged.tnp", bytes);
  const tenon_open_options options = {.struct_size = sizeof options, .target = nullptr, .check_weights = 1};
  expect_refused(
      damaged, &options,
      damaged.string() + ": the saved program is damaged: its section \"weights\" is not as it was written");
}

}  // namespace
}  // namespace tenon
