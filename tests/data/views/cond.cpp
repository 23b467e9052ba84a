// Compiled against Tenon's headers, trace_cond(literals) traces to this graph. `literals` holds the
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

std::unique_ptr<tenon::Graph> trace_cond([[maybe_unused]] const tenon::LiteralTable& literals) {
  using namespace tenon;
  register_ops();
  auto traced = std::make_unique<Graph>("cond");
  Graph& graph = *traced;
  const Value x = graph.add_input(parse_type("f32[4,4]"), "x");
  const Value v0 = graph.create("reduce_sum", {{"x", x}}, {{"axes", Attribute::Ints{0, 1}}})->result();
  const Value v1 = constant(graph, narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{0.0}));
  const Value v2 = greater(v0, v1);
  std::unique_ptr<Graph> then_region = graph.make_region("then");
  {
    Graph& graph_1 = *then_region;
    const Value x_1 = graph_1.add_input(parse_type("f32[4,4]"), "x");
    const Value v3 = constant(graph_1, narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{2.0}));
    const Value v4 = x_1 * v3;
    graph_1.set_outputs({v4}, {"output"});
  }
  std::unique_ptr<Graph> else_region = graph.make_region("else");
  {
    Graph& graph_2 = *else_region;
    const Value x_2 = graph_2.add_input(parse_type("f32[4,4]"), "x");
    const Value v5 = constant(graph_2, narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{1.0}));
    const Value v6 = x_2 - v5;
    graph_2.set_outputs({v6}, {"output"});
  }
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(then_region));
  regions.push_back(std::move(else_region));
  const Value v7 = graph.create("if", {{"condition", v2}, {"inputs", std::vector<Value>{x}}}, {}, std::move(regions))->result();
  graph.set_outputs({v7}, {"output"});
  return traced;
}
