// cpp.cpp — a graph as C++ source that, compiled against Tenon's headers, traces to the same graph.
//
// Constants that are too long for a line come from a table, by their hash, as in Tenon's own text form.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "ir/print.h"
#include "tensor/wide.h"
#include "views/constants.h"
#include "views/forms.h"
#include "views/naming.h"

namespace tenon {
namespace {

constexpr int64_t kShownElements = 64;

// How an op is written when its attributes have their defaults: {0}, {1} are its operands.
const std::map<std::string_view, std::string_view>& expressions() {
  static const std::map<std::string_view, std::string_view> forms = {
      {"abs", "abs({0})"},
      {"add", "{0} + {1}"},
      {"and", "logical_and({0}, {1})"},
      {"ceil", "ceil({0})"},
      {"cos", "cos({0})"},
      {"div", "{0} / {1}"},
      {"equal", "equal({0}, {1})"},
      {"erf", "erf({0})"},
      {"exp", "exp({0})"},
      {"floor", "floor({0})"},
      {"greater", "greater({0}, {1})"},
      {"greater_equal", "greater_equal({0}, {1})"},
      {"is_nan", "is_nan({0})"},
      {"less", "less({0}, {1})"},
      {"less_equal", "less_equal({0}, {1})"},
      {"log", "log({0})"},
      {"matmul", "matmul({0}, {1})"},
      {"max", "maximum({0}, {1})"},
      {"min", "minimum({0}, {1})"},
      {"mul", "{0} * {1}"},
      {"neg", "-{0}"},
      {"not", "logical_not({0})"},
      {"or", "logical_or({0}, {1})"},
      {"pow", "pow({0}, {1})"},
      {"reciprocal", "reciprocal({0})"},
      {"relu", "relu({0})"},
      {"reshape", "reshape({0}, {1})"},
      {"round", "round({0})"},
      {"shape", "shape_of({0})"},
      {"sigmoid", "sigmoid({0})"},
      {"sign", "sign({0})"},
      {"sin", "sin({0})"},
      {"sqrt", "sqrt({0})"},
      {"sub", "{0} - {1}"},
      {"tanh", "tanh({0})"},
      {"where", "where({0}, {1}, {2})"},
  };
  return forms;
}

// A raw string, so that types and names read as they are.
std::string raw(const std::string& text) { return fmt::format("R\"({})\"", text); }

std::string dtype_text(DType dtype) { return fmt::format("*parse_dtype(\"{}\")", name(dtype)); }

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    for (std::string_view reserved : {"literals", "tenon", "std", "traced"})
      names_.take(reserved);
    for (const auto& [op, form] : expressions())
      names_.take(form.substr(0, std::min(form.find('('), form.size())));
    const std::string function = names_.take(graph.name());
    print_lambda(graph, "  ", "*traced");
    return fmt::format(
        "// {0}: compiled against Tenon's headers, {1}(literals) traces to this graph. `literals` holds the\n"
        "// constants that are too long to be written here, as large_literals(graph) gives them.\n"
        "#include <cmath>\n"
        "#include <cstdint>\n\n"
        "#include \"base/mapped_file.h\"\n"
        "#include \"ir/parse.h\"\n"
        "#include \"ops/binary.h\"\n"
        "#include \"ops/data.h\"\n"
        "#include \"ops/layer.h\"\n"
        "#include \"ops/linear.h\"\n"
        "#include \"ops/reshape.h\"\n"
        "#include \"ops/select.h\"\n"
        "#include \"ops/trace.h\"\n"
        "#include \"ops/unary.h\"\n"
        "#include \"tensor/wide.h\"\n\n"
        "std::unique_ptr<tenon::Graph> {1}([[maybe_unused]] const tenon::LiteralTable& literals) {{\n"
        "  using namespace tenon;\n"
        "  auto traced = std::make_unique<Graph>({2});\n"
        "{3}"
        "  return traced;\n"
        "}}\n",
        graph.name(), function, raw(graph.name()), text_);
  }

 private:
  // The statements that fill the graph that the expression `target` names.
  void print_lambda(const Graph& graph, const std::string& indent, const std::string& target) {
    const std::string name = names_.take("graph");
    text_ += fmt::format("{}Graph& {} = {};\n", indent, name, target);
    for (Value input : graph.inputs()) {
      text_ += fmt::format("{}const Value {} = {}.add_input(parse_type({}), {});\n", indent, variable(input),
                           name, raw(to_string(input.type())), raw(input.name()));
    }
    for (const Node* node : graph.nodes())
      print_node(*node, indent, name);
    std::vector<std::string> outputs, output_names;
    for (Value output : graph.outputs())
      outputs.push_back(variable(output));
    for (const std::string& output : graph.output_names())
      output_names.push_back(raw(output));
    text_ += fmt::format("{}{}.set_outputs({{{}}}, {{{}}});\n", indent, name, fmt::join(outputs, ", "),
                         fmt::join(output_names, ", "));
  }

