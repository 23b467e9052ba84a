// optimised.h — what a pipeline must keep of random graphs: the same bits under strict numerics, and the same
// within rounding under the others; the result must lint, keep the types of its outputs, print and parse
// back, and not change when it is optimised again.
#pragma once

#include "fuzz/expected.h"
#include "fuzz/graph_main.h"
#include "fuzz/growing_graph.h"
#include "fuzz/shrink.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "passes/pipeline.h"

namespace tenon::fuzz {

constexpr int kDraws = 3;  // of sizes and elements

using Pipeline = std::vector<Pass>;
using Elements = GrowingGraph::Elements;

// --- the same bits ---

inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !have_same_extents(a, b))
    return false;
  if (!is_float(a.dtype()))
    return a.count() == 0 || identical(a, b);
  const std::vector<double> x = widen<double>(a), y = widen<double>(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::isnan(x[i]) && std::isnan(y[i])) && (x[i] != y[i] || std::signbit(x[i]) != std::signbit(y[i])))
      return false;
  return true;
}

inline std::string different_bits(const Data& expected, const Data& actual) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (is_tensor(expected[i]) && !same_bits(expected[i].tensor(), actual[i].tensor()))
      return fmt::format("output {} has other bits", i);
  return "";
}

// --- the checks ---

inline std::string_view name_of(NumericsBudget budget) {
  return budget == NumericsBudget::Strict ? "strict" : budget == NumericsBudget::Default ? "default" : "fast";
}

// One run of a graph, by which what the optimiser makes of it is measured.
class Sample {
 public:
  // A graph that cannot run with these inputs is a user_error.
  Sample(const Graph& graph, Data inputs, NumericsBudget budget) : inputs_(std::move(inputs)) {
    const Data outputs = evaluate(graph, inputs_);
    if (budget == NumericsBudget::Strict)
      exact_ = outputs;
    else
      about_.emplace(graph, inputs_);
  }

  // Empty where the optimised graph agrees.
  std::string mismatch(const Graph& optimised) const {
    try {
      const Data actual = evaluate(optimised, inputs_);
      return exact_ ? different_bits(*exact_, actual) : about_->mismatch(actual);
    } catch (const UserError& error) {
      return fmt::format("it no longer runs: {}", error.what());
    }
  }

 private:
  Data inputs_;
  std::optional<Data> exact_;
  std::optional<Expected> about_;
};

