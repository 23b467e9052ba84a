#include "binding/graph.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/tensors.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/data.h"

namespace tenon::python {

Graph& EditedGraph::get() const {
  if (graph_ == nullptr)
    throw user_error("the graph was lent for one call of a function, which has returned");
  return *graph_;
}

uint64_t EditedGraph::erasures(const Node* node) const {
  const auto found = erasures_.find(node);
  return found == erasures_.end() ? 0 : found->second;
}

void EditedGraph::erase(Node* node) {
  for (Value result : node->results())
    if (result.use_count() > 0)
      throw user_error("{} cannot be erased: {} uses it", node->describe(),
                       result.users().front()->describe());
  if (node == get().return_node())
    throw user_error("the outputs of a graph cannot be erased");
  get().erase(node);
  ++erasures_[node];
}

Node& NodeHandle::get() const {
  graph_->get();
  if (graph_->erasures(node_) != erasures_)
    throw user_error("the node was erased");
  return *node_;
}

Value ValueHandle::get() const {
  graph_->get();
  if (node_ != nullptr && graph_->erasures(node_) != erasures_)
    throw user_error("the node of this value was erased");
  return value_;
}

namespace {

// --- attributes ---

Attribute to_attribute(nb::handle object, const AttributeDecl& declared) {
  try {
    switch (declared.kind) {
      case AttributeKind::Bool:
        return nb::cast<bool>(object);
      case AttributeKind::Int:
        return nb::cast<int64_t>(object);
      case AttributeKind::Float:
        return nb::cast<double>(object);
      case AttributeKind::String:
        return nb::cast<std::string>(object);
      case AttributeKind::Ints:
        return nb::cast<Attribute::Ints>(nb::list(object));
      case AttributeKind::Floats:
        return nb::cast<Attribute::Floats>(nb::list(object));
      case AttributeKind::Strings:
        return nb::cast<Attribute::Strings>(nb::list(object));
      case AttributeKind::DType:
        if (const std::optional<DType> dtype = parse_dtype(nb::cast<std::string>(object)))
          return *dtype;
        throw user_error("there is no dtype {}", nb::cast<std::string>(object));
      case AttributeKind::Type:
        return parse_type(nb::cast<std::string>(object));
      case AttributeKind::Literal:
        return Literal(to_datum(object, std::string(declared.name)).tensor());
    }
  } catch (const nb::cast_error&) {
  } catch (nb::python_error&) {
    PyErr_Clear();
  }
  throw user_error("the attribute {} is {}, and not {}", declared.name, name(declared.kind),
                   describe_type(object));
}

nb::object to_object(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return nb::cast(attribute.as<bool>());
    case AttributeKind::Int:
      return nb::cast(attribute.as<int64_t>());
    case AttributeKind::Float:
      return nb::cast(attribute.as<double>());
    case AttributeKind::String:
      return nb::cast(attribute.as<std::string>());
    case AttributeKind::Ints:
      return nb::cast(attribute.as<Attribute::Ints>());
    case AttributeKind::Floats:
      return nb::cast(attribute.as<Attribute::Floats>());
    case AttributeKind::Strings:
      return nb::cast(attribute.as<Attribute::Strings>());
    case AttributeKind::DType:
      return nb::cast(std::string(name(attribute.as<DType>())));
    case AttributeKind::Type:
      return nb::cast(to_string(attribute.as<Type>()));
    case AttributeKind::Literal:
      return nb::cast(attribute.as<Literal>().tensor());
  }
  return nb::none();
}

// --- making nodes ---

// The graph and a value that the arguments name first.
const ValueHandle* first_value(nb::handle arguments) {
  for (nb::handle each : arguments) {
    if (nb::isinstance<ValueHandle>(each))
      return nb::inst_ptr<ValueHandle>(each);
    if (nb::isinstance<nb::list>(each) || nb::isinstance<nb::tuple>(each))
      if (const ValueHandle* found = first_value(each))
        return found;
  }
  return nullptr;
}

// A number beside a tensor is a constant of the tensor's dtype.
Value to_value(nb::handle object, const ValueHandle& beside, std::string_view title) {
  Graph& graph = beside.graph()->get();
  if (nb::isinstance<ValueHandle>(object)) {
    const auto* const handle = nb::inst_ptr<ValueHandle>(object);
    if (handle->graph() != beside.graph())
      throw user_error("{} is a value of another graph", title);
    return handle->get();
  }
  if (PyBool_Check(object.ptr()) || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()))
    return scalar(graph, beside.get().dtype(), nb::cast<double>(object));
  const Datum datum = to_datum(object, std::string(title));
  if (!std::holds_alternative<Tensor>(datum))
    throw user_error("{} is no tensor", title);
  return constant(graph, Literal(datum.tensor()));
}

