#include "compiler/save_program.h"

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "compiler/expect_compiled.h"
#include "runtime/read_program.h"
#include "target/compile_targets.h"

namespace tenon {

using compiler::OpenedProgram;
using runtime::ProgramFile;

namespace {

class SaveProgram : public ::testing::Test {
 protected:
  compiler::SavedSizes save(const Graph& graph) const {
    return compiler::save_program({.model = graph, .optimised = graph, .made_with = "a test"},
                                  {{"native", without_cache()}}, path_);
  }

  OpenedProgram open() const { return compiler::open_program(*ProgramFile::open(path_)); }

  // That it gives the same bits as what is compiled here.
  void expect_same(const Graph& graph,
                   const std::vector<std::map<std::string, int64_t>>& sizes = {{}}) const {
    save(graph);
    const OpenedProgram opened = open();
    const std::unique_ptr<runtime::Executor> compiled = compile(graph, without_cache());
    for (const auto& each : sizes) {
      const Data inputs = inputs_for(graph, each);
      for (const int threads : {1, 2}) {
        const Data wanted = compiled->run(inputs, {.seed = 3, .threads = threads}),
                   got = opened.executor->run(inputs, {.seed = 3, .threads = threads});
        ASSERT_EQ(wanted.size(), got.size());
        for (size_t i = 0; i < wanted.size(); ++i)
          EXPECT_TRUE(identical(wanted[i].tensor(), got[i].tensor())) << "output " << i;
      }
    }
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.tnp";
};

TEST_F(SaveProgram, GivesTheSameBits) {
  expect_same(*read(R"(
    graph main(%x: f32[4,64], %w: f32[64,128], %w2: f32[128,16], %b: f32[16]) {
      %0 = matmul(%x, %w)
      %1 = gelu(%0)
      %2 = matmul(%1, %w2)
      %3 = add(%2, %b)
      %4 = softmax(%3)
      return %4, %1
    })"));
  expect_same(*read(R"(
    graph main(%x: f32[1,3,24,24], %w: f32[16,3,3,3], %w2: f32[16,16,3,3]) {
      %0 = conv(%x, %w, pads=[1, 1, 1, 1])
      %1 = relu(%0)
      %2 = conv(%1, %w2, pads=[1, 1, 1, 1])
      return %2
    })"));
}

TEST_F(SaveProgram, TakesAnySizes) {
  expect_same(*read(R"(
    graph main(%x: f32[n,64], %y: f32[n,16], %w: f32[64,16]) {
      %0 = matmul(%x, %w)
      %1 = add(%0, %y)
      %2 = softmax(%1, axis=0)
      return %2
    })"),
              {{{"n", 1}}, {{"n", 7}}, {{"n", 130}}});
  const OpenedProgram opened = open();
  EXPECT_THROW(opened.executor->run({Tensor(DType::F32, {2, 64}), Tensor(DType::F32, {3, 16})}), UserError);
}

// As the program that is compiled does.
TEST_F(SaveProgram, ChecksSizesThatDoNotGoTogether) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[n,4], %y: f32[m,3]) {
      %0 = matmul(%x, %y)
      %1 = add(%0, %0)
      return %1
    })");
  expect_same(*graph, {{{"n", 3}, {"m", 4}}});
  const Data inputs = inputs_for(*graph, {{"n", 3}, {"m", 5}});
  expect_error<UserError>(
      [&] { compile(*graph, without_cache())->run(inputs); },
      "a matmul node: matmul: inner dimensions differ\n  a  %x: f32[3,4]\n  b  %y: f32[5,3]\n  inner "
      "dimensions: 4 of a, 5 of b");
  // It has what infer asks for as formulas.
  expect_error<UserError>([&] { open().executor->run(inputs); },
                          "a matmul node: matmul: the sizes 4 and m = 5 must be equal");
}

TEST_F(SaveProgram, CallsFunctionsOutside) {
  expect_same(*read(R"(
    graph main(%x: f64[1000]) {
      %0 = sin(%x)
      %1 = cos(%x)
      %2 = add(%0, %1)
      return %2
    })"));
}

TEST_F(SaveProgram, KeepsWhatRunsOnTheHost) {
  expect_same(*read(R"(
    graph main(%x: f32[40]) {
      %0 = relu(%x)
      %1 = nonzero(%0) from "find them"
      %2 = cast(%1, to=f32)
      %3 = mul(%2, %2)
      return %3
    })"));
}

TEST_F(SaveProgram, KeepsNestedGraphs) {
  expect_same(*read(R"(
    graph main(%x: f32[5,8], %w: f32[8,8]) {
      %s = reduce_sum(%x, axes=[0, 1])
      %z = constant(value=f32[] {0})
      %c = greater(%s, %z)
      %0 = if(%c, [%x, %w]) then(%a: f32[5,8], %m: f32[8,8]) {
        %0 = matmul(%a, %m)
        return %0
      } else(%a: f32[5,8], %m: f32[8,8]) {
        %0 = exp(%a)
        return %0
      }
      return %0
    })"));
}

TEST_F(SaveProgram, StoresEqualWeightsOnce) {
  const auto model = [](const char* second) {
    return read(fmt::format(R"(
      graph main(%x: f32[1,256], %y: f32[1,256], %w: f32[256,256]) {{
        %v = transpose(%w, permutation=[1, 0])
        %0 = matmul(%x, %w)
        %1 = matmul(%y, {})
        return %0, %1
      }})",
                            second));
  };
  EXPECT_GE(save(*model("%v")).weights, 2 * 256 * 256 * 4U);
  EXPECT_LT(save(*model("%w")).weights, 2 * 256 * 256 * 4U);
}

// In the layout of the first, of which the others make theirs.
TEST_F(SaveProgram, StoresWeightsOnceForSeveralTargets) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[4,192], %w: f32[192,200], %w2: f32[160,200], %q: u8[4,192], %wq: i8[192,96]) {
      %0 = matmul(%x, %w)
      %1 = gelu(%0)
      %2 = matmul(%1, %w2, transpose_b=true)
      %3 = cast(%q, to=i32)
      %4 = cast(%wq, to=i32)
      %5 = matmul(%3, %4)
      return %2, %5
    })");
  std::vector<compiler::TargetToSave> targets;
  for (const char* name : {"armv8.6", "x86-64", "x86-64-v3", "x86-64-v4", "sapphirerapids"}) {
    targets.push_back({name, without_cache()});
    targets.back().context.target = compile_target(name);
  }
  targets.push_back({"native", without_cache()});
  const auto save_all = [&](const std::vector<compiler::TargetToSave>& all) {
    return compiler::save_program({.model = *graph, .optimised = *graph, .made_with = ""}, all, path_);
  };
  const uint64_t alone = save_all({targets.front()}).weights;
  const auto expect_same = [&] {
    const Data inputs = inputs_for(*graph, {});
    const Data wanted = compile(*graph, without_cache())->run(inputs),
               got = compiler::open_program(*ProgramFile::open(path_), "native").executor->run(inputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(identical(wanted[i].tensor(), got[i].tensor())) << "output " << i;
  };
  EXPECT_LT(static_cast<double>(save_all(targets).weights), 1.05 * static_cast<double>(alone));
  expect_same();
  std::ranges::rotate(targets, targets.end() - 2);  // sapphirerapids first, whose weights are in three parts
  EXPECT_LT(static_cast<double>(save_all(targets).weights), 1.6 * static_cast<double>(alone));
  expect_same();
}

// Where one target reads windows transformed, and others as they are or in other tiles.
TEST_F(SaveProgram, StoresWindowsOnceForSeveralTargets) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[1,64,14,14], %w: f32[64,64,3,3]) {
      %0 = conv(%x, %w, pads=[1, 1, 1, 1])
      return %0
    })");
  constexpr uint64_t kWindowBytes = 64 * 64 * 9 * 4;
  std::vector<compiler::TargetToSave> targets;
  for (const int64_t tile : {4, 2, 0}) {
    compiler::CompileContext context = without_cache();
    for (const compiler::FusedKernel& kernel : compiler::fusion_of(*graph, context).after)
      if (kernel.contraction)
        context.tuning[kernel.contraction->contraction->key] = {.winograd_tile = tile};
    targets.push_back({fmt::format("tiles{}", tile), context});
  }
  const auto save_all = [&](const std::vector<compiler::TargetToSave>& all) {
    return compiler::save_program({.model = *graph, .optimised = *graph, .made_with = ""}, all, path_)
        .weights;
  };
  const Data inputs = inputs_for(*graph, {});
  for (size_t first = 0; first < targets.size(); ++first) {
    const uint64_t alone = save_all({targets.front()});
    const bool is_transformed = targets.front().name != "tiles0";
    EXPECT_EQ(alone > kWindowBytes * 3 / 2, is_transformed);
    EXPECT_LT(save_all(targets), alone + (is_transformed ? kWindowBytes / 5 : 0) + 1);
    for (const auto& [name, context] : targets)
      EXPECT_TRUE(identical(
          compiler::open_program(*ProgramFile::open(path_), name).executor->run(inputs).front().tensor(),
          compile(*graph, context)->run(inputs).front().tensor()))
          << name << " where " << targets.front().name << " is first";
    std::ranges::rotate(targets, targets.begin() + 1);
  }
}

TEST_F(SaveProgram, KnowsItsModel) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[4,64], %w: f32[64,8]) {
      %0 = matmul(%x, %w)
      return %0 as "scores"
    })");
  save(*graph);
  const auto file = ProgramFile::open(path_);
  EXPECT_EQ(compiler::model_text(*file), print(*graph));
  EXPECT_EQ(compiler::made_with(*file), "a test");
  const std::unique_ptr<Graph> model = compiler::read_saved_model(*file);
  EXPECT_EQ(model->output_names().front(), "scores");
  expect_error<UserError>(
      [&] { evaluate(*model, inputs_for(*model, {})); },
      "a constant node: the elements of large constants are not at hand\n  hint: the model itself has them");
}

TEST_F(SaveProgram, RefusesWhatTakesTheEvaluatorWhereThereIsNone) {
  save(*read(R"(
    graph main(%x: f32[40]) {
      %0 = nonzero(%x) from "find them"
      return %0
    })"));
  expect_error<UnsupportedError>(
      [&] { runtime::read_program(*ProgramFile::open(path_), "native", nullptr); },
      path_.string() +
          ": node \"find them\": nonzero runs in the reference evaluator, which this runtime does without");
}

}  // namespace
}  // namespace tenon
