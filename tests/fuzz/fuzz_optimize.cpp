// fuzz_optimize.cpp — random graphs, optimised: the result must compute the same bits under strict numerics,
// and the same within rounding under the others; it must lint, keep the types of its outputs, print and parse
// back, and not change when it is optimised again.
//
//   fuzz_optimize COUNT SEED [FIRST]      graph i of a seed is always the same; FIRST goes straight to one
#include "fuzz/graph_main.h"
#include "fuzz/growing_graph.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "tensor/rounding.h"

namespace tenon {
namespace {

constexpr unsigned kSecondsPerGraph = 30;
constexpr int kDraws = 3;  // of sizes and elements
constexpr int kDisturbances = 8;

using fuzz::GrowingGraph;
using Elements = GrowingGraph::Elements;

// --- how much may a result differ? ---

// A tensor of no elements may have any extents that its type allows.
bool have_same_extents(const Tensor& a, const Tensor& b) {
  return a.extents() == b.extents() || (a.count() == 0 && b.count() == 0);
}

bool is_tensor(const Datum& datum) { return std::holds_alternative<Tensor>(datum); }

// Nothing can be said of it but its type: it is not finite, or has so few bits that every rounding counts.
bool is_unsure(const Datum& datum) {
  if (!is_tensor(datum))
    return true;
  const Tensor& tensor = datum.tensor();
  if (!is_float(tensor.dtype()))
    return false;
  const std::vector<double> numbers = widen<double>(tensor);
  return info(tensor.dtype()).bits < 16 ||
         !std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

// How much what a dtype holds may be off by the rounding of a few steps.
double rounding_of(DType dtype) { return (info(dtype).bits <= 16 ? 8 : 256) * rounding_step(dtype); }

// The same for what a node gives: its nested graphs may compute with fewer bits.
double rounding_of(const Node& node, DType dtype) {
  double rounding = rounding_of(dtype);
  for (const auto& region : node.regions())
    for (const Node* inner : region->nodes())
      for (Value result : inner->results())
        if (result.type().is_tensor() && is_float(result.dtype()))
          rounding = std::max(rounding, rounding_of(*inner, result.dtype()));
  return rounding;
}

double greatest_of(const Tensor& tensor) {
  double greatest = 0;
  if (is_float(tensor.dtype()))
    for (double number : widen<double>(tensor))
      greatest = std::max(greatest, std::fabs(number));
  return greatest;
}

// Twice the least number above 0.
double least_step_of(DType dtype) {
  return dtype == DType::F16 ? 0x1p-23 : dtype == DType::F64 ? 0x1p-1073 : 0x1p-148;
}

// What a node computes may also be off by this much, however small it is: the least numbers have few bits,
// and in a loop numbers may cancel.
double least_rounding(const Node& node, const Data& operands, DType dtype) {
  double least = node.op().category == Category::Compute ? least_step_of(dtype) : 0;
  if (!node.regions().empty())
    for (const Datum& operand : operands)
      if (is_tensor(operand))
        least = std::max(least, rounding_of(node, dtype) * greatest_of(operand.tensor()));
  return least;
}

// Every number a little off, as if the steps before had been rounded in another way.
Datum disturbed(const Datum& datum, std::mt19937_64& random, double relative, double least) {
  if (!is_tensor(datum) || !is_float(datum.tensor().dtype()))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<double> numbers = widen<double>(tensor);
  for (double& number : numbers) {
    const double way = random() % 2 == 0 ? 1 : -1;
    number += way * (std::fabs(number) * relative + least);
  }
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

struct Outcome {
  Data outputs;
  std::vector<bool> sure;  // whether all that an output depends on is finite
};

Outcome run_graph(const Graph& graph, const Data& inputs, std::mt19937_64* random = nullptr);

// The branch that is taken is run like any graph; loops are run whole, and only what they give is disturbed.
Outcome run_node(const Node& node, const Data& operands, std::mt19937_64* random) {
  if (node.is("if")) {
    const bool taken = widen<double>(operands.front().tensor()).front() != 0;
    return run_graph(*node.regions()[taken ? 0 : 1], Data(operands.begin() + 1, operands.end()), random);
  }
  const Data results = evaluate_node(node, operands);
  return {results, std::vector<bool>(results.size(), true)};
}

// Runs the graph, with every value disturbed where there is something to draw from.
Outcome run_graph(const Graph& graph, const Data& inputs, std::mt19937_64* random) {
  std::map<Value, Datum> data;
  std::set<Value> unsure;
  const auto set = [&](Value value, const Datum& datum, double relative, double least) {
    data.emplace(value, random == nullptr ? datum : disturbed(datum, *random, relative, least));
    if (is_unsure(datum))
      unsure.insert(value);
  };
  const auto dtype_of = [](const Datum& datum) {
    return is_tensor(datum) ? datum.tensor().dtype() : DType::F64;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    set(graph.input(static_cast<int64_t>(i)), inputs[i], rounding_of(dtype_of(inputs[i])), 0);
  for (const Node* node : graph.nodes()) {
    Data operands;
    bool is_sure = true;
    for (Value operand : node->operands()) {
      operands.push_back(data.at(operand));
      is_sure &= !unsure.contains(operand);
    }
    const Outcome results = run_node(*node, operands, random);
    for (size_t i = 0; i < results.outputs.size(); ++i) {
      const Value result = node->result(static_cast<int64_t>(i));
      const DType dtype = dtype_of(results.outputs[i]);
      set(result, results.outputs[i], rounding_of(*node, dtype), least_rounding(*node, operands, dtype));
      if (!is_sure || !results.sure[i])
        unsure.insert(result);
    }
  }
  Outcome outcome;
  for (Value output : graph.outputs()) {
    outcome.outputs.push_back(data.at(output));
    outcome.sure.push_back(!unsure.contains(output));
  }
  return outcome;
}

double greatest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = widen<double>(a), y = widen<double>(b);
  double greatest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(x[i] - y[i]);
    greatest = std::isnan(difference) ? INFINITY : std::max(greatest, difference);
  }
  return greatest;
}

// What a graph computes, and how far each output may be from it.
class Expected {
 public:
  Expected(const Graph& graph, const Data& inputs) : outcome_(run_graph(graph, inputs)) {
    slack_.assign(outcome_.outputs.size(), 0);
    std::mt19937_64 random(7);
    for (int i = 0; i < kDisturbances; ++i) {
      const Outcome other = run_graph(graph, inputs, &random);
      for (size_t output = 0; output < slack_.size(); ++output)
        slack_[output] = std::max(slack_[output], distance(outcome_.outputs[output], other.outputs[output]));
    }
  }

  // Empty where they agree.
  std::string mismatch(const Data& actual) const {
    for (size_t i = 0; i < actual.size(); ++i) {
      if (!is_tensor(actual[i]))
        continue;
      const Tensor &was = outcome_.outputs[i].tensor(), &is = actual[i].tensor();
      if (was.dtype() != is.dtype() || (slack_[i] != INFINITY && !have_same_extents(was, is)))
        return fmt::format("output {} was {}, and is {}", i, describe(was.dtype(), was.extents()),
                           describe(is.dtype(), is.extents()));
      if (!outcome_.sure[i] || slack_[i] == INFINITY || was.count() == 0)
        continue;
      const double difference = distance(outcome_.outputs[i], actual[i]), greatest = greatest_of(was);
      // What depends so much on rounding may also overflow by it.
      if (difference == INFINITY && slack_[i] > 1e-3 * greatest)
        continue;
      if (difference > 4 * slack_[i] + 32 * rounding_step(was.dtype()) * greatest)
        return fmt::format("output {} is {} off, but {} were expected", i, difference, slack_[i]);
    }
    return "";
  }

 private:
  static double distance(const Datum& a, const Datum& b) {
    if (!is_tensor(a) || !is_tensor(b) || a.tensor().extents() != b.tensor().extents())
      return INFINITY;
    if (is_float(a.tensor().dtype()))
      return greatest_difference(a.tensor(), b.tensor());
    return identical(a.tensor(), b.tensor()) ? 0 : INFINITY;
  }

  Outcome outcome_;
  std::vector<double> slack_;  // infinite where nothing can be said
};

// --- the same bits ---

bool same_bits(const Tensor& a, const Tensor& b) {
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

std::string different_bits(const Data& expected, const Data& actual) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (is_tensor(expected[i]) && !same_bits(expected[i].tensor(), actual[i].tensor()))
      return fmt::format("output {} has other bits", i);
  return "";
}

// --- the checks ---

std::string_view name(NumericsBudget budget) {
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
std::optional<Sample> try_sample(const Graph& graph, const Data& inputs, NumericsBudget budget) {
  try {
    return Sample(graph, inputs, budget);
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// --- a small graph that shows the same fault ---

struct Case {
  std::unique_ptr<Graph> graph;
  std::vector<Data> draws;  // of inputs
};

void drop_unused(Case& c) {
  Journal journal;
  remove_dead(*c.graph, journal);
  for (int64_t i = c.graph->input_count() - 1; i >= 0; --i)
    if (c.graph->input(i).use_count() == 0) {
      c.graph->erase_input(i);
      for (Data& draw : c.draws)
        draw.erase(draw.begin() + i);
    }
}

Case with_output(const Case& c, size_t output) {
  Case smaller{c.graph->clone(), c.draws};
  smaller.graph->set_outputs({smaller.graph->outputs()[output]});
  drop_unused(smaller);
  return smaller;
}

// An input takes the place of what a node computes. A user_error where that cannot run.
Case without_node(const Case& c, size_t index) {
  Case smaller{c.graph->clone(), c.draws};
  const Node* node = smaller.graph->nodes()[index];
  const std::unique_ptr<Graph> up_to = c.graph->clone();
  up_to->set_outputs(up_to->nodes()[index]->results());
  for (Data& draw : smaller.draws)
    for (const Datum& datum : evaluate(*up_to, Data(draw)))
      draw.push_back(datum);
  for (Value result : node->results())
    result.replace_all_uses(smaller.graph->add_input(result.type(), ""));
  drop_unused(smaller);
  return smaller;
}

// Makes the case smaller as long as it still fails.
void shrink(Case& c, const std::function<bool(const Case&)>& fails) {
  for (size_t output = 0; output < c.graph->outputs().size(); ++output)
    if (Case smaller = with_output(c, output); fails(smaller)) {
      c = std::move(smaller);
      break;
    }
  for (size_t i = 0; i < c.draws.size(); ++i)
    if (Case smaller{c.graph->clone(), {c.draws[i]}}; fails(smaller)) {
      c = std::move(smaller);
      break;
    }
  for (size_t node = c.graph->nodes().size(); node-- > 0;) {
    try {
      if (node < c.graph->nodes().size())
        if (Case smaller = without_node(c, node); fails(smaller))
          c = std::move(smaller);
    } catch (const UserError&) {
      // It cannot do without.
    }
  }
}

std::string last_of(const Journal& journal) {
  if (journal.applications().empty())
    return "no rewrite";
  const Application& last = journal.applications().back();
  return fmt::format("{} ({})", last.rule, last.pass);
}

// Whether the optimiser may give this type to what had that one: it may find out sizes that only running
// told.
bool may_become(const Type& was, const Type& is, const std::set<std::string>& given) {
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

std::set<std::string> symbols_of_inputs(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    for (const std::string& symbol : symbols_of(input.type()))
      symbols.insert(symbol);
  return symbols;
}

void expect_same_form(const Graph& graph, const Graph& optimised, NumericsBudget budget) {
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
  optimize(*again, journal);
  if (!journal.applications().empty())
    throw InternalError(fmt::format("optimising again changes it: {}", last_of(journal)));
  if (const std::string what = difference(optimised, *again); !what.empty())
    throw InternalError(fmt::format("optimising again changes it untold: {}", what));
}

// The first rewrite after which the sample does not agree any more.
std::string find_culprit(const Graph& graph, const Sample& sample, NumericsBudget budget) {
  for (int64_t most = 1;; ++most) {
    const std::unique_ptr<Graph> optimised = graph.clone();
    Journal journal(budget, most);
    optimize(*optimised, journal);
    if (!sample.mismatch(*optimised).empty())
      return last_of(journal);
    if (journal.is_open())
      return "none";
  }
}

// What is wrong with the optimised graph, whatever its inputs, or with some of these; empty where nothing is.
std::string complaint(const Graph& graph, NumericsBudget budget, const std::vector<Data>& draws) {
  std::vector<Sample> samples;
  for (const Data& inputs : draws)
    if (std::optional<Sample> sample = try_sample(graph, inputs, budget))
      samples.push_back(std::move(*sample));
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(budget);
  try {
    // What never runs may turn out to make no sense.
    optimize(*optimised, journal, {.lint_everything = !samples.empty()});
    if (!samples.empty())
      expect_same_form(graph, *optimised, budget);
  } catch (const UserError& error) {
    return samples.empty() ? "" : fmt::format("{}\nlast rewrite: {}", error.what(), last_of(journal));
  } catch (const std::exception& error) {
    return fmt::format("{}\nlast rewrite: {}", error.what(), last_of(journal));
  }
  for (const Sample& sample : samples)
    if (const std::string mismatch = sample.mismatch(*optimised); !mismatch.empty())
      return fmt::format("{}\nculprit: {}", mismatch, find_culprit(graph, sample, budget));
  return "";
}

void check_budget(const Graph& graph, NumericsBudget budget, const std::vector<Data>& draws) {
  if (complaint(graph, budget, draws).empty())
    return;
  Case small{graph.clone(), draws};
  shrink(small,
         [&](const Case& smaller) { return !complaint(*smaller.graph, budget, smaller.draws).empty(); });
  const std::unique_ptr<Graph> optimised = small.graph->clone();
  Journal journal(budget);
  try {
    optimize(*optimised, journal);
  } catch (const std::exception&) {
    // The complaint says it.
  }
  throw InternalError(fmt::format("{}: {}\n{}{}", name(budget), complaint(*small.graph, budget, small.draws),
                                  print(*small.graph), print(*optimised)));
}

void check(uint64_t seed) {
  GrowingGraph random(seed);
  const std::unique_ptr<Graph> graph = random.make();
  std::vector<const Graph*> graphs = {graph.get()};
  std::unique_ptr<Graph> bound;
  try {
    bound = graph->bind(random.random_dims());
    if (!symbols_of_inputs(*graph).empty())
      graphs.push_back(bound.get());
  } catch (const UserError&) {
    // It makes no sense for these sizes.
  }
  for (const Graph* each : graphs)
    for (NumericsBudget budget : {NumericsBudget::Strict, NumericsBudget::Default, NumericsBudget::Fast}) {
      std::vector<Data> draws;
      for (int draw = 0; draw < kDraws; ++draw)
        draws.push_back(
            random.inputs_for(*each, random.random_sizes(),
                              budget == NumericsBudget::Strict ? Elements::Special : Elements::Moderate));
      check_budget(*each, budget, draws);
    }
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  return tenon::fuzz::graph_main(argc, argv, "fuzz_optimize", tenon::kSecondsPerGraph, tenon::check);
}
