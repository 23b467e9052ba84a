// dot.cpp — a graph for Graphviz: ops as boxes coloured by category, values as arrows with their types.
#include "ir/print.h"
#include "views/constants.h"
#include "views/forms.h"

namespace tenon {
namespace {

std::string_view color(Category category) {
  switch (category) {
    case Category::Compute:
      return "lightblue";
    case Category::Data:
      return "lightgrey";
    case Category::Shape:
      return "lightyellow";
    case Category::Control:
      return "lightpink";
    case Category::Memory:
      return "lightgreen";
  }
  return "white";
}

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    text_ = fmt::format("digraph {} {{\n  node [shape=box, style=filled];\n", quote(graph.name()));
    print_inside(graph, "  ");
    return text_ + "}\n";
  }

 private:
  std::string vertex(std::string_view label, std::string_view fill, const std::string& indent) {
    const std::string id = fmt::format("n{}", next_++);
    text_ += fmt::format("{}{} [label={}, fillcolor={}];\n", indent, id, quote(label), fill);
    return id;
  }

  void print_inside(const Graph& graph, const std::string& indent) {
    for (Value input : graph.inputs())
      ids_[input.data()] = vertex(input.name().empty() ? "input" : input.name(), "white", indent);
    for (const Node* node : graph.nodes())
      print_node(*node, indent);
    const std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = graph.output_names()[i];
      print_edge(outputs[i], vertex(name.empty() ? "output" : name, "white", indent), indent);
    }
  }

  void print_node(const Node& node, const std::string& indent) {
    std::string label(node.op().name);
    if (node.is("parameter"))
      label = node.attr("name").as<std::string>();
    else if (const auto text =
                 node.result_count() == 1 ? short_constant(node.result(), kPlainNumbers) : std::nullopt)
      label = *text;
    const std::string id = vertex(label, color(node.op().category), indent);
    for (Value result : node.results())
      ids_[result.data()] = id;
    for (Value operand : node.operands())
      print_edge(operand, id, indent);
    for (size_t i = 0; i < node.regions().size(); ++i) {
      text_ += fmt::format("{0}subgraph cluster_{1}_{2} {{\n{0}  label={3};\n", indent, id, i,
                           quote(fmt::format("{} of {}", node.op().regions[i], node.op().name)));
      print_inside(*node.regions()[i], indent + "  ");
      text_ += indent + "}\n";
    }
  }

  void print_edge(Value value, const std::string& to, const std::string& indent) {
    text_ += fmt::format("{}{} -> {} [label={}];\n", indent, ids_.at(value.data()), to,
                         quote(to_string(value.type())));
  }

  std::string text_;
  int64_t next_ = 0;
  std::unordered_map<const ValueData*, std::string> ids_;
};

}  // namespace

std::string show_as_dot(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
