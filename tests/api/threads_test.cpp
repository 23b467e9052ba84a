// One program run by two threads at once. test_threads is this with ThreadSanitizer, which sees what one
// thread does to another's numbers even where they come out right.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "api/c_interface.h"

namespace tenon {
namespace {

using Floats = Array<float>;

constexpr int kTurns = 50;

// work(number) for two callers.
template <class Work>
void in_two_threads(const Work& work) {
  std::thread other(work, 1);
  work(0);
  other.join();
}

// What a program of one input and one output of the same size gives.
std::vector<float> apply(const ProgramHandle& program, Floats x, int64_t threads, uint64_t seed = 0) {
  Floats y = x;
  const tenon_tensor input = x.tensor(TENON_F32);
  tenon_tensor output = y.tensor(TENON_F32);
  const tenon_run_options options{
      .struct_size = sizeof options, .threads = threads, .seed = seed, .stream = nullptr};
  EXPECT_EQ(tenon_run(program.get(), &input, 1, &output, 1, &options), TENON_OK) << tenon_error_message();
  return y.elements;
}

Floats filled(int64_t count, float number) {
  return {std::vector<float>(static_cast<size_t>(count), number), {count}};
}

// Twice each element, and the sum of the first four.
std::string twice_and_sum(const std::string& type) {
  return "graph main(%x: " + type + R"() {
    %begin = constant(value=i64[1] {0})
    %end = constant(value=i64[1] {4})
    %0 = slice(%x, %begin, %end, axes=[0])
    %1 = reduce_sum(%0, axes=[0], keep_dims=true)
    %2 = add(%x, %x)
    %3 = add(%2, %1)
    return %3
  })";
}

// Each thread has numbers of its own; what one computes must not show up in another's.
void run_twice_and_sum(const std::string& type, const std::function<int64_t(int caller, int turn)>& count) {
  const ProgramHandle program = compile_text(twice_and_sum(type));
  in_two_threads([&](int caller) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto number = static_cast<float>(1000 * caller + turn);
      const Floats x = filled(count(caller, turn), number);
      ASSERT_EQ(apply(program, x, 2), std::vector<float>(x.elements.size(), 2 * number + 4 * number));
    }
  });
}

TEST(Threads, RunOneProgramOfFixedSizes) {
  run_twice_and_sum("f32[64]", [](int, int) { return 64; });
}

TEST(Threads, RunOneProgramOfOtherSizes) {
  run_twice_and_sum("f32[n]", [](int, int) { return 64; });
}

// Each finds out what follows from sizes that are new, and forgets what the other found out.
TEST(Threads, RunOneProgramOnSizesOfTheirOwn) {
  run_twice_and_sum("f32[n]", [](int caller, int turn) { return 4 + 3 * caller + turn; });
}

// So many elements that each run wants two threads of the pool.
TEST(Threads, RunOneLargeProgram) {
  run_twice_and_sum("f32[50000]", [](int, int) { return 50000; });
}

// A loop whose body has a branch, and a step that no code is generated for.
TEST(Threads, RunStepsOnTheHost) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n]) {
    %zero = constant(value=i64[] {0})
    %go = constant(value=bool[] {1})
    %0, %1 = while(condition=%go, carried=[%zero, %x]) body(%turn: i64[], %i: i64[], %y: f32[n]) {
      %one = constant(value=i64[] {1})
      %next = add(%i, %one)
      %end = constant(value=i64[] {3})
      %more = less(%next, %end)
      %odd = greater(%i, %one)
      %0 = if(%odd, [%y]) then(%a: f32[n]) {
        %0 = neg(%a)
        return %0
      } else(%a: f32[n]) {
        %0 = add(%a, %a)
        return %0
      }
      return %more, %next, %0
    }
    %k = shape(%1)
    %axis = constant(value=i64[] {0})
    %all = gather(%k, %axis)
    %2, %3 = top_k(%1, %all)
    return %2
  })");
  in_two_threads([&](int caller) {
    for (int turn = 0; turn < kTurns; ++turn) {
      Floats x = filled(2 + turn % 7, 0);
      for (size_t i = 0; i < x.elements.size(); ++i)
        x.elements[i] = static_cast<float>(caller + static_cast<int>(i));
      std::vector<float> wanted;
      for (float number : x.elements)  // doubled twice, negated, and the greatest first
        wanted.push_back(-4 * number);
      ASSERT_EQ(apply(program, x, 2), wanted);
    }
  });
}