std::vector<Operand> to_operands(const OpDef& op, const nb::args& arguments, const ValueHandle& beside) {
  std::vector<Operand> operands;
  size_t next = 0;
  for (const OperandDecl& declared : op.operands) {
    if (declared.arity == Arity::Many) {
      std::vector<Value> values;
      for (nb::handle each : nb::borrow(arguments[next]))
        values.push_back(to_value(each, beside, declared.name));
      operands.emplace_back(declared.name, std::move(values));
    } else if (!nb::handle(arguments[next]).is_none()) {
      operands.emplace_back(declared.name, to_value(arguments[next], beside, declared.name));
    }
    if (++next == arguments.size())
      break;
  }
  if (next < arguments.size())
    throw user_error("{} takes {} operands, but {} were given; attributes are given by name: {}", op.name,
                     op.operands.size(), arguments.size(), op.signature());
  return operands;
}

nb::object create(const std::string& op_name, const nb::args& arguments, const nb::kwargs& named) {
  const OpDef& op = wanted_op(op_name);
  const ValueHandle* const beside = first_value(arguments);
  if (beside == nullptr)
    throw user_error("{} needs a tenon.Value among its arguments: it is recorded in the graph of that",
                     op_name);
  if (!op.regions.empty())
    throw unsupported("{} has nested graphs, which cannot be made from Python", op_name);
  const GraphHandle handle = beside->graph();
  std::vector<Operand> operands = to_operands(op, arguments, *beside);
  Attributes attributes;
  for (const auto& [key, object] : named) {
    const std::string word = nb::cast<std::string>(key);
    const AttributeDecl* const declared = op.find_attribute(word);
    if (declared == nullptr)
      throw op.unknown_name(word);
    if (nb::isinstance<ValueHandle>(object))
      operands.emplace_back(declared->name, to_value(object, *beside, word));
    else
      attributes.emplace(word, to_attribute(object, *declared));
  }
  const Node* const node = handle->get().create(op, std::move(operands), std::move(attributes));
  if (node->result_count() == 1)
    return nb::cast(ValueHandle(handle, node->result()));
  nb::list results;
  for (Value result : node->results())
    results.append(ValueHandle(handle, result));
  return nb::tuple(results);
}

// --- looking at them ---

std::vector<ValueHandle> handles_of(const GraphHandle& graph, const std::vector<Value>& values) {
  std::vector<ValueHandle> handles;
  for (Value value : values)
    handles.emplace_back(graph, value);
  return handles;
}

std::vector<NodeHandle> handles_of(const GraphHandle& graph, const std::vector<Node*>& nodes) {
  std::vector<NodeHandle> handles;
  for (Node* node : nodes)
    handles.emplace_back(graph, node);
  return handles;
}

nb::object attributes_of(const Node& node) {
  nb::dict all;
  for (const auto& [key, attribute] : node.attributes())
    all[nb::str(key.c_str())] = to_object(attribute);
  return std::move(all);
}

