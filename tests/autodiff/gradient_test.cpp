// Every op's gradient against finite differences in double, and every decomposition against the op itself.
#include "autodiff/gradient.h"

#include <gtest/gtest.h>

#include <random>

#include "autodiff/examples.h"
#include "base/expect_error.h"
#include "ir/graph_text.h"
#include "ops/gradient.h"

namespace tenon {
namespace {

// Numbers for the inputs of a graph, the same for the same graph.
Data random_inputs(const Graph& graph, double low, double high) {
  std::mt19937_64 random(graph.input_count());
  std::uniform_real_distribution<double> numbers(low, high);
  Data inputs;
  for (Value input : graph.inputs()) {
    const Extents extents = input.shape().extents().value();
    std::vector<double> values(static_cast<size_t>(element_count(extents)));
    std::ranges::generate(values, [&] { return numbers(random); });
    inputs.emplace_back(tensor(input.dtype(), extents, values));
  }
  return inputs;
}

Tensor random_like(const Tensor& tensor, std::mt19937_64& random) {
  std::uniform_real_distribution<double> numbers(0.5, 1.5);
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  std::ranges::generate(values, [&] { return numbers(random); });
  return narrow<double>(tensor.dtype(), tensor.extents(), values);
}

// What a gradient is taken of: Σ seed · output, over the float outputs.
struct Loss {
  const Graph& graph;
  Data seeds;

  Loss(const Graph& graph, const Data& inputs) : graph(graph) {
    std::mt19937_64 random(7);
    for (const Datum& output : evaluate(graph, inputs))
      if (is_float(output.tensor().dtype()))
        seeds.emplace_back(random_like(output.tensor(), random));
  }

  double at(const Data& inputs) const {
    double sum = 0;
    size_t i = 0;
    for (const Datum& output : evaluate(graph, inputs)) {
      if (!is_float(output.tensor().dtype()))
        continue;
      const std::vector<double> y = widen<double>(output.tensor()), w = widen<double>(seeds[i++].tensor());
      for (size_t k = 0; k < y.size(); ++k)
        sum += w[k] * y[k];
    }
    return sum;
  }

  double slope(Data inputs, size_t input, size_t element) const {
    constexpr double step = 1e-5;
    std::vector<double> values = widen<double>(inputs[input].tensor());
    const auto moved = [&](double by) {
      std::vector<double> near = values;
      near[element] += by;
      Data there = inputs;
      there[input] = narrow<double>(DType::F64, inputs[input].tensor().extents(), near);
      return at(there);
    };
    return (moved(step) - moved(-step)) / (2 * step);
  }
};

// The gradients with respect to the inputs.
Data run_gradients(const Graph& graph, const Data& inputs, const Data& seeds) {
  const std::unique_ptr<Graph> differentiated = differentiate(graph);
  EXPECT_EQ(lint(*differentiated), std::vector<std::string>());
  Data all = inputs;
  all.insert(all.end(), seeds.begin(), seeds.end());
  Data outputs = evaluate(*differentiated, all);
  return {outputs.begin() + std::ssize(graph.outputs()), outputs.end()};
}

void check_gradients(const Graph& graph, const Data& inputs) {
  const Loss loss(graph, inputs);
  const Data gradients = run_gradients(graph, inputs, loss.seeds);
  ASSERT_EQ(gradients.size(), inputs.size()) << "an example has inputs of f64 only";
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(to_string(type_of(gradients[i])), to_string(type_of(inputs[i])));
    const std::vector<double> values = widen<double>(gradients[i].tensor());
    for (size_t k = 0; k < values.size(); ++k) {
      const double expected = loss.slope(inputs, i, k);
      EXPECT_NEAR(values[k], expected, 1e-6 * std::max(1.0, std::fabs(expected)))
          << "input " << graph.input(static_cast<int64_t>(i)).name() << ", element " << k;
    }
  }
}

// The same graph with a symbol for every dimension of every input.
std::unique_ptr<Graph> with_symbols(const Example& example) {
  Example open = example;
  open.inputs.clear();
  int symbols = 0;
  bool in_shape = false;
  const std::string& inputs = example.inputs;
  for (size_t i = 0; i < inputs.size();) {
    in_shape = inputs[i] == '[' || (in_shape && inputs[i] != ']');
    const size_t end = inputs.find_first_not_of("0123456789", i);
    if (!in_shape || end == i) {
      open.inputs += inputs[i++];
      continue;
    }
    open.inputs +=
        "n" + (example.one_symbol_per_size ? inputs.substr(i, end - i) : std::to_string(symbols++));
    i = end;
  }
  return parse_graph(open.text());
}

// All nodes that have a decomposition, replaced by it.
std::unique_ptr<Graph> decomposed(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  for (Node* node : copy->nodes())
    if (node->op().decompose != nullptr) {
      const InsertBefore here(node);
      copy->replace(node, node->op().decompose(*node));
    }
  EXPECT_EQ(lint(*copy), std::vector<std::string>());
  return copy;
}

void expect_close(const Data& actual, const Data& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    expect_near(actual[i], expected[i].tensor(), tolerance);
}

TEST(Gradient, OfEveryExampleIsThatOfFiniteDifferences) {
  register_ops();
  for (const Example& example : all_examples()) {
    SCOPED_TRACE(example.text());
    try {
      const std::unique_ptr<Graph> graph = parse_graph(example.text());
      check_gradients(*graph, random_inputs(*graph, example.low, example.high));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Gradient, OfEveryExampleIsTheSameWithoutKnownSizes) {
  register_ops();
  for (const Example& example : all_examples()) {
    SCOPED_TRACE(example.text());
    const std::unique_ptr<Graph> graph = parse_graph(example.text());
    const Data inputs = random_inputs(*graph, example.low, example.high);
    const Loss loss(*graph, inputs);
    try {
      const Data gradients = run_gradients(*with_symbols(example), inputs, loss.seeds);
      EXPECT_EQ(example.needs_sizes, "");
      expect_close(gradients, run_gradients(*graph, inputs, loss.seeds), 1e-12);
    } catch (const UnsupportedError& error) {
      EXPECT_NE(example.needs_sizes, "") << error.what();
      EXPECT_NE(std::string(error.what()).find(example.needs_sizes), std::string::npos) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Decomposition, OfEveryExampleGivesTheSame) {
  register_ops();
  for (const Example& example : all_examples()) {
    if (require_op(example.op).decompose == nullptr)
      continue;
    SCOPED_TRACE(example.text());
    try {
      const std::unique_ptr<Graph> graph = parse_graph(example.text());
      const Data inputs = random_inputs(*graph, example.low, example.high);
      const Data expected = evaluate(*graph, inputs);
      expect_close(evaluate(*decomposed(*graph), inputs), expected, 1e-12);
      expect_close(evaluate(*decomposed(*with_symbols(example)), inputs), expected, 1e-12);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Gradient, EveryOpThatHasOneHasAnExample) {
  register_ops();
  std::set<std::string_view> shown;
  const std::vector<Example> examples = all_examples();
  for (const Example& example : examples) {
    shown.insert(example.op);
    EXPECT_NE(example.nodes.find(example.op + "("), std::string::npos) << example.text();
  }
  for (const OpDef* op : registered_ops()) {
    const bool has_one = (op->grad != nullptr && op->grad != no_gradient) || op->decompose != nullptr;
    EXPECT_EQ(has_one, shown.contains(op->name)) << op->name;
  }
}

}  // namespace
}  // namespace tenon
