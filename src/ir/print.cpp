#include "ir/print.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "base/sampled_hash.h"
#include "base/write_file.h"
#include "tensor/packing.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

bool is_plain(std::string_view name) {
  const auto word = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  };
  // A name of digits alone would read as an unnamed value's number.
  return !name.empty() && std::all_of(name.begin(), name.end(), word) && !('0' <= name[0] && name[0] <= '9');
}

std::string print_float(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

template <class T>
std::string join(const std::vector<T>& values, std::string (*text)(T)) {
  std::string joined;
  for (const T& value : values)
    joined += (joined.empty() ? "" : ", ") + text(value);
  return joined;
}

// "1, 2, 3", or nothing where the elements would not read back bit by bit (complex numbers, NaNs with a
// payload).
std::optional<std::string> print_elements(const Tensor& t) {
  if (t.dtype() == DType::String) {
    return join<std::string>(t.strings(), [](std::string v) { return quote(v); });
  }
  if (kind(t.dtype()) == DTypeKind::Complex)
    return std::nullopt;
  return with_wide(t.dtype(), [&]<class T>(T) -> std::optional<std::string> {
    const std::vector<T> values = widen<T>(t);
    if (!identical(narrow<T>(t.dtype(), t.extents(), values), t))
      return std::nullopt;
    std::vector<T> canonical = values;
    if constexpr (std::is_same_v<T, double>) {
      // The text says just "nan", so every NaN must be the one that narrowing the usual NaN gives.
      for (double& v : canonical)
        if (std::isnan(v))
          v = std::nan("");
      if (!identical(narrow<double>(t.dtype(), t.extents(), canonical), t))
        return std::nullopt;
      if (t.dtype() == DType::F32)
        return join<double>(canonical, [](double v) {
          return std::isfinite(v) ? fmt::format("{}", static_cast<float>(v)) : print_float(v);
        });
      return join<double>(canonical, print_float);
    } else {
      return join<T>(canonical, [](T v) { return fmt::format("{}", v); });
    }
  });
}

std::string print_slice(const Literal& literal, const std::filesystem::path& file, uint64_t offset,
                        std::span<const std::byte> bytes) {
  return fmt::format("{} file {} {} {} check {:#018x}",
                     Type::tensor(literal.dtype(), Shape::of(literal.extents())), quote(file.string()),
                     offset, bytes.size(), sampled_hash(bytes));
}

// How a text in `folder` names a file: by its place in the folder, so that both can be moved, or else
// absolutely.
std::filesystem::path name_in(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const std::filesystem::path whole = std::filesystem::absolute(file).lexically_normal();
  if (folder.empty())
    return whole;
  const std::filesystem::path inside = whole.lexically_relative(folder);
  return *inside.begin() == ".." ? whole : inside;
}

// The text of a constant, or nothing where only its hash would tell. An empty folder is none.
std::optional<std::string> print_literal(const Literal& literal, const std::filesystem::path& folder = {}) {
  const std::string type = to_string(Type::tensor(literal.dtype(), Shape::of(literal.extents())));
  if (const auto* splat = std::get_if<Literal::Splat>(&literal.form())) {
    if (const auto element = print_elements(splat->element))
      return fmt::format("{} splat {}", type, *element);
  } else if (const auto* iota = std::get_if<Literal::Iota>(&literal.form())) {
    return fmt::format("{} iota {} {}", type, iota->start, iota->step);
  } else if (const auto* slice = std::get_if<Literal::FileSlice>(&literal.form())) {
    if (literal.count() > kPrintedElements)
      return print_slice(literal, name_in(folder, slice->file->path()), slice->offset,
                         slice->file->bytes().subspan(slice->offset, slice->size));
  }
  if (literal.count() <= kPrintedElements || literal.dtype() == DType::String)
    if (const auto elements = print_elements(literal.tensor()))
      return fmt::format("{} {{{}}}", type, *elements);
  return std::nullopt;
}

std::string print_hash(const Literal& literal) {
  return fmt::format("{} hash {:#018x}", Type::tensor(literal.dtype(), Shape::of(literal.extents())),
                     literal.content_hash());
}

bool is_large_slice(const Literal& literal) {
  return std::holds_alternative<Literal::FileSlice>(literal.form()) && literal.count() > kPrintedElements;
}

// How the constants of a text that goes to a file are told: those that are in no file by where they stand in
// one that is written beside it.
struct SavedLiterals {
  std::filesystem::path folder;                          // of the text
  std::unordered_map<uint64_t, std::string> texts = {};  // by hash

  std::string print(const Literal& literal) const {
    const auto text = print_literal(literal, folder);
    return text ? *text : texts.at(literal.content_hash());
  }
};

class Printer {
 public:
  std::string text;
  const SavedLiterals* saved = nullptr;
  bool names_files = true;

  void top(const Graph& graph) {
    text = "graph " + (is_plain(graph.name()) ? graph.name() : quote(graph.name()));
    this->graph(graph, "");
    text += "\n";
  }

  void graph(const Graph& graph, const std::string& indent) {
    const ValueNames names(graph);
    const auto value = [&](Value v) { return "%" + names.of(v); };
    text += "(";
    for (Value input : graph.inputs())
      text += fmt::format("{}{}: {}", input.index() == 0 ? "" : ", ", value(input), input.type());
    text += ") {\n";
    for (const Node* node : graph.nodes()) {
      text += indent + "  ";
      this->node(*node, value, indent + "  ");
      text += "\n";
    }
    text += indent + "  return";
    const std::vector<Value> outputs = graph.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value output = outputs[i];
      text += (i == 0 ? " " : ", ") + value(output);
      if (graph.output_names()[i] != names.name(output))
        text += " as " + quote(graph.output_names()[i]);
    }
    text += "\n" + indent + "}";
  }

  template <class Name>
  void node(const Node& node, const Name& value, const std::string& indent) {
    for (Value result : node.results())
      text += fmt::format("{}{}: {}", result.index() == 0 ? "" : ", ", value(result), result.type());
    text += node.result_count() == 0 ? "" : " = ";
    call(node, value);
    for (size_t i = 0; i < node.regions().size(); ++i) {
      text += fmt::format(" {}", node.op().regions[i]);
      graph(*node.regions()[i], indent);
    }
    if (!node.sources().empty()) {
      text += " from ";
      for (const std::string& source : node.sources())
        text += (&source == &node.sources().front() ? "" : ", ") + quote(source);
    }
  }

 private:
  // Operands stand in order until one is left out; from there, and the attributes, by name.
  template <class Name>
  void call(const Node& node, const Name& value) {
    const OpDef& op = node.op();
    text += fmt::format("{}(", op.name);
    std::string_view separator = "";
    const auto argument = [&](std::string_view name, const std::string& what) {
      text += fmt::format("{}{}{}{}", separator, name, name.empty() ? "" : "=", what);
      separator = ", ";
    };
    bool positional = true;
    for (const OperandDecl& decl : op.operands) {
      const std::vector<Value> values = node.ins(decl.name);
      if (values.empty()) {
        positional = false;
        continue;
      }
      std::string list;
      for (Value v : values)
        list += (list.empty() ? "" : ", ") + value(v);
      argument(positional ? "" : decl.name, decl.arity == Arity::Many ? "[" + list + "]" : list);
    }
    for (const AttributeDecl& decl : op.attributes) {
      if (node.is_late(decl.name)) {
        argument(decl.name, value(node.late(decl.name)));
        continue;
      }
      const Attribute& attribute = node.attr(decl.name);
      if (!is_default(node, decl, attribute))
        argument(decl.name, attribute_text(attribute));
    }
    text += ")";
  }

  // Whether a node that is read without the attribute gets it again.
  static bool is_default(const Node& node, const AttributeDecl& decl, const Attribute& attribute) {
    if (!decl.default_value || attribute != *decl.default_value)
      return false;
    try {
      return !decl.computed_default || decl.computed_default->compute(node) == attribute;
    } catch (const UserError&) {
      return false;
    }
  }

  std::string attribute_text(const Attribute& attribute) const {
    if (saved != nullptr && attribute.kind() == AttributeKind::Literal)
      return saved->print(attribute.as<Literal>());
    if (!names_files && attribute.kind() == AttributeKind::Literal && is_large_slice(attribute.as<Literal>()))
      return print_hash(attribute.as<Literal>());
    return print(attribute);
  }
};

}  // namespace

