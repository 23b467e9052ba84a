#include "frontends/onnx/custom.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/order.h"
#include "ir/print.h"
#include "ops/external.h"

namespace tenon::onnx {
namespace {

std::string name_of(std::string_view domain, std::string_view op_type) {
  return domain.empty() ? std::string(op_type) : fmt::format("{}.{}", domain, op_type);
}

using Names = std::unordered_set<std::string_view>;

// The values whose type a graph declares.
Names typed_values(const GraphProto& graph) {
  Names names;
  for (const auto* values : {&graph.value_info, &graph.output})
    for (const ValueInfoProto& value : *values)
      if (says_something(value.type))
        names.insert(value.name);
  return names;
}

// Walks over all that a model computes, and notes which ops it has to do without.
class UnknownOps {
 public:
  explicit UnknownOps(const FindFunction& find_function) : find_function_(find_function) {}

  void look(const GraphProto& graph) { look(graph.node, typed_values(graph)); }
  // Functions do not declare types.
  void look(const FunctionProto& function) { look(function.node, {}); }

  const std::vector<const FunctionProto*>& called() const { return called_; }

  void refuse() const {
    if (unknown_.empty())
      return;
    std::string text =
        fmt::format("{} of its ops {} not supported", unknown_.size(), unknown_.size() == 1 ? "is" : "are");
    for (const auto& [op, nodes] : unknown_) {
      text += fmt::format("\n  {}: {}, \"{}\"", op, format_count(nodes.size(), "node"), nodes.front());
      for (size_t i = 1; i < std::min<size_t>(nodes.size(), 3); ++i)
        text += fmt::format(", \"{}\"", nodes[i]);
      text += nodes.size() > 3 ? ", …" : "";
    }
    throw UnsupportedError(text +
                           "\n  hint: an op that is not known is kept as it is where the file declares, as "
                           "value_info, which tensors its outputs are");
  }

 private:
  void look(const std::vector<NodeProto>& nodes, const Names& typed) {
    for (const NodeProto& node : nodes) {
      look(node, typed);
      for (const AttributeProto& attribute : node.attribute)
        for (const GraphProto& graph : attribute.graphs)
          look(graph);
    }
  }

  void look(const NodeProto& node, const Names& typed) {
    const std::string_view domain = canonical_domain(node.domain);
    if (node.op_type.empty())
      throw user_error("node \"{}\": it does not say which op it is", node_label(node));
    if (const FunctionProto* function = find_function_(node)) {
      if (met_.insert(function).second)
        called_.push_back(function);
    } else if (find_conversion(domain, node.op_type) == nullptr &&
               find_added_op(domain, node.op_type) == nullptr &&
               !std::ranges::all_of(node.output, [&](std::string_view output) {
                 return output.empty() || typed.contains(output);
               })) {
      unknown_[name_of(domain, node.op_type)].push_back(node_label(node));
    }
  }