nb::object shape_of(const ValueHandle& handle) {
  const Value value = handle.get();
  if (!value.type().is_tensor() || !value.shape().ranked())
    return nb::none();
  nb::list sizes;
  for (const Dim& dim : value.shape().dims())
    if (const std::optional<int64_t> size = dim.constant())
      sizes.append(*size);
    else
      sizes.append(fmt::format("{}", dim));
  return nb::tuple(sizes);
}

nb::object known_elements(const ValueHandle& handle) {
  const Tensor* const tensor = handle.get().known_tensor();
  return tensor == nullptr ? nb::object(nb::none()) : nb::cast(*tensor);
}

int64_t eliminate_dead_code(const GraphHandle& handle) {
  Graph& graph = handle->get();
  const std::vector<Node*> nodes = graph.nodes();
  int64_t erased = 0;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool is_used = false;
    for (Value result : (*node)->results())
      is_used = is_used || result.use_count() > 0;
    if (!is_used) {
      handle->erase(*node);
      ++erased;
    }
  }
  return erased;
}

void replace_uses(const ValueHandle& value, const ValueHandle& by) {
  if (value.graph() != by.graph())
    throw user_error("a value is to be replaced by one of another graph");
  if (to_string(value.get().type()) != to_string(by.get().type()) &&
      !refines(by.get().type(), value.get().type()))
    throw user_error("a value of type {} cannot stand for one of type {}", by.get().type(),
                     value.get().type());
  value.get().replace_all_uses(by.get());
}

// New nodes go before a node, or after it, within a with-statement.
class InsertionPoint {
 public:
  InsertionPoint(NodeHandle node, bool after) : node_(std::move(node)), after_(after) {}
  void enter() {
    Node* const node = &node_.get();
    point_ = std::make_unique<InsertBefore>(after_ ? node->next() : node);
  }
  void exit() { point_.reset(); }

 private:
  NodeHandle node_;
  bool after_;
  std::unique_ptr<InsertBefore> point_;
};

}  // namespace

