#include "ops/onnx_node.h"

#include "ops/elements.h"

namespace tenon {
namespace {

// What else is known of the results comes with the node.
Types infer(const Node& n) {
  Types types;
  for (const std::string& name : n.attr("dtypes").as<Attribute::Strings>()) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype)
      throw user_error("onnx_node: {} is no dtype", name);
    types.push_back(Type::tensor(*dtype, Shape::unranked()));
  }
  return types;
}

Data eval(const Call& c) {
  throw user_error("onnx_node: {} is kept to be written, and cannot be computed",
                   c.node().attr("name").as<std::string>());
}

}  // namespace

const Family& onnx_node_ops() {
  // It may draw random numbers: it is never folded or merged.
  static const Family ops = {
      {.name = "onnx_node",
       .doc = "a node of an ONNX file, kept as it came",
       .operands = {{"operands", "any", Arity::Many}},
       .attributes = {{"name", AttributeKind::String, "its op, after the domain"},
                      {"since", AttributeKind::Int, "the oldest version of the domain that has it so"},
                      {"until", AttributeKind::Int, "the newest version"},
                      {"inputs", AttributeKind::Ints, "which operand each is; -1 where one is left out"},
                      {"attributes", AttributeKind::Strings, "the bytes of each, as in the file"},
                      {"dtypes", AttributeKind::Strings, "of the results"}},
       .results = {{"results", "any", Arity::Many}},
       .traits = {.random = true, .takes_unranked = true},
       .infer = infer,
       .eval = eval}};
  return ops;
}

std::vector<Value> keep_onnx_node(Graph& graph, const OnnxNode& node, const std::vector<Value>& operands,
                                  const Types& types) {
  Attribute::Strings dtypes;
  for (const Type& type : types)
    dtypes.emplace_back(info(type.as_tensor().dtype).name);
  return graph
      .create("onnx_node", {{"operands", operands}},
              {{"name", node.op},
               {"since", node.since},
               {"until", node.until},
               {"inputs", node.inputs},
               {"attributes", node.attributes},
               {"dtypes", dtypes}},
              {}, &types)
      ->results();
}

OnnxNode onnx_node_of(const Node& node) {
  return {.op = node.attr("name"),
          .since = node.attr("since"),
          .until = node.attr("until"),
          .inputs = node.attr("inputs"),
          .attributes = node.attr("attributes")};
}

}  // namespace tenon
