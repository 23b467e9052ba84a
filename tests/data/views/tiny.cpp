// Compiled against Tenon's headers, trace_tiny(literals) traces to this graph. `literals` holds the
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

std::unique_ptr<tenon::Graph> trace_tiny([[maybe_unused]] const tenon::LiteralTable& literals) {
  using namespace tenon;
  register_ops();
  auto traced = std::make_unique<Graph>("tiny");
  Graph& graph = *traced;
  const Value x = graph.add_input(parse_type("f32[1,4]"), "x");
  const Value linear_weight = parameter(graph, "linear.weight", narrow<double>(*parse_dtype("f32"), {3, 4}, std::vector<double>{0.45898065, 0.41343415, -0.058448017, 0.23801765, -0.21473578, -0.27505106, 0.04058518, 0.2704329, -0.3043226, 0.37536564, 0.033688158, 0.035829682}));
  const Value linear_bias = parameter(graph, "linear.bias", narrow<double>(*parse_dtype("f32"), {3}, std::vector<double>{-0.30437127, -0.2643829, 0.33703712}));
  const Value v0 = linear(x, linear_weight, linear_bias);
  const Value v1 = relu(v0);
  graph.set_outputs({v1}, {"output"});
  return traced;
}
