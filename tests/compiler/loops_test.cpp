// Loops and recurrent layers, compiled: what they give, and that their iterations run over memory in place.
#include <thread>

#include "compiler/expect_compiled.h"
#include "compiler/print_program.h"
#include "runtime/run_loop.h"

namespace tenon {

using compiler::compile;
using compiler::print_program;
using runtime::Executor;
using runtime::HostStep;
using runtime::LoopRun;
using runtime::Step;

namespace {

void expect_near(const Data& got, const Data& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].tensor().extents(), wanted[i].tensor().extents()) << "output " << i;
    const std::vector<double> a = widen<double>(got[i].tensor()), b = widen<double>(wanted[i].tensor());
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], 1e-5) << "output " << i << ", element " << k;
  }
}

// Several runs of one program, with inputs of these sizes in turn.
void expect_as_evaluated(std::string_view text, const std::vector<Data>& runs) {
  const std::unique_ptr<Graph> graph = read(text);
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (const Data& inputs : runs) {
    const Data wanted = evaluate(*graph, inputs);
    for (const int threads : {1, 2, 3})
      expect_near(program->run(inputs, {.seed = 0, .threads = threads}), wanted);
  }
}

Tensor floats(const Extents& extents, uint64_t seed = 1) { return numbers(DType::F32, extents, seed); }
Tensor ints(const std::vector<int64_t>& values) { return Tensor::of(values); }

std::string program_text(std::string_view text, const Bindings& sizes = {}) {
  return print_program(compile(*read(text), without_cache())->program(), sizes);
}

// Whether the iterations of the first loop of a program run in place.
bool runs_in_place(std::string_view text, const Data& operands) {
  const std::unique_ptr<Graph> graph = read(text);
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (const Step& step : program->program().steps)
    if (const auto* host = std::get_if<HostStep>(&step); host != nullptr && host->regions.contains("body")) {
      RandomGenerator random;
      const auto place = [](size_t, DType dtype, const Extents& extents) { return Tensor(dtype, extents); };
      const std::unique_ptr<Executor> body = compile(host->call->node().region("body"), without_cache());
      return LoopRun::start(*host->control, operands, *body, {.random = &random}, place) != nullptr;
    }
  ADD_FAILURE() << "there is no loop";
  return false;
}

// --- recurrent layers ---

std::string layer(std::string_view op, int gates, std::string_view results, std::string_view rest,
                  int directions = 1) {
  return fmt::format(R"(graph(%x: f32[t,b,3], %w0: f32[{0},{1},3], %w1: f32[{0},{1},4], %w2: f32[{0},{2}],
      %w3: f32[{0},12], %lengths: i64[b], %h: f32[{0},b,4], %c: f32[{0},b,4]) {{
    {3} = {4}(%x, %w0, %w1, {5})
    return {3}
  }})",
                     directions, gates * 4, gates * 8, results, op, rest);
}

Data layer_inputs(int64_t time, int64_t batch, const std::vector<int64_t>& lengths, int64_t directions = 1) {
  const int64_t d = directions;
  return {floats({time, batch, 3}), floats({d, 1, 3}), floats({d, 1, 4}),        floats({d, 1}),
          floats({d, 12}),          ints(lengths),     floats({d, batch, 4}, 2), floats({d, batch, 4}, 3)};
}

// The graph's inputs called w… are constants, so that any sizes do for those.
void expect_layer(std::string_view op, int gates, std::string_view results, std::string_view rest,
                  int directions = 1) {
  std::string text = layer(op, gates, results, rest, directions);
  const std::unique_ptr<Graph> graph = read(text);
  std::vector<Data> runs;
  for (const auto& [time, lengths] : std::vector<std::pair<int64_t, std::vector<int64_t>>>{
           {5, {5, 3}}, {1, {1}}, {2, {0, 2, 1}}, {0, {0}}, {5, {4, 5}}}) {
    Data inputs = layer_inputs(time, static_cast<int64_t>(lengths.size()), lengths, directions);
    for (size_t i = 1; i <= 4; ++i)
      inputs[i] = floats(*graph->input(static_cast<int64_t>(i)).shape().extents());
    runs.push_back(std::move(inputs));
  }
  expect_as_evaluated(text, runs);
}

