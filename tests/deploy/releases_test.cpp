// Programs that releases have saved: every later runtime opens them, and gives the same results.
#include "ir/evaluate.h"
#include "runtime_library.h"

namespace tenon::deploy {
namespace {

constexpr bool kOnArm =
#if defined(__aarch64__)
    true;
#else
    false;
#endif

// tests/data/programs/VERSION-ARCHITECTURE.tnp.
std::vector<std::filesystem::path> released_programs(std::string_view architecture) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(source_tree() / "tests/data/programs"))
    if (entry.path().filename().string().ends_with(fmt::format("-{}.tnp", architecture)))
      found.push_back(entry.path());
  return found;
}

// Whole numbers between -3 and 3; conditions hold.
Data whole_numbers(const Graph& graph) {
  Data inputs;
  for (const Value input : graph.inputs()) {
    Extents sizes;
    for (const Dim& dim : input.shape().dims())
      sizes.push_back(dim.evaluate({{"n", 7}, {"m", 64}}).value());
    std::vector<double> values(static_cast<size_t>(element_count(sizes)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = input.dtype() == DType::Bool ? 1 : static_cast<double>(i * 5 % 7) - 3;
    inputs.emplace_back(narrow<double>(input.dtype(), sizes, values));
  }
  return inputs;
}

TEST_F(Deploy, RunsProgramsOfEveryRelease) {
  const auto programs = released_programs(kOnArm ? "arm64" : "x86-64");
  ASSERT_FALSE(programs.empty());
  register_ops();
  const tenon_open_options checked = {.struct_size = sizeof checked, .target = nullptr, .check_weights = 1};
  for (const std::filesystem::path& released : programs) {
    SCOPED_TRACE(released.filename());
    std::filesystem::copy_file(released, path_, std::filesystem::copy_options::overwrite_existing);
    const auto file = runtime::ProgramFile::open(path_);
    const std::unique_ptr<Graph> model = compiler::read_saved_model(*file);
    const Data inputs = whole_numbers(*model), wanted = evaluate(*model, inputs);
    ASSERT_EQ(open(&checked), "");
    for (const int threads : {1, 2})
      expect_identical(run(inputs, wanted, threads), wanted);
    const Data got = compiler::open_program(*file, "").executor->run(inputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(identical(got[i].tensor(), wanted[i].tensor())) << "output " << i;
  }
}

TEST_F(Deploy, RefusesReleasedProgramsForOthers) {
  for (const std::filesystem::path& released : released_programs(kOnArm ? "x86-64" : "arm64")) {
    std::filesystem::copy_file(released, path_, std::filesystem::copy_options::overwrite_existing);
    EXPECT_NE(open().find("has no code for this processor"), std::string::npos) << open();
  }
}

}  // namespace
}  // namespace tenon::deploy
