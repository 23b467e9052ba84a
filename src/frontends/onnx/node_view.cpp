#include "frontends/onnx/node_view.h"

#include "base/error.h"
#include "frontends/onnx/importer.h"

namespace tenon::onnx {
namespace {

std::string_view type_name(AttributeType type) {
  constexpr std::string_view names[] = {
      "undefined", "a float", "an int", "a string",        "a tensor",       "a graph", "floats", "ints",
      "strings",   "tensors", "graphs", "a sparse tensor", "sparse tensors", "a type",  "types"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "of an unknown kind";
}

bool is_list(AttributeType type) {
  return type == AttributeType::Floats || type == AttributeType::Ints || type == AttributeType::Strings;
}

// A list without elements carries no sign of its kind: files leave its type out, and some writers guess it.
// So an empty one is a list of any kind.
bool is_empty_list(const AttributeProto& attribute) {
  return (is_list(attribute.type) || attribute.type == AttributeType::Undefined) &&
         attribute.floats.empty() && attribute.ints.empty() && attribute.strings.empty();
}

}  // namespace

Graph& NodeView::graph() const { return *scope_.graph; }

// A weight or captured constant becomes a node when it is first asked for, so inputs are asked for here, in
// order: as arguments of a call, the compiler would choose the order.
NodeView::NodeView(Importer& importer, Scope& scope, const NodeProto& proto, int64_t opset)
    : importer_(importer), scope_(scope), proto_(proto), opset_(opset) {
  for (std::string_view name : proto.input)
    inputs_.push_back(name.empty() ? Value() : importer.argument(scope, proto.op_type, name));
}

NodeView NodeView::with(std::vector<Value> inputs, int64_t opset) const {
  NodeView view = *this;
  view.inputs_ = std::move(inputs);
  view.opset_ = opset;
  return view;
}

Value NodeView::maybe(size_t index) const { return index < inputs_.size() ? inputs_[index] : Value(); }

Value NodeView::in(size_t index) const {
  const Value value = maybe(index);
  if (!value)
    throw user_error("{}: input {} is missing", proto_.op_type, index);
  return value;
}

std::vector<Value> NodeView::ins(size_t from) const {
  std::vector<Value> values;
  for (size_t i = from; i < inputs_.size(); ++i)
    values.push_back(in(i));
  return values;
}

int64_t NodeView::rank_of(Value x) const {
  if (!x.shape().ranked())
    throw unsupported("{}: the rank of its input must be known when the model is read", proto_.op_type);
  return x.rank();
}

std::vector<int64_t> NodeView::constant_ints(size_t index, std::string_view what) const {
  const auto ints = in(index).known_ints();
  if (!ints)
    throw unsupported("{}: {} must be known when the model is read, but is computed when it runs",
                      proto_.op_type, what);
  return *ints;
}

std::string NodeView::about(std::string_view attribute) const {
  return fmt::format("{}: attribute {}", proto_.op_type, attribute);
}

const AttributeProto* NodeView::find(std::string_view name) const {
  for (const AttributeProto& attribute : proto_.attribute)
    if (attribute.name == name) {
      if (attribute.ref_attr_name.empty())
        return &attribute;
      // In a function's body: as the call gave it, or absent.
      if (scope_.call_attributes == nullptr)
        throw user_error("{}: attribute {} refers to a function's attribute outside any function",
                         proto_.op_type, name);
      const auto it = scope_.call_attributes->find(attribute.ref_attr_name);
      return it == scope_.call_attributes->end() ? nullptr : it->second;
    }
  return nullptr;
}

const AttributeProto& NodeView::get(std::string_view name, AttributeType type) const {
  const AttributeProto* attribute = find(name);
  if (attribute == nullptr)
    throw user_error("{}: attribute {} is missing", proto_.op_type, name);
  if (attribute->type != type && !(is_list(type) && is_empty_list(*attribute)))
    throw user_error("{}: attribute {} must be {}, but is {}", proto_.op_type, name, type_name(type),
                     type_name(attribute->type));
  return *attribute;
}

int64_t NodeView::integer(std::string_view name) const { return get(name, AttributeType::Int).i; }
double NodeView::real(std::string_view name) const { return get(name, AttributeType::Float).f; }
std::string NodeView::text(std::string_view name) const {
  return std::string(get(name, AttributeType::String).s);
}

void NodeView::throw_unknown_word(std::string_view name, std::string_view word,
                                  const std::vector<std::string_view>& known) const {
  throw user_error("{}: {} is \"{}\", but must be one of {}", proto_.op_type, name, word,
                   fmt::join(known, ", "));
}

std::vector<int64_t> NodeView::integers(std::string_view name) const {
  return get(name, AttributeType::Ints).ints;
}

std::vector<double> NodeView::reals(std::string_view name) const {
  const auto& floats = get(name, AttributeType::Floats).floats;
  return {floats.begin(), floats.end()};
}

std::vector<std::string> NodeView::texts(std::string_view name) const {
  const auto& strings = get(name, AttributeType::Strings).strings;
  return {strings.begin(), strings.end()};
}

Literal NodeView::literal(std::string_view name) const {
  if (const AttributeProto* given = find(name); given != nullptr && !given->sparse_tensors.empty())
    return with_context([&] { return about(name); },
                        [&] { return importer_.literal(given->sparse_tensors.front()); });
  const AttributeProto& attribute = get(name, AttributeType::Tensor);
  if (attribute.tensors.empty())
    throw user_error("{}: attribute {} holds no tensor", proto_.op_type, name);
  return with_context([&] { return about(name); },
                      [&] { return importer_.literal(attribute.tensors.front()); });
}

DType NodeView::dtype(std::string_view name) const {
  const auto number = static_cast<int32_t>(integer(name));
  return with_context([&] { return about(name); }, [&] { return to_dtype(number); });
}

Type NodeView::type(std::string_view name) const {
  const AttributeProto& attribute = get(name, AttributeType::Type);
  if (attribute.types.empty())
    throw user_error("{}: attribute {} holds no type", proto_.op_type, name);
  return importer_.type(attribute.types.front(), name);
}

const GraphProto& NodeView::graph_proto(std::string_view name) const {
  const AttributeProto& attribute = get(name, AttributeType::Graph);
  if (attribute.graphs.empty())
    throw user_error("{}: attribute {} holds no graph", proto_.op_type, name);
  return attribute.graphs.front();
}

std::unique_ptr<Graph> NodeView::region(const GraphProto& proto, const std::vector<RegionInput>& inputs,
                                        Captures& captures) const {
  return importer_.region(scope_, proto, inputs, captures);
}

std::vector<Value> NodeView::inlined(const GraphProto& proto) const {
  return importer_.inlined(scope_, proto);
}

void NodeView::add_missing_captures(Graph& region, size_t own_inputs, const Captures& captures) {
  for (size_t i = static_cast<size_t>(region.input_count()) - own_inputs; i < captures.outer.size(); ++i)
    region.add_input(captures.outer[i].type(), captures.outer[i].name());
}

}  // namespace tenon::onnx
