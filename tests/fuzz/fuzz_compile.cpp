// fuzz_compile.cpp — random graphs, compiled: where the reference evaluator runs them, the program must run,
// and agree with it within rounding, NaN and infinities included; where it does not, the program may fail but
// not crash.
//
//   fuzz_compile COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "compile_here.h"
#include "compiler/compile.h"
#include "fuzz/expected.h"
#include "fuzz/graph_main.h"
#include "fuzz/growing_graph.h"
#include "fuzz/shrink.h"
#include "ir/print.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using runtime::Executor;

namespace {

constexpr unsigned kSecondsPerGraph = 120;
constexpr int kDraws = 3;  // of sizes and elements
constexpr rlim_t kMostMemory = rlim_t{8} << 30;

using fuzz::Case;
using fuzz::Expected;
using fuzz::GrowingGraph;
using Elements = GrowingGraph::Elements;

// Whether all values have the types that inference promised. They have not where a computed shape has a 0
// that reshape takes for "as before": inference relies on sizes that it does not know not to be 0 there.
bool types_hold(const Graph& graph, const Data& inputs) {
  const std::unique_ptr<Graph> all = graph.clone();
  std::vector<Value> values = all->inputs();
  for (const Node* node : all->nodes())
    for (Value result : node->results())
      values.push_back(result);
  all->set_outputs(values);
  const Data data = evaluate(*all, inputs);
  Bindings bindings;
  for (size_t i = 0; i < values.size(); ++i)
    if (!fits(data[i], values[i].type(), bindings))
      return false;
  return true;
}

// Where every way of rounding gives NaN, or the same infinity, so must the program.
class Classes {
 public:
  Classes(const Graph& graph, const Data& inputs) {
    std::mt19937_64 random(5);
    runs_.push_back(fuzz::run_graph(graph, inputs).outputs);
    for (int i = 0; i < kDisturbances; ++i)
      runs_.push_back(fuzz::run_graph(graph, inputs, &random).outputs);
  }

  // Empty where it does.
  std::string mismatch(const Data& actual) const {
    for (size_t output = 0; output < actual.size(); ++output) {
      if (!is_compared(output, actual[output]))
        continue;
      const std::vector<double> numbers = widen<double>(actual[output].tensor());
      std::vector<std::vector<double>> expected;
      for (const Data& run : runs_)
        expected.push_back(widen<double>(run[output].tensor()));
      for (size_t i = 0; i < numbers.size(); ++i) {
        const auto agrees = [&](double number) {
          return std::all_of(expected.begin(), expected.end(),
                             [&](const std::vector<double>& each) { return are_same(each[i], number); });
        };
        if (!std::isfinite(expected.front()[i]) && agrees(expected.front()[i]) && !agrees(numbers[i]))
          return fmt::format("element {} of output {} is {}, but {} was expected", i, output, numbers[i],
                             expected.front()[i]);
      }
    }
    return "";
  }

 private:
  static constexpr int kDisturbances = 4;

  bool is_compared(size_t output, const Datum& actual) const {
    return fuzz::is_tensor(actual) && is_float(actual.tensor().dtype()) &&
           info(actual.tensor().dtype()).bits >= 16 &&
           std::all_of(runs_.begin(), runs_.end(), [&](const Data& run) {
             return run[output].tensor().extents() == actual.tensor().extents();
           });
  }

  static bool are_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

  std::vector<Data> runs_;
};

// Whether convolutions may be computed in tiles, of which all results see what is not finite in one.
bool may_use_tiles(const Graph& graph, const CompileContext& options) {
  bool convolves = false;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      convolves |= node->is("conv");
  });
  return convolves && options.numerics != NumericsBudget::Strict;
}

// One run of a graph by the reference evaluator, by which the program is measured.
class Sample {
 public:
  Sample(const Graph& graph, const Data& inputs, const CompileContext& options) : expected_(graph, inputs) {
    if (!may_use_tiles(graph, options))
      classes_.emplace(graph, inputs);
  }