void bind_graph(nb::module_& module) {
  nb::class_<ValueHandle>(module, "Value",
                          "What a node makes, or an input of a graph: a tensor that is not there yet.")
      .def_prop_ro(
          "type", [](const ValueHandle& value) { return to_string(value.get().type()); },
          "Such as f32[batch,128].")
      .def_prop_ro("dtype",
                   [](const ValueHandle& value) {
                     const Type& type = value.get().type();
                     return type.is_tensor() ? std::optional(std::string(name(type.as_tensor().dtype)))
                                             : std::nullopt;
                   })
      .def_prop_ro("shape", shape_of, "Integers, and expressions as strings; None where the rank is unknown.")
      .def_prop_ro("name", [](const ValueHandle& value) { return value.get().name(); })
      .def_prop_ro(
          "node",
          [](const ValueHandle& value) {
            Node* const node = value.get().node();
            return node == nullptr ? std::nullopt : std::optional(NodeHandle(value.graph(), node));
          },
          "That makes it; None for an input.")
      .def_prop_ro("index", [](const ValueHandle& value) { return value.get().index(); })
      .def_prop_ro("is_input", [](const ValueHandle& value) { return value.get().is_input(); })
      .def_prop_ro("users",
                   [](const ValueHandle& value) { return handles_of(value.graph(), value.get().users()); })
      .def_prop_ro("graph", [](const ValueHandle& value) { return value.graph(); })
      .def_prop_ro("elements", known_elements, "Where they are known before the graph runs, else None.")
      .def("replace_all_uses_with", replace_uses, nb::arg("by"))
      .def("__eq__",
           [](const ValueHandle& a, nb::handle b) {
             return nb::isinstance<ValueHandle>(b) && a == *nb::inst_ptr<ValueHandle>(b);
           })
      .def("__hash__", &ValueHandle::hash);

  nb::class_<NodeHandle>(module, "Node", "One operation of a graph.")
      .def_prop_ro("op", [](const NodeHandle& node) { return std::string(node.get().op().name); })
      .def_prop_ro(
          "sources", [](const NodeHandle& node) { return node.get().sources(); },
          "What the nodes of the user's model are called that it stands for.")
      .def_prop_ro("operands",
                   [](const NodeHandle& node) { return handles_of(node.graph(), node.get().operands()); })
      .def_prop_ro("results",
                   [](const NodeHandle& node) { return handles_of(node.graph(), node.get().results()); })
      .def_prop_ro("attributes", [](const NodeHandle& node) { return attributes_of(node.get()); })
      .def_prop_ro("graph", [](const NodeHandle& node) { return node.graph(); })
      .def("set_operand",
           [](const NodeHandle& node, int64_t index, const ValueHandle& value) {
             if (index < 0 || index >= node.get().operand_count())
               throw user_error("there is no operand {}", index);
             if (value.graph() != node.graph())
               throw user_error("the operand is a value of another graph");
             node.get().set_operand(index, value.get());
           })
      .def("describe", [](const NodeHandle& node) { return node.get().describe(); })
      .def("__str__",
           [](const NodeHandle& node) {
             const ValueNames names(node.get().graph());
             return print(node.get(), [&](Value value) { return names.of(value); });
           })
      .def("__eq__",
           [](const NodeHandle& a, nb::handle b) {
             return nb::isinstance<NodeHandle>(b) && a == *nb::inst_ptr<NodeHandle>(b);
           })
      .def("__hash__", &NodeHandle::hash);

  nb::class_<InsertionPoint>(module, "InsertionPoint")
      .def("__enter__", &InsertionPoint::enter)
      .def("__exit__", [](InsertionPoint& point, const nb::args&) { point.exit(); });

  nb::class_<EditedGraph>(module, "Graph", "A graph that can be edited.")
      .def_prop_ro(
          "nodes", [](const GraphHandle& graph) { return handles_of(graph, graph->get().nodes()); },
          "In an order in which they can run.")
      .def_prop_ro("inputs",
                   [](const GraphHandle& graph) { return handles_of(graph, graph->get().inputs()); })
      .def_prop_ro("outputs",
                   [](const GraphHandle& graph) { return handles_of(graph, graph->get().outputs()); })
      .def_prop_ro("output_names", [](const GraphHandle& graph) { return graph->get().output_names(); })
      .def("erase_node",
           [](const GraphHandle& graph, const NodeHandle& node) {
             if (node.graph() != graph)
               throw user_error("the node is of another graph");
             graph->erase(&node.get());
           })
      .def("eliminate_dead_code", eliminate_dead_code, "Erases nodes that nothing uses; returns how many.")
      .def("lint",
           [](const GraphHandle& graph) {
             const std::vector<std::string> problems = lint(graph->get());
             if (!problems.empty())
               throw user_error("the graph is not well formed: {}", fmt::join(problems, "; "));
           })
      .def("inserting_before",
           [](const GraphHandle&, const NodeHandle& node) { return InsertionPoint(node, false); })
      .def("inserting_after",
           [](const GraphHandle&, const NodeHandle& node) { return InsertionPoint(node, true); })
      .def("__len__", [](const GraphHandle& graph) { return graph->get().node_count(); })
      .def("__str__", [](const GraphHandle& graph) { return print(graph->get()); });

  module.def("create", create, nb::arg("op"), nb::arg("args"), nb::arg("kwargs"));
  module.def("op_names", [] {
    std::vector<std::string> names;
    for (const OpDef* op : registered_ops())
      names.emplace_back(op->name);
    return names;
  });
  module.def("op_doc", [](const std::string& op_name) {
    const OpDef& op = wanted_op(op_name);
    std::string doc = fmt::format("{}\n\n{}", op.doc, op.signature());
    for (const AttributeDecl& attribute : op.attributes)
      doc += fmt::format("\n  {}: {}", attribute.name, attribute.doc);
    return doc;
  });
}

}  // namespace tenon::python