ValueNames::ValueNames(const Graph& graph) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int64_t> repeats;
  int64_t number = 0;
  const auto add = [&](Value value) {
    std::string name = value.name();
    if (name.empty()) {
      names_[value.data()] = {"", number++};
      return;
    }
    while (!taken.insert(name).second)
      name = fmt::format("{}_{}", value.name(), ++repeats[value.name()]);
    names_[value.data()] = {name, 0};
  };
  for (Value input : graph.inputs())
    add(input);
  for (const Node* node : graph.nodes())
    for (Value result : node->results())
      add(result);
}

std::string ValueNames::of(Value value) const {
  const auto& [name, number] = names_.at(value.data());
  if (name.empty())
    return fmt::format("{}", number);
  return is_plain(name) ? name : quote(name);
}

std::string print(const Graph& graph) {
  Printer printer;
  printer.top(graph);
  return printer.text;
}

std::string print_by_hash(const Graph& graph) {
  Printer printer;
  printer.names_files = false;
  printer.top(graph);
  return printer.text;
}

std::string print(const Node& node, const std::function<std::string(Value)>& name) {
  Printer printer;
  printer.node(
      node, [&](Value value) { return "%" + name(value); }, "");
  return printer.text;
}

void save(const Graph& graph, const std::filesystem::path& path) {
  const LiteralTable table = large_literals(graph);
  const std::map<uint64_t, Literal> literals(table.begin(), table.end());
  std::filesystem::path weights = path;
  weights += ".weights";
  SavedLiterals saved = {.folder = std::filesystem::absolute(path).lexically_normal().parent_path()};
  const auto write_weights = [&](const std::filesystem::path& temporary) {
    FileWriter file(temporary);
    for (const auto& [hash, literal] : literals) {
      const std::vector<std::byte> bytes = pack(literal.tensor());
      saved.texts.emplace(hash, print_slice(literal, weights.filename(), file.size(), bytes));
      file.append(bytes);
    }
    file.close();
  };
  const auto write_graph = [&](const std::filesystem::path& temporary) {
    Printer printer;
    printer.saved = &saved;
    printer.top(graph);
    write_content(temporary, printer.text);
  };
  if (literals.empty())
    write_files({{path, write_graph}});
  else
    write_files({{weights, write_weights}, {path, write_graph}});
}