  // Empty where the program agrees.
  std::string mismatch(const Data& actual) const {
    const std::string mismatch = expected_.mismatch(actual);
    return mismatch.empty() && classes_ ? classes_->mismatch(actual) : mismatch;
  }

 private:
  Expected expected_;
  std::optional<Classes> classes_;
};

// Nothing where the graph cannot run with the inputs, or they ask for more memory than there is.
std::optional<Sample> try_sample(const Graph& graph, const Data& inputs, const CompileContext& options) {
  try {
    if (!types_hold(graph, inputs))
      return std::nullopt;
    return Sample(graph, inputs, options);
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// One of several ways to compile: each kernel by itself, and for older machines with shorter vectors, as far
// as this one can run what is made for them; and all of these with strict numerics.
CompileContext options_for(uint64_t seed) {
  CompileContext options = here();
  if (seed / 4 % 2 == 0)
    options.numerics = NumericsBudget::Strict;
  const auto compile_for = [&](const char* cpu, int64_t vector_bytes, bool fused_multiply_add) {
    if (options.target.architecture != Architecture::X86_64 || options.target.vector_bytes < vector_bytes)
      return;
    options.target.cpu = cpu;
    options.target.features.clear();
    options.target.vector_bytes = vector_bytes;
    options.target.vector_registers = 16;
    options.target.fused_multiply_add = fused_multiply_add;
  };
  switch (seed % 4) {
    case 0:
      compile_for("x86-64", 16, false);
      break;
    case 1:
      compile_for("x86-64-v3", 32, true);
      break;
    case 2:
      options.fuse = false;
      break;
  }
  return options;
}

// What is wrong with the program; empty where nothing is. All draws are run by the same one.
std::string complaint(const Graph& graph, const std::vector<Data>& draws, const CompileContext& options) {
  std::vector<std::optional<Sample>> samples;
  for (const Data& inputs : draws)
    samples.push_back(try_sample(graph, inputs, options));
  const bool runs =
      std::any_of(samples.begin(), samples.end(), [](const auto& each) { return each.has_value(); });
  try {
    const std::unique_ptr<Executor> program = compile(graph, options);
    for (size_t i = 0; i < draws.size(); ++i)
      try {
        const Data actual = program->run(draws[i]);
        if (const std::string mismatch = samples[i] ? samples[i]->mismatch(actual) : ""; !mismatch.empty())
          return mismatch;
      } catch (const UserError& error) {
        if (samples[i])
          return fmt::format("the program does not run: {}", error.what());
      } catch (const std::bad_alloc&) {
        if (samples[i])
          return "the program asks for more memory than there is";
      }
  } catch (const UserError& error) {
    return runs ? fmt::format("it does not compile: {}", error.what()) : "";
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void check(uint64_t seed) {
  GrowingGraph random(seed);
  const CompileContext options = options_for(seed);
  for (const std::unique_ptr<Graph>& graph : fuzz::graphs_of(random)) {
    std::vector<Data> draws;
    for (int draw = 0; draw < kDraws; ++draw)
      draws.push_back(random.inputs_for(*graph, random.random_sizes(),
                                        draw == 0 ? Elements::Special : Elements::Moderate));
    if (complaint(*graph, draws, options).empty())
      continue;
    Case small{graph->clone(), draws};
    fuzz::shrink(small, [&](const Case& c) { return !complaint(*c.graph, c.draws, options).empty(); });
    throw InternalError(
        fmt::format("{}\n{}", complaint(*small.graph, small.draws, options), print(*small.graph)));
  }
}

// A graph that computes how often it repeats something may ask for all the memory there is, and takes long to
// fill it. A sanitizer has reserved more than the limit already, and goes without.
void limit_memory() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{kMostMemory, kMostMemory};
  if (pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) < kMostMemory)
    ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  tenon::limit_memory();
  return tenon::fuzz::graph_main(argc, argv, "fuzz_compile", tenon::kSecondsPerGraph, tenon::check);
}