TEST(Loops, RunRecurrentLayersOfAllKinds) {
  expect_layer("rnn", 1, "%y, %last", "%w2");
  expect_layer("rnn", 1, "%y, %last", R"(%w2, %lengths, %h, direction="reverse", clip=0.3)");
  expect_layer("gru", 3, "%y, %last", "%w2, initial_h=%h");
  expect_layer("gru", 3, "%y, %last", R"(%w2, initial_h=%h, reset_after=true, direction="reverse")");
  expect_layer("gru", 3, "%y, %last", R"(%w2, %lengths, reset_after=true, direction="bidirectional")", 2);
  expect_layer("lstm", 4, "%y, %last, %cell", "%w2");
  expect_layer("lstm", 4, "%y, %last, %cell", R"(%w2, initial_h=%h, initial_c=%c, direction="reverse")");
  expect_layer("lstm", 4, "%y, %last, %cell", R"(initial_h=%h, peepholes=%w3, coupled_gates=true, clip=0.4)");
  expect_layer("lstm", 4, "%y, %last, %cell", R"(%w2, %lengths, %h, %c, %w3, direction="bidirectional")", 2);
  expect_layer("lstm", 4, "%y, %last, %cell", R"(%w2, initial_h=%h, direction="bidirectional", activations=[
      "sigmoid", "relu", "tanh", "hard_sigmoid", "softsign", "elu"])",
               2);
}

TEST(Loops, RunOneStepWithoutALoop) {
  const std::string text = R"(graph(%x: f32[1,b,3], %lengths: i64[b], %h: f32[1,b,4], %w0: f32[1,16,3],
      %w1: f32[1,16,4], %w2: f32[1,32], %w3: f32[1,12]) {
    %y, %last, %cell = lstm(%x, %w0, %w1, %w2, %lengths, initial_h=%h, peepholes=%w3, direction="reverse")
    return %y, %last, %cell
  })";
  std::vector<Data> runs;
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{{1, 0}, {1}, {}}) {
    const auto batch = static_cast<int64_t>(lengths.size());
    runs.push_back({floats({1, batch, 3}), ints(lengths), floats({1, batch, 4}, 2), floats({1}), floats({1}),
                    floats({1}), floats({1})});
  }
  expect_as_evaluated(text, runs);
  EXPECT_FALSE(has(program_text(text, {{"b", 1}}), "scan"));
}

// --- loops beside each other ---

// Two loops over tanh(h·w/20 + x), which forgets how the last bit was rounded; the second scans what is said.
std::string two_loops(std::string_view second) {
  return fmt::format(R"(graph(%x: f32[20,1,128], %h: f32[1,128], %w1: f32[128,128], %w2: f32[128,128]) {{
    %a, %y = scan([%h], [%x], [%w1], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0])
        body(%h: f32[1,128], %x: f32[1,128], %w: f32[128,128]) {{
      %small = constant(value=f32[] {{0.05}})
      %p = matmul(%h, %w)
      %0 = mul(%p, %small)
      %1 = add(%0, %x)
      %2 = tanh(%1)
      return %2, %2
    }}
    %s = neg(%x)
    %b, %z = scan([%h], [{}], [%w2], axes=[0], reversed=[1], output_axes=[0], output_reversed=[1])
        body(%h: f32[1,128], %x: f32[1,128], %w: f32[128,128]) {{
      %small = constant(value=f32[] {{0.05}})
      %p = matmul(%h, %w)
      %0 = mul(%p, %small)
      %1 = add(%0, %x)
      %2 = tanh(%1)
      return %2, %2
    }}
    return %a, %b, %y, %z
  }})",
                     second);
}

