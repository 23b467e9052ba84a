// Programs for sizes that come again and again: when they are made, and that they give the same.
#include "runtime/hot_sizes.h"

#include <thread>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::CompileContext;
using runtime::Executor;
using runtime::HotSizes;

namespace {

std::unique_ptr<Graph> convolution() {
  return read(R"(graph(%x: f32[n,16,h,w], %w: f32[24,16,3,3], %w2: f32[24,8,4,4]) {
    %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
    %1 = relu(%0)
    %2 = conv_transpose(%1, %w2, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[0,0], groups=1)
    return %2
  })");
}

const Bindings kSmall{{"n", 1}, {"h", 9}, {"w", 14}}, kLarge{{"n", 2}, {"h", 20}, {"w", 17}};

struct Counted {
  int made = 0;
  HotSizes::Make make = [this](const Bindings& sizes) {
    ++made;
    return compile(*convolution()->bind({sizes.begin(), sizes.end()}), without_cache());
  };
};

TEST(HotSizes, AreThoseThatComeOften) {
  Counted counted;
  HotSizes hot(counted.make, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(hot.find(kSmall), nullptr);
    EXPECT_EQ(hot.find({{"n", 1}, {"h", i + 3}, {"w", 14}}), nullptr);
  }
  EXPECT_EQ(counted.made, 0);
  const Executor* special = hot.find(kSmall);
  ASSERT_NE(special, nullptr);
  EXPECT_TRUE(special->has_fixed_sizes());
  EXPECT_EQ(hot.find(kSmall), special);
  EXPECT_EQ(hot.find(kLarge), nullptr);
  EXPECT_EQ(counted.made, 1);
}

// Which branch gives the result, and so its rank, follows from the size.
TEST(HotSizes, DecideBranchesThatDependOnSizes) {
  const std::unique_ptr<Graph> graph = read(R"(graph(%x: f32[n,8], %v: f32[8,8]) {
    %s = shape(%x)
    %first = constant(value=i64[1] {0})
    %one = constant(value=i64[1] {1})
    %n = gather(%s, %first, axis=0)
    %is_one = equal(%n, %one)
    %c = squeeze(%is_one, axes=[0])
    %0 = if(%c, [%x, %v]) then(%x: f32[n,8], %v: f32[8,8]) {
      %0 = matmul(%x, %v)
      %1 = squeeze(%0, axes=[0])
      return %1
    } else(%x: f32[n,8], %v: f32[8,8]) {
      %0 = matmul(%x, %v)
      return %0
    }
    %1 = relu(%0)
    return %1
  })");
  const auto executor = compile(*graph, without_cache());
  for (const int64_t rows : {1, 3}) {
    Tensor x(DType::F32, {rows, 8}), v(DType::F32, {8, 8});
    std::ranges::fill(x.mutable_data<float>(), 0.5F);
    std::ranges::fill(v.mutable_data<float>(), 0.25F);
    for (int run = 0; run < 2 * runtime::kRunsUntilHot; ++run) {
      const Tensor y = executor->run({x, v})[0].tensor();
      EXPECT_EQ(y.extents(), rows == 1 ? Extents({8}) : Extents({3, 8}));
      EXPECT_EQ(y.data<float>()[7], 1);
    }
  }
}

TEST(HotSizes, AreFew) {
  Counted counted;
  HotSizes hot(counted.make, 1);
  for (int64_t size = 3; size < 100; ++size)
    for (int i = 0; i < 5; ++i)
      hot.find({{"n", 1}, {"h", size}, {"w", 5}});
  EXPECT_EQ(counted.made, 4);
  EXPECT_NE(hot.find({{"n", 1}, {"h", 3}, {"w", 5}}), nullptr) << "its program was forgotten";
}

TEST(HotSizes, AreNoneWhereProgramsWouldFillMemory) {
  Counted counted;
  HotSizes hot(counted.make, INT64_MAX);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(hot.find(kSmall), nullptr);
  EXPECT_EQ(counted.made, 0);
}

TEST(HotSizes, AreNoneWhereMemoryIsShort) {
  HotSizes hot([](const Bindings&) -> std::unique_ptr<Executor> { throw std::bad_alloc(); }, 1);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(hot.find(kSmall), nullptr);
}

