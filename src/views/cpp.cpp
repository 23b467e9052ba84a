// cpp.cpp — a graph as C++ source that, compiled against Tenon's headers, traces to the same graph.
//
// A constant that Tenon's own text form names by its hash comes from a table here too.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "ir/infer.h"
#include "ir/print.h"
#include "tensor/wide.h"
#include "views/constants.h"
#include "views/forms.h"
#include "views/naming.h"
#include "views/vocabulary.h"

namespace tenon {
namespace {

// How an op is written when nothing is told of it but its operands: {0}, {1}.
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

// Words with an underscore that a variable must not be called: keywords, and what the source itself uses.
constexpr std::array kTaken = {
    "and_eq",      "char16_t",      "char32_t",     "char8_t",     "co_await", "co_return",
    "co_yield",    "const_cast",    "dynamic_cast", "not_eq",      "or_eq",    "reinterpret_cast",
    "static_cast", "static_assert", "thread_local", "wchar_t",     "xor_eq",   "int64_t",
    "uint64_t",    "parse_dtype",   "parse_type",   "register_ops"};

// In quotes, with every byte that is not plain ASCII escaped, and ?, which might start a trigraph. An octal
// escape has at most three digits, so what follows it cannot be taken for a part of it.
std::string cpp_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?')
      quoted += {'\\', c};
    else if (c < 0x20 || c > 0x7e)
      quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      quoted += c;
  }
  quoted += '"';
  // Without its length it would end at the first zero byte.
  return text.find('\0') == std::string_view::npos ? quoted
                                                   : fmt::format("std::string({}, {})", quoted, text.size());
}

std::string cpp_strings(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts)
    quoted.push_back(cpp_string(text));
  return fmt::format("{{{}}}", fmt::join(quoted, ", "));
}

std::string cpp_dtype(DType dtype) { return fmt::format("*parse_dtype(\"{}\")", name(dtype)); }
std::string cpp_type(const Type& type) { return fmt::format("parse_type({})", cpp_string(to_string(type))); }

std::string cpp_number(double value, DType dtype) {
  if (std::isnan(value))
    return "std::nan(\"\")";
  if (std::isinf(value))
    return value > 0 ? "HUGE_VAL" : "-HUGE_VAL";
  return float_text(value, dtype, true);
}

// The least integer cannot be written as minus a number.
std::string cpp_number(int64_t value, DType) {
  return value == std::numeric_limits<int64_t>::min() ? "INT64_MIN" : fmt::format("{}", value);
}

std::string cpp_number(uint64_t value, DType) { return fmt::format("{}u", value); }

