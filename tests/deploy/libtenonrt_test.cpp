#include "runtime_library.h"

namespace tenon::deploy {
namespace {

TEST_F(Deploy, GivesTheSameBits) {
  expect_same(R"(
    graph main(%x: f32[4,64], %w: f32[64,128], %w2: f32[128,16], %b: f32[16]) {
      %0 = matmul(%x, %w)
      %1 = gelu(%0)
      %2 = matmul(%1, %w2)
      %3 = add(%2, %b)
      %4 = softmax(%3)
      %5 = sin(%4)
      return %4, %5
    })");
}

TEST_F(Deploy, TakesAnySizes) {
  expect_same(R"(
    graph main(%x: f32[n,64], %y: f32[n,16], %w: f32[64,16]) {
      %0 = matmul(%x, %w)
      %1 = add(%0, %y)
      %2 = softmax(%1, axis=0)
      return %2
    })",
              {{{"n", 1}}, {{"n", 7}}, {{"n", 130}}});
}

// Where the bytes begin at a cache line, and where they do not; damaged ones are refused.
TEST_F(Deploy, OpensProgramsInMemory) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[4,64], %w: f32[64,128]) {
      %0 = matmul(%x, %w)
      %1 = relu(%0)
      return %1
    })");
  save(*graph);
  const std::string file = read_file(path_);
  constexpr size_t kAligned = 64;
  std::vector<char> memory(file.size() + 2 * kAligned);
  char* const line = memory.data() + (kAligned - reinterpret_cast<uintptr_t>(memory.data()) % kAligned);
  const Data inputs = inputs_for(*graph, {}), wanted = compile(*graph, without_cache())->run(inputs);
  const auto opens = [&](const char* bytes, size_t size) {
    RUNTIME(free_program)(std::exchange(program_, nullptr));
    return RUNTIME(open_memory)(bytes, size, nullptr, &program_) == TENON_OK;
  };
  for (const size_t offset : {size_t{0}, size_t{1}}) {
    std::ranges::copy(file, line + offset);
    ASSERT_TRUE(opens(line + offset, file.size())) << RUNTIME(error_message)();
    expect_identical(run(inputs, wanted, 2), wanted);
  }
  std::ranges::copy(file, line);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{100}, file.size() - 1})
    EXPECT_FALSE(opens(line, size)) << size;
  EXPECT_FALSE(opens(nullptr, 1));
  line[file.size() / 2] ^= 1;
  line[100] ^= 1;
  EXPECT_FALSE(opens(line, file.size()));
  EXPECT_EQ(std::string(RUNTIME(error_message)()).find("a program in memory: "), 0U)
      << RUNTIME(error_message)();
}

TEST_F(Deploy, ChecksSizesThatDoNotGoTogether) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph main(%x: f32[n,4], %y: f32[m,3]) {
      %0 = matmul(%x, %y) from "product"
      return %0
    })");
  save(*graph);
  ASSERT_EQ(open(), "");
  const Data like = {Tensor(DType::F32, {3, 3})};
  EXPECT_EQ(run(inputs_for(*graph, {{"n", 3}, {"m", 5}}), like, 1).error,
            "node \"product\": matmul: the sizes 4 and m = 5 must be equal");
  EXPECT_EQ(run(inputs_for(*graph, {{"n", 3}, {"m", 4}}), like, 1).error, "");
}

TEST_F(Deploy, RunsBranches) {
  constexpr const char* kText = R"(
    graph main(%x: f32[n,8], %c: bool[], %w: f32[8,8]) {
      %0 = if(%c, [%x, %w]) then(%a: f32[n,8], %m: f32[8,8]) {
        %0 = matmul(%a, %m)
        return %0
      } else(%a: f32[n,8], %m: f32[8,8]) {
        %0 = exp(%a)
        return %0
      }
      return %0
    })";
  expect_same(kText, {{{"n", 5}}});
  const std::unique_ptr<Graph> graph = read(kText);
  const std::unique_ptr<runtime::Executor> compiled = compile(*graph, without_cache());
  for (const bool condition : {false, true}) {
    const Data inputs = {numbers(DType::F32, {3, 8}, 1),
                         narrow<int64_t>(DType::Bool, {}, std::vector<int64_t>{condition ? 1 : 0}),
                         Tensor(DType::F32, {8, 8})};
    const Data wanted = compiled->run(inputs);
    expect_identical(run(inputs, wanted, 1), wanted);
  }
}

// Its iterations are counted, and run over memory that stays where it is.
constexpr const char* kScan = R"(
  graph main(%h: f32[4], %xs: f32[t,4], %w: f32[4,4]) {
    %h1, %ys = scan([%h], [%xs], [%w], axes=[0], reversed=[1], output_axes=[1], output_reversed=[0])
        body(%c: f32[4], %x: f32[4], %m: f32[4,4]) {
      %0 = matmul(%c, %m)
      %1 = add(%0, %x)
      %2 = tanh(%1)
      return %2, %1
    }
    return %h1, %ys
  })";

TEST_F(Deploy, RunsScans) { expect_same(kScan, {{{"t", 1}}, {{"t", 6}}, {{"t", 0}}}); }

TEST_F(Deploy, RunsLoopsThatElementsEnd) {
  expect_same(R"(
    graph main(%x: f32[4], %limit: f32[]) {
      %y = while(carried=[%x], captured=[%limit]) body(%i: i64[], %a: f32[4], %l: f32[]) {
        %0 = add(%a, %a)
        %1 = reduce_sum(%0, axes=[0])
        %2 = abs(%1)
        %3 = cast(%i, to=f32)
        %4 = less(%3, %l)
        return %4, %0
      }
      return %y
    })");
}

TEST_F(Deploy, RefusesWhatTakesTheEvaluator) {
  save(*read(R"(
    graph main(%x: f32[40]) {
      %0 = nonzero(%x) from "find them"
      return %0
    })"));
  EXPECT_EQ(open(), path_.string() +
                        ": node \"find them\": nonzero runs in the reference evaluator, which this "
                        "runtime does without");
}

TEST_F(Deploy, SaysWhatTheMachineLacks) {
  save(*read("graph main(%x: f32[4]) { %0 = relu(%x)\n return %0 }"), "mine");
  const tenon_open_options options = {.struct_size = sizeof options, .target = "yours", .check_weights = 1};
  EXPECT_EQ(open(&options),
            path_.string() + ": the saved program has no code for yours; it has code for mine");
  EXPECT_EQ(open(), "");
}

TEST_F(Deploy, DescribesTheProgram) {
  save(*read(kScan));
  ASSERT_EQ(open(), "");
  EXPECT_EQ(RUNTIME(program_count_inputs)(program_), 3U);
  EXPECT_STREQ(RUNTIME(program_input)(program_, 1)->type, "f32[t,4]");
  EXPECT_STREQ(RUNTIME(program_output)(program_, 1)->type, "f32[4,t]");
  EXPECT_STREQ(RUNTIME(version)(), tenon_version());
  EXPECT_STREQ(RUNTIME(dtype_name)(TENON_BF16), "bf16");
  EXPECT_EQ(RUNTIME(synchronize)(program_), TENON_OK);
}

}  // namespace
}  // namespace tenon::deploy