TEST(HotSizes, AreAskedForOnceWhereNoProgramCanBeMade) {
  int asked = 0;
  HotSizes hot(
      [&](const Bindings&) -> std::unique_ptr<Executor> {
        ++asked;
        throw user_error("too large");
      },
      1);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(hot.find(kSmall), nullptr);
  EXPECT_EQ(asked, 1);
  for (int64_t size = 3; size < 103; ++size)  // more than are counted
    for (int i = 0; i < 5; ++i)
      hot.find({{"n", 1}, {"h", size}, {"w", 5}});
  EXPECT_EQ(asked, 101) << "it counted as one of those that were made";
}

void expect_near(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.extents(), wanted.extents());
  const std::vector<double> a = widen<double>(got), b = widen<double>(wanted);
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-4) << "element " << i;
}

// One run after the other, by sizes in turn; also with memory of the caller's.
TEST(HotSizes, GiveWhatTheEvaluatorDoes) {
  const std::unique_ptr<Graph> graph = convolution();
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (int i = 0; i < 7; ++i)
    for (const Bindings& sizes : {kSmall, kLarge}) {
      const Data inputs = inputs_for(*graph, sizes);
      const Tensor wanted = evaluate(*graph, inputs)[0].tensor();
      Bindings told;
      expect_near(program->run(inputs, {.threads = 2, .sizes = &told})[0].tensor(), wanted);
      EXPECT_EQ(told, sizes);
      Tensor into(DType::F32, wanted.extents());
      void* const memory = into.mutable_bytes().data();
      program->run_into(inputs, {&memory, 1}, {.threads = 2});
      expect_near(into, wanted);
    }
}

TEST(HotSizes, OfSeveralThreadsAtOnce) {
  const std::unique_ptr<Graph> graph = convolution();
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const Data inputs = inputs_for(*graph, kSmall);
  const Tensor wanted = evaluate(*graph, inputs)[0].tensor();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        expect_near(program->run(inputs)[0].tensor(), wanted);
    });
  for (std::thread& thread : threads)
    thread.join();
}

// Steps have numbers, which those of another program do not fit.
TEST(HotSizes, AreNotThoseOfRunsThatAreWatched) {
  const std::unique_ptr<Graph> graph = convolution();
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const Data inputs = inputs_for(*graph, kSmall);
  for (int i = 0; i < 6; ++i) {
    size_t last = 0;
    const std::function<void(size_t)> after_step = [&](size_t step) { last = step; };
    program->run(inputs, {.after_step = &after_step});
    EXPECT_EQ(last + 1, program->program().steps.size());
    program->run(inputs);
  }
}

TEST(HotSizes, OfStrictNumericsGiveTheSameBits) {
  const std::unique_ptr<Graph> graph = convolution();
  CompileContext options = without_cache();
  options.numerics = NumericsBudget::Strict;
  const std::unique_ptr<Executor> program = compile(*graph, options);
  const Data inputs = inputs_for(*graph, kLarge);
  const std::vector<double> first = widen<double>(program->run(inputs)[0].tensor());
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(widen<double>(program->run(inputs)[0].tensor()), first);
}

// An input that nothing reads is not asked for its sizes, so a program for them would be the same again.
TEST(HotSizes, AreNotThoseThatNothingReads) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph(%x: f32[1,3,h+1,8], %y: f32[h], %z: f32[100], %w: f32[4,3,3,3]) {
    %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
    %1 = relu(%z)
    return %0, %1
  })");
  const ScratchFolder folder;
  CompileContext options = without_cache();
  const std::filesystem::path code = folder.path() / "code";
  options.cache = codegen::ObjectCache(code);
  const std::unique_ptr<Executor> program = compile(*graph, options);
  EXPECT_GT(std::filesystem::remove_all(code), 0U);
  const Data inputs = inputs_for(*graph, {{"h", 8}});
  for (int i = 0; i < 10; ++i)
    program->run(inputs);
  EXPECT_FALSE(std::filesystem::exists(code)) << "code was generated again";
}

TEST(HotSizes, WrongInputsStayWrong) {
  const std::unique_ptr<Graph> graph = convolution();
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const Data wrong{numbers(DType::F32, {1, 15, 9, 14}, 1)};
  for (int i = 0; i < 6; ++i)
    EXPECT_THROW(program->run(wrong), UserError);
}

}  // namespace
}  // namespace tenon