TEST(Loops, RunBesideEachOtherWhereTheyCan) {
  EXPECT_TRUE(has(program_text(two_loops("%s")), "beside each other"));
  EXPECT_FALSE(has(program_text(two_loops("%y")), "beside each other"));
  for (std::string_view second : {"%s", "%x", "%y"})
    expect_as_evaluated(two_loops(second),
                        {{floats({20, 1, 128}), floats({1, 128}, 2), floats({1}), floats({1})}});
}

TEST(Loops, DrawOneAfterTheOther) {
  EXPECT_FALSE(has(program_text(R"(graph(%x: f32[4,3], %y: f32[4,3]) {
    %a = scan([], [%x], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) body(%x: f32[3]) {
      %n = constant(value=i64[1] {3})
      %r = random_normal(%n, dtype=f32)
      %s = add(%x, %r)
      return %s
    }
    %b = scan([], [%y], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) body(%x: f32[3]) {
      %r = tanh(%x)
      return %r
    }
    return %a, %b
  })"),
                   "beside each other"));
}

TEST(Loops, ThreeDirectionsShareTwoThreads) {
  const std::string text = R"(graph(%x: f32[t,2,3], %w0: f32[2,256,3], %w1: f32[2,256,64], %w2: f32[1,256,3],
      %w3: f32[1,256,64]) {
    %y, %h, %c = lstm(%x, %w0, %w1, direction="bidirectional")
    %z, %k, %d = lstm(%x, %w2, %w3)
    return %y, %h, %c, %z, %k, %d
  })";
  const Data rest = {floats({1}), floats({1}), floats({1}), floats({1})};
  std::vector<Data> runs;
  for (const int64_t iterations : {9, 1, 0, 4}) {
    runs.push_back({floats({iterations, 2, 3})});
    runs.back().insert(runs.back().end(), rest.begin(), rest.end());
  }
  expect_as_evaluated(text, runs);
}

// --- scans ---

constexpr char kSums[] = R"(graph(%start: f32[b], %x: f32[b,t,2], %y: f32[t,b], %scale: f32[1]) {
  %last, %seen, %all, %doubled = scan([%start, %start], [%x, %y], [%scale], axes=[1, 0], reversed=[1, 0],
      output_axes=[-1, 0], output_reversed=[0, 1])
      body(%sum: f32[b], %before: f32[b], %slice: f32[b,2], %row: f32[b], %scale: f32[1]) {
    %axes = constant(value=i64[1] {1})
    %0 = reduce_sum(%slice, axes=[1], keep_dims=false)
    %1 = add(%0, %row)
    %2 = mul(%1, %scale)
    %3 = add(%sum, %2)
    return %3, %sum, %3, %slice
  }
  return %last, %seen, %all, %doubled
})";

Data sums_inputs(int64_t batch, int64_t iterations) {
  return {floats({batch}, 1), floats({batch, iterations, 2}, 2), floats({iterations, batch}, 3),
          floats({1}, 4)};
}

TEST(Loops, ScanAlongAnyAxisFromEitherEnd) {
  expect_as_evaluated(
      kSums, {sums_inputs(3, 4), sums_inputs(1, 5), sums_inputs(2, 1), sums_inputs(3, 0), sums_inputs(0, 2)});
}

TEST(Loops, RunIterationsInPlace) {
  const auto operands = [](const Data& inputs) {
    return Data{inputs[0], inputs[0], inputs[1], inputs[2], inputs[3]};
  };
  EXPECT_TRUE(runs_in_place(kSums, operands(sums_inputs(3, 4))));
  EXPECT_TRUE(runs_in_place(kSums, operands(sums_inputs(1, 1))));
  EXPECT_FALSE(runs_in_place(kSums, operands(sums_inputs(3, 0))));  // no iteration says what sizes there are
}

TEST(Loops, ScansOfOneProgramRunAtOnce) {
  const std::unique_ptr<Graph> graph = read(kSums);
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  std::vector<std::thread> threads;
  std::vector<Data> got(4);
  for (size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k)
        got[i] = program->run(sums_inputs(2 + static_cast<int64_t>(i), 7), {.threads = 2});
    });
  for (std::thread& thread : threads)
    thread.join();
  for (size_t i = 0; i < got.size(); ++i)
    expect_near(got[i], evaluate(*graph, sums_inputs(2 + static_cast<int64_t>(i), 7)));
}