  const std::string& variable(Value value) {
    if (const auto it = variables_.find(value.data()); it != variables_.end())
      return it->second;
    // A value without a name, or with one that may mean something in C++, is called after its place.
    const bool is_short = value.name().size() == 1;
    return variables_[value.data()] = names_.take(is_short || value.name().find('.') != std::string::npos
                                                      ? value.name()
                                                      : fmt::format("v{}", next_++));
  }

  void print_node(const Node& node, const std::string& indent, const std::string& graph) {
    std::vector<std::string> regions;
    for (size_t i = 0; i < node.regions().size(); ++i) {
      const std::string region = names_.take(fmt::format("{}_region", node.op().regions[i]));
      text_ += fmt::format("{0}std::unique_ptr<Graph> {1} = {2}.make_region({3});\n{0}{{\n", indent, region,
                           graph, raw(node.regions()[i]->name()));
      print_lambda(*node.regions()[i], indent + "  ", "*" + region);
      text_ += indent + "}\n";
      regions.push_back(region);
    }
    const std::string made = expression(node, graph, regions, indent);
    if (node.result_count() == 1) {
      text_ += fmt::format("{}const Value {} = {};\n", indent, variable(node.result()), made);
    } else {
      const std::string maker = names_.take("node");
      text_ += fmt::format("{}const Node* {} = {};\n", indent, maker, made);
      for (Value result : node.results())
        text_ += fmt::format("{}const Value {} = {}->result({});\n", indent, variable(result), maker,
                             result.index());
    }
    for (Value result : node.results())
      if (!result.name().empty() && !node.is("parameter"))
        text_ += fmt::format("{}{}.set_name({});\n", indent, variable(result), raw(result.name()));
  }

  std::string expression(const Node& node, const std::string& graph, const std::vector<std::string>& regions,
                         const std::string& indent) {
    if (node.is("constant"))
      return fmt::format("constant({}, {})", graph, literal(*literal_of(node.result())));
    if (node.is("parameter") && node.result().name() == node.attr("name").as<std::string>())
      return fmt::format("parameter({}, {}, {})", graph, raw(node.attr("name")),
                         literal(*literal_of(node.result())));
    if (node.is("linear"))
      return fmt::format("linear({}, {}{})", variable(node.in("x")), variable(node.in("weight")),
                         node.has("bias") ? ", " + variable(node.in("bias")) : "");
    const auto form = expressions().find(node.op().name);
    if (form != expressions().end() && has_defaults(node))
      return fill(form->second, node);
    return general(node, graph, regions, indent);
  }

  static bool has_defaults(const Node& node) {
    return node.late_names().empty() && std::all_of(node.op().attributes.begin(), node.op().attributes.end(),
                                                    [&](const AttributeDecl& decl) {
                                                      return decl.default_value &&
                                                             node.attr(decl.name) == *decl.default_value;
                                                    });
  }

  std::string fill(std::string_view form, const Node& node) {
    std::array<std::string, 3> operands;
    for (size_t i = 0; i < operands.size() && static_cast<int64_t>(i) < node.operand_count(); ++i)
      operands[i] = variable(node.operand(static_cast<int64_t>(i)));
    return fmt::format(fmt::runtime(form), operands[0], operands[1], operands[2]);
  }

  // Any node, through the gate.
  std::string general(const Node& node, const std::string& graph, const std::vector<std::string>& regions,
                      const std::string& indent) {
    std::vector<std::string> operands, attributes;
    for (const OperandDecl& decl : node.op().operands) {
      std::vector<std::string> values;
      for (Value value : node.ins(decl.name))
        values.push_back(variable(value));
      if (decl.arity == Arity::Many)
        operands.push_back(
            fmt::format("{{\"{}\", std::vector<Value>{{{}}}}}", decl.name, fmt::join(values, ", ")));
      else if (!values.empty())
        operands.push_back(fmt::format("{{\"{}\", {}}}", decl.name, values[0]));
    }
    for (std::string_view late : node.late_names())
      operands.push_back(fmt::format("{{\"{}\", {}}}", late, variable(node.late(late))));
    for (const AttributeDecl& decl : node.op().attributes)
      if (!node.is_late(decl.name) && !(decl.default_value && node.attr(decl.name) == *decl.default_value))
        attributes.push_back(fmt::format("{{\"{}\", {}}}", decl.name, attribute(node.attr(decl.name))));
    std::string more;
    if (!regions.empty()) {
      const std::string list = names_.take("regions");
      text_ += fmt::format("{}std::vector<std::unique_ptr<Graph>> {};\n", indent, list);
      for (const std::string& region : regions)
        text_ += fmt::format("{}{}.push_back(std::move({}));\n", indent, list, region);
      more = fmt::format(", std::move({})", list);
    }
    return fmt::format("{}.create(\"{}\", {{{}}}, {{{}}}{}){}", graph, node.op().name,
                       fmt::join(operands, ", "), fmt::join(attributes, ", "), more,
                       node.result_count() == 1 ? "->result()" : "");
  }