  const FindFunction& find_function_;
  std::map<std::string, std::vector<std::string>> unknown_ = {};  // op → the nodes that use it
  std::vector<const FunctionProto*> called_ = {};                 // in the order in which they are met
  std::unordered_set<const FunctionProto*> met_ = {};
};

void check_opsets(const std::vector<OperatorSetId>& opsets, const std::string& whose) {
  for (const OperatorSetId& opset : opsets)
    if (canonical_domain(opset.domain).empty() && opset.version > kNewestOpset)
      throw unsupported("{} uses opset {}, but the newest we know is {}", whose, opset.version, kNewestOpset);
}

// --- attributes

// The shortest decimal that is this f32 again.
double shortest(float value) { return std::stod(fmt::format("{}", value)); }

std::optional<Attribute> value_of(const AttributeProto& attribute) {
  switch (attribute.type) {
    case AttributeType::Float:
      return shortest(attribute.f);
    case AttributeType::Int:
      return attribute.i;
    case AttributeType::String:
      return attribute.s;
    case AttributeType::Floats: {
      Attribute::Floats values;
      for (const float value : attribute.floats)
        values.push_back(shortest(value));
      return values;
    }
    case AttributeType::Ints:
      return attribute.ints;
    case AttributeType::Strings:
      return Attribute::Strings(attribute.strings.begin(), attribute.strings.end());
    default:
      return std::nullopt;
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_utf8(text))
      return false;
  return true;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string digits;
  for (const std::byte byte : bytes)
    digits += fmt::format("{:02x}", std::to_integer<int>(byte));
  return digits;
}

void add_attribute(const NodeView& n, const AttributeProto& attribute, CustomNode& custom) {
  if (!attribute.ref_attr_name.empty())
    throw unsupported("{}: attribute {} is a function's", n.op_type(), attribute.name);
  if (!attribute.graphs.empty())
    throw unsupported("{}: attribute {} is a graph, which an op that is not known cannot have", n.op_type(),
                      attribute.name);
  if (std::ranges::any_of(attribute.tensors, [](const TensorProto& tensor) {
        return tensor.data_location == DataLocation::External;
      }))
    throw unsupported(
        "{}: attribute {} is a tensor in another file, which an op that is not known cannot have",
        n.op_type(), attribute.name);
  const auto value = value_of(attribute);
  const std::string text =
      value ? fmt::format("{}: {} = {}", attribute.name, name(value->kind()), print(*value)) : "";
  if (value && attribute.name.find(':') == std::string_view::npos && is_utf8(text))
    custom.attributes.push_back(text);
  else
    custom.messages.push_back(hexadecimal(attribute.message));
}

// --- ops that were added

Attribute attribute_of(const NodeView& n, const AttributeDecl& decl) {
  switch (decl.kind) {
    case AttributeKind::Bool:
      return n.integer(decl.name) != 0;
    case AttributeKind::Int:
      return n.integer(decl.name);
    case AttributeKind::Float:
      return n.real(decl.name);
    case AttributeKind::String:
      return n.text(decl.name);
    case AttributeKind::Ints:
      return n.integers(decl.name);
    case AttributeKind::Floats:
      return n.reals(decl.name);
    case AttributeKind::Strings:
      return n.texts(decl.name);
    case AttributeKind::DType:
      return n.dtype(decl.name);
    case AttributeKind::Type:
      return n.type(decl.name);
    case AttributeKind::Literal:
      return n.literal(decl.name);
  }
  CHECK(false, "an attribute of no kind");
}

std::vector<Operand> operands_of(const NodeView& n, const OpDef& op) {
  const bool is_open = !op.operands.empty() && op.operands.back().arity == Arity::Many;
  if (n.input_count() > op.operands.size() && !is_open)
    throw user_error("{}: it has {} inputs, but takes no more than {}", n.op_type(), n.input_count(),
                     op.operands.size());
  std::vector<Operand> operands;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const OperandDecl& decl = op.operands[i];
    if (decl.arity == Arity::Many)
      operands.emplace_back(decl.name, n.ins(i));
    else
      operands.emplace_back(decl.name, decl.arity == Arity::One ? n.in(i) : n.maybe(i));
  }
  return operands;
}

}  // namespace

std::vector<Value> convert_added(const AddedOp& added, const NodeView& n) {
  Attributes attributes;
  for (const AttributeProto& attribute : n.proto().attribute) {
    const AttributeDecl* decl = added.op.find_attribute(attribute.name);
    if (decl == nullptr)
      throw added.op.unknown_name(attribute.name);
    if (n.has(attribute.name))
      attributes.emplace(decl->name, attribute_of(n, *decl));
  }
  return n.graph().create(added.op, operands_of(n, added.op), std::move(attributes))->results();
}

bool says_something(const TypeProto& type) {
  switch (type.kind) {
    case TypeProto::Kind::Tensor:
      return type.elem_type != 0;
    case TypeProto::Kind::Sequence:
    case TypeProto::Kind::Optional:
      return says_something(*type.element);
    default:
      return false;
  }
}

void refuse_unknown_ops(const ModelProto& model, const FindFunction& find_function) {
  check_opsets(model.opset_import, "the model");
  UnknownOps unknown(find_function);
  unknown.look(model.graph);
  for (size_t i = 0; i < unknown.called().size(); ++i) {
    const FunctionProto& function = *unknown.called()[i];
    check_opsets(function.opset_import, fmt::format("function \"{}\"", function.name));
    unknown.look(function);
  }
  unknown.refuse();
}

std::vector<Value> keep_custom(const NodeView& n, const Types& types, std::optional<OpsetRange> opsets) {
  const NodeProto& proto = n.proto();
  CustomNode custom = {.op = std::string(proto.op_type),
                       .domain = std::string(canonical_domain(proto.domain)),
                       .version = n.opset()};
  if (opsets) {
    custom.version = opsets->since;
    custom.newest = opsets->until;
  }
  if (types.empty())
    throw unsupported("{}: it gives nothing, and what an op that is not known does besides cannot be kept",
                      n.op_type());
  for (const AttributeProto& attribute : proto.attribute)
    add_attribute(n, attribute, custom);
  std::vector<Value> operands;
  for (size_t i = 0; i < n.input_count(); ++i) {
    if (const Value input = n.maybe(i))
      operands.push_back(input);
    else
      custom.omitted_inputs.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < n.output_count(); ++i)
    if (!n.wants(i))
      custom.omitted_outputs.push_back(static_cast<int64_t>(i));
  std::vector<Value> results = tenon::custom(n.graph(), custom, operands, types);
  for (const int64_t omitted : custom.omitted_outputs)
    results.insert(results.begin() + omitted, Value());
  return results;
}

}  // namespace tenon::onnx
