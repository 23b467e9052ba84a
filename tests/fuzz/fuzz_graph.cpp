// fuzz_graph.cpp — random graphs of all ops there are: what the gate lets through must lint, print and parse
// back to the same graph, clone to the same graph, show in every view, and run to results of the types that
// inference promised. What infer assumes of symbols must refuse the sizes that infer itself refuses, and no
// others.
//
//   fuzz_graph COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#include "base/error.h"
#include "fuzz/graph_main.h"
#include "fuzz/random_graph.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ir/size_checks.h"
#include "views/views.h"

namespace tenon {
namespace {

constexpr unsigned kSecondsPerGraph = 10;

void expect_same(const Graph& a, const Graph& b, std::string_view how) {
  const std::string what = difference(a, b);
  if (!what.empty() || structural_hash(a) != structural_hash(b))
    throw InternalError(fmt::format("{} gives another graph: {}\n{}", how, what, print(a)));
}

bool refuses(SizeCheck& check, const Bindings& sizes) {
  try {
    check.check(sizes);
    return false;
  } catch (const UserError&) {
    return true;
  }
}

// Whether all nodes are of known ranks, and what they index by tuples, too. The others run on the host, where
// eval checks what it gets.
bool knows_ranks(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [](const Node* node) {
    return (!node->is("scatter_nd") || node->in("indices").dim(-1).is_constant()) &&
           std::ranges::all_of(node->results(), [](Value result) {
             return !result.type().is_tensor() || result.shape().ranked();
           });
  });
}

bool knows_all_symbols(const Graph& graph, const Bindings& sizes) {
  for (const Node* node : graph.nodes())
    for (Value operand : node->operands())
      for (const std::string& symbol : symbols_of(operand.type()))
        if (!sizes.contains(symbol))
          return false;
  return true;
}

void check_conditions(const Graph& graph) {
  if (!knows_ranks(graph))
    return;
  SizeChecks asked(graph);
  SizeConditions assumed(asked.conditions());
  for (int64_t n = 1; n < 5; ++n)
    for (int64_t m = 1; m < 5; ++m) {
      const Bindings sizes = {{"m", m}, {"n", n}};
      const bool wanted = refuses(asked, sizes), got = refuses(assumed, sizes);
      // Others are asked for when they are known.
      if (wanted != got && (wanted || knows_all_symbols(graph, sizes)))
        throw InternalError(fmt::format("for n = {} and m = {}, infer {} what its conditions {}\n{}", n, m,
                                        wanted ? "refuses" : "takes", got ? "refuse" : "take", print(graph)));
    }
}

void check(uint64_t seed) {
  fuzz::RandomGraph random(seed);
  const std::unique_ptr<Graph> graph = random.make();
  const std::string text = print(*graph);
  if (const auto problems = lint(*graph); !problems.empty())
    throw InternalError(fmt::format("lint: {}\n{}", problems.front(), text));
  const LiteralTable literals = large_literals(*graph);
  std::unique_ptr<Graph> parsed;
  try {
    parsed = parse(text, {.literals = &literals});
  } catch (const UserError& error) {
    throw InternalError(fmt::format("what was printed does not parse: {}\n{}", error.what(), text));
  }
  expect_same(*graph, *parsed, "parsing");
  if (print(*parsed) != text)
    throw InternalError(fmt::format("printing again gives another text:\n{}\n{}", text, print(*parsed)));
  expect_same(*graph, *graph->clone(), "cloning");
  for (const View& view : all_views()) {
    std::string shown;
    try {
      shown = view.render(*graph);
    } catch (const std::exception& error) {
      throw InternalError(fmt::format("as {}: {}\n{}", view.name, error.what(), text));
    }
    if (shown.empty())
      throw InternalError(fmt::format("as {} it is nothing\n{}", view.name, text));
  }
  check_conditions(*graph);
  Data inputs;
  for (Value input : graph->inputs())
    inputs.emplace_back(random.input_for(input.type().as_tensor()));
  try {
    evaluate(*graph, inputs);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("{}\n{}", error.what(), text));
  } catch (const UserError&) {
    // The numbers caused it.
  } catch (const std::bad_alloc&) {
    // The numbers asked for more than there is.
  }
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  return tenon::fuzz::graph_main(argc, argv, "fuzz_graph", tenon::kSecondsPerGraph, tenon::check);
}