std::string print(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return attribute.as<bool>() ? "true" : "false";
    case AttributeKind::Int:
      return fmt::format("{}", attribute.as<int64_t>());
    case AttributeKind::Float:
      return print_float(attribute.as<double>());
    case AttributeKind::String:
      return quote(attribute.as<std::string>());
    case AttributeKind::Ints:
      return "[" +
             join<int64_t>(attribute.as<Attribute::Ints>(), [](int64_t v) { return fmt::format("{}", v); }) +
             "]";
    case AttributeKind::Floats:
      return "[" + join<double>(attribute.as<Attribute::Floats>(), print_float) + "]";
    case AttributeKind::Strings:
      return "[" +
             join<std::string>(attribute.as<Attribute::Strings>(), [](std::string v) { return quote(v); }) +
             "]";
    case AttributeKind::DType:
      return std::string(name(attribute.as<DType>()));
    case AttributeKind::Type:
      return to_string(attribute.as<Type>());
    case AttributeKind::Literal:
      if (const auto text = print_literal(attribute.as<Literal>()))
        return *text;
      return print_hash(attribute.as<Literal>());  // reads all of it
  }
  CHECK(false, "an attribute of no kind");
}

bool is_printed_by_hash(const Literal& literal) { return !print_literal(literal); }

LiteralTable large_literals(const Graph& graph) {
  LiteralTable table;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      for (const auto& [name, attribute] : node->attributes())
        if (attribute.kind() == AttributeKind::Literal)
          if (const auto& literal = attribute.as<Literal>(); is_printed_by_hash(literal))
            table.emplace(literal.content_hash(), literal);
  });
  return table;
}

}  // namespace tenon
