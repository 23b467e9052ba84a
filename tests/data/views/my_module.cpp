// Compiled against Tenon's headers, trace_my_module(literals) traces to this graph. `literals` holds the
// constants that are not written here, as large_literals(graph) gives them.
#include <cmath>
#include <cstdint>

#include "base/mapped_file.h"
#include "ir/parse.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/layer.h"
#include "ops/linear.h"
#include "ops/registry.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

std::unique_ptr<tenon::Graph> trace_my_module([[maybe_unused]] const tenon::LiteralTable& literals) {
  using namespace tenon;
  register_ops();
  auto traced = std::make_unique<Graph>("my_module");
  Graph& graph = *traced;
  const Value x = graph.add_input(parse_type("f32[3,4]"), "x");
  const Value v0 = parameter(graph, "param", narrow<double>(*parse_dtype("f32"), {3, 4}, std::vector<double>{0.83102715, 0.780146, 0.35038996, 0.8106279, 0.419808, 0.26567096, 0.119622126, 0.29748306, 0.20979762, 0.81057477, 0.14097878, 0.19750735}));
  const Value v1 = x + v0;
  const Value linear_weight = parameter(graph, "linear.weight", literals.at(0x7d2ce440d313e710));
  const Value linear_bias = parameter(graph, "linear.bias", narrow<double>(*parse_dtype("f32"), {5}, std::vector<double>{-0.30437127, -0.2643829, 0.33703712, 0.3827213, -0.06027144}));
  const Value v2 = linear(v1, linear_weight, linear_bias);
  const Value v3 = constant(graph, narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{0.0}));
  const Value v4 = constant(graph, narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{1.0}));
  const Value v5 = graph.create("clip", {{"x", v2}, {"min", v3}, {"max", v4}}, {})->result();
  graph.set_outputs({v5}, {"output"});
  return traced;
}