template <class T>
std::string cpp_numbers(const std::vector<T>& values, DType dtype) {
  std::vector<std::string> texts;
  for (const T value : values)
    texts.push_back(cpp_number(value, dtype));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string cpp_tensor(const Tensor& tensor, const std::string& extents) {
  if (tensor.dtype() == DType::String)
    return fmt::format("Tensor::strings({}, {})", cpp_strings(tensor.strings()), extents);
  return with_wide(tensor.dtype(), [&]<class T>(T) {
    constexpr std::string_view wide = std::is_same_v<T, double>    ? "double"
                                      : std::is_same_v<T, int64_t> ? "int64_t"
                                                                   : "uint64_t";
    return fmt::format("narrow<{0}>({1}, {2}, std::vector<{0}>{3})", wide, cpp_dtype(tensor.dtype()), extents,
                       cpp_numbers(widen<T>(tensor), tensor.dtype()));
  });
}

std::string cpp_literal(const Literal& literal) {
  if (is_printed_by_hash(literal))
    return fmt::format("literals.at({:#018x})", literal.content_hash());
  const std::string extents = cpp_numbers(literal.extents(), DType::I64);
  if (const auto* iota = std::get_if<Literal::Iota>(&literal.form()))
    return fmt::format("Literal::iota({}, {}, {}, {})", cpp_dtype(literal.dtype()),
                       cpp_number(iota->start, DType::I64), cpp_number(iota->step, DType::I64),
                       literal.count());
  if (const auto* slice = std::get_if<Literal::FileSlice>(&literal.form());
      slice != nullptr && literal.count() > kPrintedElements)
    return fmt::format("Literal::file_slice({}, {}, MappedFile::open({}), {}, {})",
                       cpp_dtype(literal.dtype()), extents, cpp_string(slice->file->path().string()),
                       slice->offset, slice->size);
  if (const auto* splat = std::get_if<Literal::Splat>(&literal.form()))
    return fmt::format("Literal::splat({}, {})", cpp_tensor(splat->element, "{}"), extents);
  return cpp_tensor(literal.tensor(), extents);
}

std::string cpp_attribute(const Attribute& value) {
  switch (value.kind()) {
    case AttributeKind::Int:
      return fmt::format("int64_t{{{}}}", cpp_number(value.as<int64_t>(), DType::I64));
    case AttributeKind::String:
      return cpp_string(value.as<std::string>());
    case AttributeKind::Ints:
      return "Attribute::Ints" + cpp_numbers(value.as<Attribute::Ints>(), DType::I64);
    case AttributeKind::Float:
      return cpp_number(value.as<double>(), DType::F64);
    case AttributeKind::Floats:
      return "Attribute::Floats" + cpp_numbers(value.as<Attribute::Floats>(), DType::F64);
    case AttributeKind::Strings:
      return "Attribute::Strings" + cpp_strings(value.as<Attribute::Strings>());
    case AttributeKind::DType:
      return cpp_dtype(value.as<DType>());
    case AttributeKind::Type:
      return cpp_type(value.as<Type>());
    case AttributeKind::Literal:
      return cpp_literal(value.as<Literal>());
    case AttributeKind::Bool:
      return value.as<bool>() ? "true" : "false";
  }
  CHECK(false, "an attribute of no kind");
}

class Printer {
 public:
  std::string print_graph(const Graph& graph) {
    for (std::string_view taken : kTaken)
      names_.take(taken);
    for (const auto& [op, form] : expressions())
      if (form.find('(') != std::string_view::npos)
        names_.take(form.substr(0, form.find('(')));
    print_statements(graph, "  ", "*traced");
    return fmt::format(
        "// Compiled against Tenon's headers, {0}(literals) traces to this graph. `literals` holds the\n"
        "// constants that are not written here, as large_literals(graph) gives them.\n"
        "#include <cmath>\n"
        "#include <cstdint>\n\n"
        "#include \"base/mapped_file.h\"\n"
        "#include \"ir/parse.h\"\n"
        "#include \"ops/binary.h\"\n"
        "#include \"ops/data.h\"\n"
        "#include \"ops/layer.h\"\n"
        "#include \"ops/linear.h\"\n"
        "#include \"ops/registry.h\"\n"
        "#include \"ops/reshape.h\"\n"
        "#include \"ops/select.h\"\n"
        "#include \"ops/unary.h\"\n"
        "#include \"tensor/wide.h\"\n\n"
        "std::unique_ptr<tenon::Graph> {0}([[maybe_unused]] const tenon::LiteralTable& literals) {{\n"
        "  using namespace tenon;\n"
        "  register_ops();\n"
        "  auto traced = std::make_unique<Graph>({1});\n"
        "{2}"
        "  return traced;\n"
        "}}\n",
        identifier("trace_" + graph.name()), cpp_string(graph.name()), text_);
  }

 private:
  // The statements that fill the graph that the expression `target` names.
  void print_statements(const Graph& graph, const std::string& indent, const std::string& target) {
    const std::string name = names_.take("graph");
    text_ += fmt::format("{}Graph& {} = {};\n", indent, name, target);
    for (Value input : graph.inputs())
      text_ += fmt::format("{}{} = {}.add_input({}, {});\n", indent, declare(input, input.use_count() > 0),
                           name, cpp_type(input.type()), cpp_string(input.name()));
    for (const Node* node : graph.nodes())
      print_node(*node, indent, name);
    text_ += fmt::format("{}{}.set_outputs({{{}}}, {});\n", indent, name, list(graph.outputs()),
                         cpp_strings(graph.output_names()));
  }

  std::string declare(Value value, bool is_used) {
    return fmt::format("{}const Value {}", is_used ? "" : "[[maybe_unused]] ", variable(value));
  }

  // A value with a dotted name, or one of a single letter, keeps that: other names, and those in capitals,
  // may mean something in C++.
  const std::string& variable(Value value) {
    if (const auto it = variables_.find(value.data()); it != variables_.end())
      return it->second;
    const std::string& name = value.name();
    const bool is_safe = !name.empty() && 'a' <= name[0] && name[0] <= 'z' &&
                         (name.size() == 1 || name.find('.') != std::string::npos);
    return variables_[value.data()] = names_.take(is_safe ? name : fmt::format("v{}", next_++));
  }

  std::string list(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (Value value : values)
      texts.push_back(variable(value));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void print_node(const Node& node, const std::string& indent, const std::string& graph) {
    const std::vector<std::string> regions = print_regions(node, indent, graph);
    const std::string types = print_types(node, indent);
    const bool has_source = !node.sources().empty();
    const std::string made = types.empty() ? expression(node, graph, regions, indent)
                                           : general(node, graph, regions, types, indent);
    std::string maker;
    if (node.result_count() == 1) {
      const Value result = node.result();
      maker = variable(result) + ".node()";
      text_ += fmt::format("{}{} = {};\n", indent,
                           declare(result, result.use_count() > 0 || has_source || needs_name(result)), made);
    } else {
      maker = names_.take("node");
      text_ += fmt::format("{}[[maybe_unused]] Node* {} = {};\n", indent, maker, made);
      for (Value result : node.results())
        text_ +=
            fmt::format("{}{} = {}->result({});\n", indent,
                        declare(result, result.use_count() > 0 || needs_name(result)), maker, result.index());
    }
    for (Value result : node.results())
      if (needs_name(result))
        text_ += fmt::format("{}{}.set_name({});\n", indent, variable(result), cpp_string(result.name()));
    if (has_source)
      text_ += fmt::format("{}{}->set_sources({});\n", indent, maker, cpp_strings(node.sources()));
  }

  std::vector<std::string> print_regions(const Node& node, const std::string& indent,
                                         const std::string& graph) {
    std::vector<std::string> regions;
    for (size_t i = 0; i < node.regions().size(); ++i) {
      const std::string region = names_.take(fmt::format("{}_region", node.op().regions[i]));
      text_ += fmt::format("{0}std::unique_ptr<Graph> {1} = {2}.make_region({3});\n{0}{{\n", indent, region,
                           graph, cpp_string(node.regions()[i]->name()));
      print_statements(*node.regions()[i], indent + "  ", "*" + region);
      text_ += indent + "}\n";
      regions.push_back(region);
    }
    return regions;
  }

  // The variable that holds the results' types, if they say more than inference does.
  std::string print_types(const Node& node, const std::string& indent) {
    const Types types = node.result_types();
    if (infer_types(node) == types)
      return "";
    std::vector<std::string> texts;
    for (const Type& type : types)
      texts.push_back(cpp_type(type));
    const std::string name = names_.take("types");
    text_ += fmt::format("{}const Types {} = {{{}}};\n", indent, name, fmt::join(texts, ", "));
    return name;
  }

  // The function that makes a parameter names its result after it.
  static bool is_named_after_itself(const Node& node) {
    return node.is("parameter") && node.result().name() == node.attr("name").as<std::string>();
  }
  static bool needs_name(Value result) {
    return !result.name().empty() && !is_named_after_itself(*result.node());
  }

  std::string expression(const Node& node, const std::string& graph, const std::vector<std::string>& regions,
                         const std::string& indent) {
    if (node.is("constant"))
      return fmt::format("constant({}, {})", graph, cpp_literal(*literal_of(node)));
    if (is_named_after_itself(node))
      return fmt::format("parameter({}, {}, {})", graph, cpp_string(node.result().name()),
                         cpp_literal(*literal_of(node)));
    if (node.is("linear"))
      return fmt::format("linear({})", list(node.operands()));
    const auto form = expressions().find(node.op().name);
    if (form != expressions().end() && node.late_names().empty() && shown_attributes(node, nullptr).empty())
      return fill(form->second, node);
    return general(node, graph, regions, "", indent);
  }

  std::string fill(std::string_view form, const Node& node) {
    std::array<std::string, 3> operands;
    for (size_t i = 0; i < operands.size() && static_cast<int64_t>(i) < node.operand_count(); ++i)
      operands[i] = variable(node.operand(static_cast<int64_t>(i)));
    return fmt::format(fmt::runtime(form), operands[0], operands[1], operands[2]);
  }

  // Any node, through the gate. `types` is the variable with its results' types, or empty.
  std::string general(const Node& node, const std::string& graph, const std::vector<std::string>& regions,
                      const std::string& types, const std::string& indent) {
    std::vector<std::string> operands, attributes;
    for (const OperandDecl& decl : node.op().operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (decl.arity == Arity::Many)
        operands.push_back(fmt::format("{{\"{}\", std::vector<Value>{{{}}}}}", decl.name, list(values)));
      else if (!values.empty())
        operands.push_back(fmt::format("{{\"{}\", {}}}", decl.name, list(values)));
    }
    for (std::string_view late : node.late_names())
      operands.push_back(fmt::format("{{\"{}\", {}}}", late, variable(node.late(late))));
    for (const auto& [name, value] : shown_attributes(node, nullptr))
      attributes.push_back(fmt::format("{{\"{}\", {}}}", name, cpp_attribute(value)));
    std::string more;
    if (!regions.empty())
      more = fmt::format(", std::move({})", print_region_list(regions, indent));
    else if (!types.empty())
      more = ", {}";
    if (!types.empty())
      more += ", &" + types;
    return fmt::format("{}.create(\"{}\", {{{}}}, {{{}}}{}){}", graph, node.op().name,
                       fmt::join(operands, ", "), fmt::join(attributes, ", "), more,
                       node.result_count() == 1 ? "->result()" : "");
  }

  std::string print_region_list(const std::vector<std::string>& regions, const std::string& indent) {
    const std::string list = names_.take("regions");
    text_ += fmt::format("{}std::vector<std::unique_ptr<Graph>> {};\n", indent, list);
    for (const std::string& region : regions)
      text_ += fmt::format("{}{}.push_back(std::move({}));\n", indent, list, region);
    return list;
  }

  ViewNames names_;
  std::unordered_map<const ValueData*, std::string> variables_;
  std::string text_;
  int64_t next_ = 0;
};

}  // namespace

std::string show_as_cpp(const Graph& graph) { return Printer().print_graph(graph); }

}  // namespace tenon