// Two loops, so much work that each takes a thread of the pool where one is free.
TEST(Threads, RunLoopsBesideEachOther) {
  const std::string body = R"(body(%h: f32[9000], %x: f32[]) {
      %0 = add(%h, %x)
      return %0
    })";
  const std::string rest = "axes=[0], reversed=[0], output_axes=[], output_reversed=[]) ";
  const ProgramHandle program =
      compile_text("graph main(%x: f32[9000], %s: f32[4]) { %n = neg(%x) %0 = scan([%x], [%s], " + rest +
                   body + " %1 = scan([%n], [%s], " + rest + body + " %2 = mul(%0, %1) return %2 }");
  const Floats steps = {{1, 2, 3, 4}, {4}};
  in_two_threads([&](int caller) {
    for (int turn = 0; turn < kTurns; ++turn) {
      Floats x = filled(9000, static_cast<float>(caller + turn)), s = steps, y = x;
      const tenon_tensor inputs[] = {x.tensor(TENON_F32), s.tensor(TENON_F32)};
      tenon_tensor output = y.tensor(TENON_F32);
      const tenon_run_options options{
          .struct_size = sizeof options, .threads = 2, .seed = 0, .stream = nullptr};
      ASSERT_EQ(tenon_run(program.get(), inputs, 2, &output, 1, &options), TENON_OK) << tenon_error_message();
      const float number = x.elements.front();
      ASSERT_EQ(y.elements, std::vector<float>(9000, (number + 10) * (10 - number)));
    }
  });
}

TEST(Threads, DrawByTheirOwnSeeds) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n]) {
    %shape = shape(%x)
    %0 = random_uniform(%shape, dtype=f32)
    %1 = add(%x, %0)
    return %1
  })");
  const std::vector<float> drawn[] = {apply(program, filled(9, 0), 1, 0), apply(program, filled(9, 0), 1, 1)};
  EXPECT_NE(drawn[0], drawn[1]);
  in_two_threads([&](int caller) {
    for (int turn = 0; turn < kTurns; ++turn)
      ASSERT_EQ(apply(program, filled(9, 0), 1, static_cast<uint64_t>(caller)), drawn[caller]);
  });
}

// How a sum is cut up depends neither on how many threads were asked for, nor on how many are free.
TEST(Threads, SumInTheSameOrder) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[n]) {
    %0 = reduce_sum(%x, axes=[0], keep_dims=true)
    %1 = exp(%x)
    %2 = reduce_sum(%1, axes=[0], keep_dims=true)
    %3 = div(%x, %0)
    %4 = mul(%3, %2)
    return %4
  })");
  Floats x = filled(70000, 0);
  for (size_t i = 0; i < x.elements.size(); ++i)
    x.elements[i] = static_cast<float>(i * 2654435761 % 1000) * 1e-3F;
  const std::vector<float> wanted = apply(program, x, 1);
  in_two_threads([&](int) {
    for (int turn = 0; turn < 12; ++turn)
      ASSERT_EQ(apply(program, x, 1 + turn % 3), wanted);
  });
}

// --- while the other gives what does not fit ---

struct BadRun {
  std::vector<tenon_tensor> inputs;
  std::string message;
};

TEST(Threads, GoOnWhileOthersFail) {
  const ProgramHandle program = compile_text(R"(graph main(%a: f32[n,2], %b: f32[2,m], %i: i64[m]) {
    %0 = matmul(%a, %b)
    %1 = gather(%0, %i, axis=1)
    return %1 as "y"
  })");
  Floats a{{1, 2}, {1, 2}}, b{{3, 4}, {2, 1}}, three{{1, 2, 3}, {1, 3}};
  Array<int64_t> i{{0}, {1}}, far{{5}, {1}}, two{{0, 0}, {2}};
  const tenon_tensor good[] = {a.tensor(TENON_F32), b.tensor(TENON_F32), i.tensor(TENON_I64)};
  const auto run_with = [&](const std::vector<tenon_tensor>& inputs, float& result) {
    tenon_tensor y{.struct_size = sizeof y,
                   .data = &result,
                   .bytes = sizeof result,
                   .dtype = TENON_F32,
                   .rank = 0,
                   .sizes = nullptr,
                   .strides = nullptr,
                   .device = {}};
    return tenon_run(program.get(), inputs.data(), inputs.size(), &y, 1, nullptr);
  };
  const std::vector<BadRun> bad = {
      {{good[0], good[1]}, "the program takes 3 inputs, but 2 were given"},
      {{good[0], good[1], good[2], good[2]}, "the program takes 3 inputs, but 4 were given"},
      {{three.tensor(TENON_F32), good[1], good[2]}, "input a must be f32[n,2], but is f32[1,3]"},
      {{good[0], good[2], good[2]}, "input b must be f32[2,m], but is i64"},
      {{good[0], good[1], two.tensor(TENON_I64)}, "input i must be i64[m], where m = 1, but is i64[2]"},
      {{good[0], good[1], far.tensor(TENON_I64)},
       "node \"gather\": an index is out of range, or an integer is divided by zero"}};
  in_two_threads([&](int caller) {
    for (int turn = 0; turn < kTurns; ++turn) {
      float result = 0;
      if (caller == 1) {
        const BadRun& each = bad[static_cast<size_t>(turn) % bad.size()];
        ASSERT_EQ(run_with(each.inputs, result), TENON_USER_ERROR);
        ASSERT_EQ(tenon_error_message(), each.message);
      }
      ASSERT_EQ(run_with({std::begin(good), std::end(good)}, result), TENON_OK) << tenon_error_message();
      ASSERT_EQ(result, 11);
    }
  });
}

}  // namespace
}  // namespace tenon
