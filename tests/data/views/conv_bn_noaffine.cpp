// Compiled against Tenon's headers, trace_conv_bn_noaffine(literals) traces to this graph. `literals` holds the
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

std::unique_ptr<tenon::Graph> trace_conv_bn_noaffine([[maybe_unused]] const tenon::LiteralTable& literals) {
  using namespace tenon;
  register_ops();
  auto traced = std::make_unique<Graph>("conv_bn_noaffine");
  Graph& graph = *traced;
  const Value x = graph.add_input(parse_type("f32[1,3,16,16]"), "x");
  const Value conv_weight = parameter(graph, "conv.weight", literals.at(0x6a2b6b22bec043f6));
  const Value v0 = graph.create("conv", {{"x", x}, {"w", conv_weight}}, {{"strides", Attribute::Ints{1, 1}}, {"dilations", Attribute::Ints{1, 1}}, {"pads", Attribute::Ints{0, 0, 0, 0}}})->result();
  const Value conv_bias = parameter(graph, "conv.bias", narrow<double>(*parse_dtype("f32"), {8}, std::vector<double>{0.06993707, -0.040261585, 0.09269976, -0.15353315, -0.15508643, 0.16908965, 0.013533044, -0.18933082}));
  const Value v1 = graph.create("unsqueeze", {{"x", conv_bias}}, {{"axes", Attribute::Ints{1, 2}}})->result();
  const Value v2 = v0 + v1;
  const Value v3 = constant(graph, Literal::splat(narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{1.0}), {8}));
  const Value v4 = constant(graph, Literal::splat(narrow<double>(*parse_dtype("f32"), {}, std::vector<double>{0.0}), {8}));
  const Value bn_running_mean = parameter(graph, "bn.running_mean", narrow<double>(*parse_dtype("f32"), {8}, std::vector<double>{-0.03904793, 0.015756123, 0.11655902, -0.46583524, -0.26653746, 0.013359462, -0.20016828, 0.20885985}));
  const Value bn_running_var = parameter(graph, "bn.running_var", narrow<double>(*parse_dtype("f32"), {8}, std::vector<double>{0.7413158, 0.6711746, 1.4872236, 0.50355506, 0.8602613, 0.52547926, 1.0780262, 0.81958514}));
  const Value v5 = graph.create("batch_norm", {{"x", v2}, {"scale", v3}, {"bias", v4}, {"mean", bn_running_mean}, {"variance", bn_running_var}}, {})->result();
  graph.set_outputs({v5}, {"output"});
  return traced;
}