  std::string attribute(const Attribute& value) {
    switch (value.kind()) {
      case AttributeKind::Int:
        return fmt::format("int64_t{{{}}}", number(value.as<int64_t>()));
      case AttributeKind::String:
        return raw(value.as<std::string>());
      case AttributeKind::Ints:
        return fmt::format("Attribute::Ints{{{}}}", numbers(value.as<Attribute::Ints>()));
      case AttributeKind::Float:
        return fmt::format("double{{{}}}", number(value.as<double>(), DType::F64));
      case AttributeKind::Floats:
        return fmt::format("Attribute::Floats{{{}}}", numbers(value.as<Attribute::Floats>()));
      case AttributeKind::Strings: {
        std::vector<std::string> texts;
        for (const std::string& text : value.as<Attribute::Strings>())
          texts.push_back(raw(text));
        return fmt::format("Attribute::Strings{{{}}}", fmt::join(texts, ", "));
      }
      case AttributeKind::DType:
        return dtype_text(value.as<DType>());
      case AttributeKind::Type:
        return fmt::format("parse_type({})", raw(to_string(value.as<Type>())));
      case AttributeKind::Literal:
        return literal(value.as<Literal>());
      default:
        return print(value);
    }
  }

  std::string literal(const Literal& value) {
    const std::string extents = fmt::format("{{{}}}", fmt::join(value.extents(), ", "));
    if (const auto* iota = std::get_if<Literal::Iota>(&value.form()))
      return fmt::format("Literal::iota({}, {}, {}, {})", dtype_text(value.dtype()), iota->start, iota->step,
                         value.count());
    if (const auto* slice = std::get_if<Literal::FileSlice>(&value.form());
        slice != nullptr && value.count() > kShownElements)
      return fmt::format("Literal::file_slice({}, {}, MappedFile::open({}), {}, {})",
                         dtype_text(value.dtype()), extents, raw(slice->file->path().string()), slice->offset,
                         slice->size);
    if (const auto* splat = std::get_if<Literal::Splat>(&value.form()))
      if (const auto element = dense(splat->element, "{}"))
        return fmt::format("Literal::splat({}, {})", *element, extents);
    if (value.count() <= kShownElements)
      if (const auto tensor = dense(value.tensor(), extents))
        return *tensor;
    return fmt::format("literals.at({:#018x})", value.content_hash());
  }

  static std::string number(double value, DType dtype) {
    if (std::isnan(value))
      return "std::nan(\"\")";
    if (std::isinf(value))
      return value > 0 ? "HUGE_VAL" : "-HUGE_VAL";
    return dtype == DType::F32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  }
  // The least integer cannot be written as minus a number.
  static std::string number(int64_t value, DType = DType::I64) {
    return value == std::numeric_limits<int64_t>::min() ? "INT64_MIN" : fmt::format("{}", value);
  }
  static std::string number(uint64_t value, DType) { return fmt::format("{}u", value); }

  template <class T>
  static std::string numbers(const std::vector<T>& values) {
    std::vector<std::string> texts;
    for (const T value : values)
      texts.push_back(number(value, DType::F64));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  // The tensor, if its elements written as numbers read back bit by bit.
  static std::optional<std::string> dense(const Tensor& tensor, const std::string& extents) {
    if (tensor.dtype() == DType::String || kind(tensor.dtype()) == DTypeKind::Complex)
      return std::nullopt;
    return with_wide(tensor.dtype(), [&]<class T>(T) -> std::optional<std::string> {
      std::vector<T> values = widen<T>(tensor);
      std::vector<std::string> texts;
      for (T& value : values) {
        if constexpr (std::is_same_v<T, double>)
          if (std::isnan(value))
            value = std::nan("");
        texts.push_back(number(value, tensor.dtype()));
      }
      if (!identical(narrow<T>(tensor.dtype(), tensor.extents(), values), tensor))
        return std::nullopt;
      constexpr std::string_view wide = std::is_same_v<T, double>    ? "double"
                                        : std::is_same_v<T, int64_t> ? "int64_t"
                                                                     : "uint64_t";
      return fmt::format("narrow<{0}>({1}, {2}, std::vector<{0}>{{{3}}})", wide, dtype_text(tensor.dtype()),
                         extents, fmt::join(texts, ", "));
    });
  }

  ViewNames names_;
  std::unordered_map<const ValueData*, std::string> variables_;
  std::string text_;
  int64_t next_ = 0;
};

}  // namespace

std::string show_as_cpp(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
