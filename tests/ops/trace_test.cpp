#include "ops/trace.h"

#include "ir/graph_text.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/module.h"
#include "ops/unary.h"

namespace tenon {
namespace {

void expect_same(const Graph& graph, std::string_view text) {
  EXPECT_EQ(lint(graph), std::vector<std::string>());
  EXPECT_EQ(difference(graph, *parse_graph(text)), "");
}

TEST(Trace, RecordsWhatTheFunctionDoes) {
  expect_same(*trace({f32({8, 16})}, [](Value x) { return relu(x * 2.0 + 1.0); }), R"(
    graph(%x: f32[8,16]) {
      %0 = constant(value=f32[] {2})
      %1 = mul(%x, %0)
      %2 = constant(value=f32[] {1})
      %3 = add(%1, %2)
      %4 = relu(%3)
      return %4
    })");
}

TEST(Trace, TakesAndGivesSeveralValues) {
  const auto graph = trace({{f32({2}), "left"}, f32({2})}, [](Value a, Value b) {
    const Value sum = a + b;
    sum.set_name("sum");
    return std::vector<Value>{sum, a - b, a};
  });
  expect_same(*graph,
              "graph(%a: f32[2], %b: f32[2]) { %0 = add(%a, %b) %1 = sub(%a, %b) return %0, %1, %a }");
  EXPECT_EQ(graph->input(0).name(), "left");
  EXPECT_EQ(graph->input(1).name(), "x1");
  EXPECT_EQ(graph->output_names(), (std::vector<std::string>{"sum", "output_1", "left"}));
}

TEST(Trace, TakesAFunctionOfAllInputs) {
  const TracedInputs inputs(3, f32({}));
  const auto graph = trace(inputs, [](const std::vector<Value>& values) {
    Value sum = values[0];
    for (size_t i = 1; i < values.size(); ++i)
      sum = sum + values[i];
    return sum;
  });
  EXPECT_EQ(graph->input_count(), 3);
  EXPECT_EQ(graph->node_count(), 2);
  EXPECT_EQ(graph->output_names(), std::vector<std::string>{"output"});
}

TEST(Trace, TakesAFunctionOfNothing) {
  const auto graph = trace({}, [] { return std::vector<Value>(); });
  EXPECT_EQ(graph->node_count(), 0);
}

TEST(Trace, RefusesAFunctionOfAnotherNumberOfValues) {
  EXPECT_THROW(trace({f32({})}, [](Value a, Value b) { return a + b; }), InternalError);
}

TEST(Trace, KeepsSymbols) {
  const auto graph = trace({f32({Dim::symbol("batch"), 4})},
                           [](Value x) { return Linear{.name = "l", .in = 4, .out = 3}(x); });
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[batch,3]");
}

TEST(Module, SharesParametersByName) {
  const auto graph = trace({f32({1, 4})}, [](Value x) {
    const Linear square{.name = "square", .in = 4, .out = 4};
    return square(square(x));
  });
  EXPECT_EQ(graph->node_count(), 4);  // weight, bias, and two layers
}

TEST(Module, FillsParametersByNameAlone) {
  const auto weight = [](const std::string& name) {
    const auto graph = trace({}, [&] { return std::vector<Value>(); });
    return random_parameter(*graph, name, {64}, {-0.5, 0.5}).node()->attr("value").as<Literal>().tensor();
  };
  EXPECT_TRUE(identical(weight("a.weight"), weight("a.weight")));
  EXPECT_FALSE(identical(weight("a.weight"), weight("b.weight")));
  const std::vector<double> values = widen<double>(weight("a.weight"));
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -0.5);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 0.5);
}

TEST(Module, LeavesOutWhatIsNotWanted) {
  const auto graph = trace({f32({1, 2, 5, 5})}, [](Value x) {
    const Value y = Conv2d{.name = "c", .in = 2, .out = 4, .kernel = 3, .stride = 2, .bias = false}(x);
    return BatchNorm2d{.name = "b", .channels = 4, .affine = false}(y);
  });
  std::vector<std::string> parameters;
  for (const Node* node : graph->nodes())
    if (node->is("parameter"))
      parameters.push_back(node->attr("name"));
  EXPECT_EQ(parameters, (std::vector<std::string>{"c.weight", "b.running_mean", "b.running_var"}));
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[1,4,2,2]");
}

}  // namespace
}  // namespace tenon