// --- whiles ---

// What one iteration gets has m+1 rows, which does not say what m is.
TEST(Loops, TakeInputsWhoseSizesAreComputed) {
  expect_as_evaluated(R"(graph(%h: f32[1], %x: f32[3,m+1,4]) {
    %y: f32[1], %z: f32[3] = scan([%h], [%x], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) body(%a: f32[1], %b: f32[m+1,4]) {
      %0: f32[4] = reduce_log_sum_exp(%b, axes=[0])
      %1: f32[] = reduce_sum(%0, axes=[0])
      return %a, %1
    }
    return %y, %z
  })",
                      {{floats({1}), floats({3, 2, 4})}, {floats({1}), floats({3, 5, 4})}});
}

TEST(Loops, EndWhenTheBodySaysSo) {
  constexpr char text[] = R"(graph(%x: f32[n], %limit: f32[], %trips: i64[], %go: bool[]) {
    %y, %z = while(%trips, %go, [%x, %x], [%limit])
        body(%iteration: i64[], %a: f32[n], %b: f32[n], %limit: f32[]) {
      %t = cast(%iteration, to=f32)
      %c = add(%a, %t)
      %most = reduce_max(%c, axes=[0], keep_dims=false)
      %more = less(%most, %limit)
      return %more, %c, %a
    }
    return %y, %z
  })";
  const auto inputs = [](float limit, int64_t trips, bool go) {
    return Data{floats({3}), Tensor::scalar(limit), Tensor::scalar(trips), Tensor::scalar(go)};
  };
  expect_as_evaluated(
      text, {inputs(9, 100, true), inputs(14, 100, true), inputs(-9, 100, true), inputs(100, 4, true),
             inputs(100, 5, true), inputs(100, 0, true), inputs(100, 5, false)});
  EXPECT_TRUE(runs_in_place(text, {Tensor::scalar(int64_t{4}), Tensor::scalar(true), floats({3}), floats({3}),
                                   Tensor::scalar(9.F)}));
}

TEST(Loops, CollectInAsManyIterationsAsTheyAreTold) {
  expect_as_evaluated(R"(graph(%x: f32[n], %trips: i64[]) {
    %y, %all = while(%trips, carried=[%x]) body(%iteration: i64[], %a: f32[n]) {
      %go = constant(value=bool[] {1})
      %b = tanh(%a)
      return %go, %b, %b
    }
    return %y, %all
  })",
                      {{floats({3}), Tensor::scalar(int64_t{4})}, {floats({2}), Tensor::scalar(int64_t{0})}});
}

TEST(Loops, CarryValuesThatGrow) {
  constexpr char text[] = R"(graph(%x: f32[k,2], %trips: i64[]) {
    %y = while(%trips, carried=[%x]) body(%iteration: i64[], %a: f32[n,2]) {
      %go = constant(value=bool[] {1})
      %b = concat([%a, %a], axis=0)
      return %go, %b
    }
    return %y
  })";
  expect_as_evaluated(text, {{floats({3, 2}), Tensor::scalar(int64_t{3})}});
  EXPECT_FALSE(runs_in_place(text, {Tensor::scalar(int64_t{3}), floats({3, 2})}));
}

TEST(Loops, HoldWhatIsNoTensorAsBefore) {
  constexpr char text[] = R"(graph(%x: f32[2], %trips: i64[]) {
    %start = sequence_construct([%x])
    %all = while(%trips, carried=[%start]) body(%iteration: i64[], %a: seq<f32[2]>) {
      %go = constant(value=bool[] {1})
      %first = constant(value=i64[] {0})
      %b = sequence_at(%a, %first)
      %c = neg(%b)
      %d = sequence_insert(%a, %c)
      return %go, %d
    }
    %y = sequence_concat(%all, axis=0)
    return %y
  })";
  expect_as_evaluated(text, {{floats({2}), Tensor::scalar(int64_t{3})}});
}

}  // namespace
}  // namespace tenon