// Nothing where the graph cannot run with the inputs, or they ask for more memory than there is.
inline std::optional<Sample> try_sample(const Graph& graph, const Data& inputs, NumericsBudget budget) {
  try {
    return Sample(graph, inputs, budget);
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

inline std::string last_of(const Journal& journal) {
  if (journal.applications().empty())
    return "no rewrite";
  const Application& last = journal.applications().back();
  return fmt::format("{} ({})", last.rule, last.pass);
}

// Whether the optimiser may give this type to what had that one: it may find out sizes that only running
// told.
inline bool may_become(const Type& was, const Type& is, const std::set<std::string>& given) {
  if (was == is || !was.is_tensor() || !was.as_tensor().shape.ranked())
    return was == is || !was.is_tensor() || was.as_tensor().dtype == is.as_tensor().dtype;
  const auto& [dtype, shape] = was.as_tensor();
  if (is.as_tensor().dtype != dtype || !is.as_tensor().shape.ranked() ||
      is.as_tensor().shape.rank() != shape.rank())
    return false;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const std::vector<std::string> symbols = shape[i].symbols();
    if (shape[i] != is.as_tensor().shape[i] &&
        std::all_of(symbols.begin(), symbols.end(),
                    [&](const std::string& symbol) { return given.contains(symbol); }))
      return false;
  }
  return true;
}

inline void expect_same_form(const Graph& graph, const Graph& optimised, NumericsBudget budget,
                             const Pipeline& pipeline) {
  if (const auto problems = lint(optimised); !problems.empty())
    throw InternalError(fmt::format("lint: {}", problems.front()));
  if (graph.output_names() != optimised.output_names())
    throw InternalError("the outputs have other names");
  const std::set<std::string> given = symbols_of_inputs(graph);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (!may_become(graph.outputs()[i].type(), optimised.outputs()[i].type(), given))
      throw InternalError(fmt::format("output {} was {}, and is {}", i, graph.outputs()[i].type(),
                                      optimised.outputs()[i].type()));
  const LiteralTable literals = large_literals(optimised);
  const std::unique_ptr<Graph> parsed = parse(print(optimised), {.literals = &literals});
  if (const std::string what = difference(optimised, *parsed); !what.empty())
    throw InternalError(fmt::format("parsing gives another graph: {}", what));
  const std::unique_ptr<Graph> again = optimised.clone();
  Journal journal(budget);
  optimize(*again, journal, {.pipeline = pipeline});
  if (!journal.applications().empty())
    throw InternalError(fmt::format("optimising again changes it: {}", last_of(journal)));
  if (const std::string what = difference(optimised, *again); !what.empty())
    throw InternalError(fmt::format("optimising again changes it untold: {}", what));
}

// The first rewrite after which the sample does not agree any more.
inline std::string find_culprit(const Graph& graph, const Sample& sample, NumericsBudget budget,
                                const Pipeline& pipeline) {
  for (int64_t most = 1;; ++most) {
    const std::unique_ptr<Graph> optimised = graph.clone();
    Journal journal(budget, most);
    optimize(*optimised, journal, {.pipeline = pipeline});
    if (!sample.mismatch(*optimised).empty())
      return last_of(journal);
    if (journal.is_open())
      return "none";
  }
}

// What is wrong with the optimised graph, whatever its inputs, or with some of these; empty where nothing is.
inline std::string complaint(const Graph& graph, NumericsBudget budget, const std::vector<Data>& draws,
                             const Pipeline& pipeline) {
  std::vector<Sample> samples;
  for (const Data& inputs : draws)
    if (std::optional<Sample> sample = try_sample(graph, inputs, budget))
      samples.push_back(std::move(*sample));
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(budget);
  try {
    // What never runs may turn out to make no sense.
    optimize(*optimised, journal, {.pipeline = pipeline, .lint_everything = !samples.empty()});
    if (!samples.empty())
      expect_same_form(graph, *optimised, budget, pipeline);
  } catch (const UserError& error) {
    return samples.empty() ? "" : fmt::format("{}\nlast rewrite: {}", error.what(), last_of(journal));
  } catch (const std::exception& error) {
    return fmt::format("{}\nlast rewrite: {}", error.what(), last_of(journal));
  }
  for (const Sample& sample : samples)
    if (const std::string mismatch = sample.mismatch(*optimised); !mismatch.empty())
      return fmt::format("{}\nculprit: {}", mismatch, find_culprit(graph, sample, budget, pipeline));
  return "";
}

inline void check_budget(const Graph& graph, NumericsBudget budget, const std::vector<Data>& draws,
                         const Pipeline& pipeline) {
  if (complaint(graph, budget, draws, pipeline).empty())
    return;
  Case small{graph.clone(), draws};
  shrink(small, [&](const Case& smaller) {
    return !complaint(*smaller.graph, budget, smaller.draws, pipeline).empty();
  });
  const std::unique_ptr<Graph> optimised = small.graph->clone();
  Journal journal(budget);
  try {
    optimize(*optimised, journal, {.pipeline = pipeline});
  } catch (const std::exception&) {
    // The complaint says it.
  }
  throw InternalError(fmt::format("{}: {}\n{}{}", name_of(budget),
                                  complaint(*small.graph, budget, small.draws, pipeline), print(*small.graph),
                                  print(*optimised)));
}

inline void check_optimised(uint64_t seed, const Pipeline& pipeline) {
  GrowingGraph random(seed);
  for (const std::unique_ptr<Graph>& graph : graphs_of(random))
    for (NumericsBudget budget : {NumericsBudget::Strict, NumericsBudget::Default, NumericsBudget::Fast}) {
      std::vector<Data> draws;
      for (int draw = 0; draw < kDraws; ++draw)
        draws.push_back(
            random.inputs_for(*graph, random.random_sizes(),
                              budget == NumericsBudget::Strict ? Elements::Special : Elements::Moderate));
      check_budget(*graph, budget, draws, pipeline);
    }
}

}  // namespace tenon::fuzz
