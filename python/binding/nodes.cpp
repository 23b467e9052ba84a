// nodes.cpp — nodes of graphs, to look at and to rewire.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "binding/attributes.h"
#include "binding/graph.h"
#include "binding/make_node.h"
#include "binding/tensors.h"
#include "ir/print.h"
#include "ops/data.h"

namespace tenon::python {
namespace {

// --- looking at them ---

// Strings that are asked for often.
nb::object word(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

nb::object op_of(const NodeHandle& node) {
  static const auto& words = *new std::array<nb::object, 5>{
      word("placeholder"), word("get_attr"), word("call_function"), word("call_function"), word("output")};
  return words[static_cast<size_t>(node.kind())];
}

// The object of tenon.ops.
nb::object function_of(const OpDef& op) {
  static auto& functions = *new std::unordered_map<const OpDef*, nb::object>();
  nb::object& function = functions[&op];
  if (!function.is_valid())
    function = nb::module_::import_("tenon.ops").attr(std::string(op.name).c_str());
  return function;
}

nb::object target_of(const NodeHandle& node) {
  static const auto& getitem = *new nb::object(nb::module_::import_("operator").attr("getitem"));
  switch (node.kind()) {
    case NodeHandle::Kind::Placeholder:
      return nb::cast(node.value().name());
    case NodeHandle::Kind::GetAttr:
      return nb::cast(node.node()->is("parameter") ? node.node()->attr("name").as<std::string>()
                                                   : node.graph()->name(node.key()));
    case NodeHandle::Kind::Call:
      return function_of(node.node()->op());
    case NodeHandle::Kind::Element:
      return getitem;
    case NodeHandle::Kind::Output:
      return word("output");
  }
  return nb::none();
}

// The operands in the order of the declaration, up to the last that is there.
nb::tuple arguments_of(const NodeHandle& handle) {
  EditedGraph& graph = *handle.graph();
  Node* const node = handle.node();
  switch (handle.kind()) {
    case NodeHandle::Kind::Placeholder:
    case NodeHandle::Kind::GetAttr:
      return nb::make_tuple();
    case NodeHandle::Kind::Element:
      return nb::make_tuple(graph.handle(node), handle.value().index());
    case NodeHandle::Kind::Output: {
      const std::vector<Value> outputs = node->operands();
      return nb::make_tuple(outputs.size() == 1 ? graph.handle(outputs.front())
                                                : nb::object(graph.handles(outputs)));
    }
    case NodeHandle::Kind::Call:
      break;
  }
  nb::list all;
  size_t count = 0;
  for (const OperandDecl& declared : node->op().operands) {
    if (declared.arity == Arity::Many) {
      all.append(nb::list(graph.handles(node->ins(declared.name))));
    } else if (const Value value = node->in(declared.name)) {
      all.append(graph.handle(value));
    } else {
      all.append(nb::none());
      continue;
    }
    count = nb::len(all);
  }
  while (nb::len(all) > count)
    nb::del(all[nb::len(all) - 1]);
  return nb::tuple(all);
}

nb::dict named_arguments_of(const NodeHandle& handle) {
  nb::dict all;
  if (handle.kind() != NodeHandle::Kind::Call)
    return all;
  for (const auto& [key, attribute] : handle.node()->attributes())
    all[nb::str(key.c_str())] = to_object(attribute);
  for (std::string_view late : handle.node()->late_names())
    all[nb::str(std::string(late).c_str())] = handle.graph()->handle(handle.node()->late(late));
  return all;
}

nb::list input_nodes_of(const NodeHandle& handle) {
  nb::list inputs;
  if (handle.kind() == NodeHandle::Kind::Element) {
    inputs.append(handle.graph()->handle(handle.node()));
  } else if (Node* const node = handle.node()) {
    std::vector<Value> seen;
    for (Value value : node->operands())
      if (std::ranges::find(seen, value) == seen.end()) {
        seen.push_back(value);
        inputs.append(handle.graph()->handle(value));
      }
  }
  return inputs;
}

nb::dict users_of(const NodeHandle& handle) {
  nb::dict users;
  if (handle.is_value())
    for (Node* user : handle.value().users())
      users[handle.graph()->handle(user)] = nb::none();
  else if (handle.kind() == NodeHandle::Kind::Call)
    for (Value result : handle.node()->results())
      if (result.use_count() > 0)
        users[handle.graph()->handle(result)] = nb::none();
  return users;
}

nb::object shape_of(const Type& type) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return nb::none();
  nb::list sizes;
  for (const Dim& dim : type.as_tensor().shape.dims())
    if (const std::optional<int64_t> size = dim.constant())
      sizes.append(*size);
    else
      sizes.append(fmt::format("{}", dim));
  return nb::tuple(sizes);
}

std::optional<std::string> dtype_of(const Type& type) {
  return type.is_tensor() ? std::optional(std::string(name(type.as_tensor().dtype))) : std::nullopt;
}

nb::object known_elements(const NodeHandle& handle) {
  if (!handle.is_value())
    return nb::none();
  if (handle.kind() == NodeHandle::Kind::GetAttr)
    return nb::cast(literal_of(*handle.node())->tensor());
  const Tensor* const tensor = handle.value().known_tensor();
  return tensor == nullptr ? nb::object(nb::none()) : nb::cast(*tensor);
}

// tenon.TensorType of a value; a tuple of them where there are several.
nb::object types_of(const NodeHandle& handle) {
  if (handle.is_value())
    return type_object(handle.value().type());
  nb::list types;
  for (Value value :
       handle.kind() == NodeHandle::Kind::Output ? handle.node()->operands() : handle.node()->results())
    types.append(type_object(value.type()));
  return nb::tuple(types);
}

nb::dict meta_of(const NodeHandle& handle) {
  nb::dict meta = handle.graph()->meta(handle.key());
  meta["val"] = types_of(handle);
  return meta;
}

// --- rewiring them ---

void check_replacement(Value value, Value by) {
  if (&value.graph() != &by.graph())
    throw user_error("a node is to be replaced by one of another graph");
  if (to_string(value.type()) != to_string(by.type()) && !refines(by.type(), value.type()))
    throw user_error("a value of type {} cannot stand for one of type {}", by.type(), value.type());
}

// The nodes that used it.
nb::list replace_uses(const NodeHandle& handle, const NodeHandle& by) {
  nb::list changed(users_of(handle).keys());
  if (handle.is_value() || by.is_value()) {
    check_replacement(handle.value(), by.value());
    if (handle.key() != by.key())
      handle.value().replace_all_uses(by.value());
    return changed;
  }
  const std::vector<Value> was = handle.node()->results(), is = by.node()->results();
  if (was.size() != is.size())
    throw user_error("{} gives {} values, but {} gives {}", handle.describe(), was.size(), by.describe(),
                     is.size());
  for (size_t i = 0; i < was.size(); ++i) {
    check_replacement(was[i], is[i]);
    if (was[i] != is[i])
      was[i].replace_all_uses(is[i]);
  }
  return changed;
}

void replace_input(const NodeHandle& handle, const NodeHandle& before, const NodeHandle& after) {
  Node* const node = handle.node();
  if (node == nullptr || handle.kind() == NodeHandle::Kind::Element)
    throw user_error("{} has no inputs to replace", handle.describe());
  check_replacement(before.value(), after.value());
  for (int64_t i = 0; i < node->operand_count(); ++i)
    if (node->operand(i) == before.value())
      node->set_operand(i, after.value());
}

// As many as there were: what an op takes otherwise is another node.
void set_arguments(const NodeHandle& handle, const nb::tuple& arguments) {
  Node* const node = handle.node();
  if (node == nullptr || handle.kind() == NodeHandle::Kind::Element)
    throw user_error("{} has no arguments to replace", handle.describe());
  const std::vector<Value> values = values_in(arguments);
  for (Value value : values)
    if (&value.graph() != &node->graph())
      throw user_error("an argument is a value of another graph");
  if (handle.kind() == NodeHandle::Kind::Output) {
    const std::vector<std::string> names =
        values.size() == node->operands().size() ? node->graph().output_names() : std::vector<std::string>();
    return node->graph().set_outputs(values, names);
  }
  const int64_t late = static_cast<int64_t>(node->late_names().size());
  if (static_cast<int64_t>(values.size()) != node->operand_count() - late)
    throw user_error("{} has {} arguments, but {} are given: make a new node for these", handle.describe(),
                     node->operand_count() - late, values.size());
  for (size_t i = 0; i < values.size(); ++i)
    node->set_operand(static_cast<int64_t>(i), values[i]);
}

nb::object element_of(const NodeHandle& handle, int64_t index) {
  if (handle.kind() == NodeHandle::Kind::Placeholder || handle.kind() == NodeHandle::Kind::Output ||
      handle.is_value())
    throw nb::type_error("the node has one result: ops.slice and ops.gather take elements of tensors");
  if (index < 0)
    index += handle.node()->result_count();
  if (index < 0 || index >= handle.node()->result_count())
    throw nb::index_error("the node has no such result");
  return handle.graph()->handle(handle.node()->result(index));
}

int traverse_node(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    Py_VISIT(handle_of(self).graph_object().ptr());
  return 0;
}

PyType_Slot node_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_node)}, {0, nullptr}};

}  // namespace

nb::object type_object(const Type& type) {
  static const auto& make = *new nb::object(nb::module_::import_("tenon._graph").attr("TensorType"));
  return make(to_string(type), dtype_of(type), shape_of(type));
}

void bind_nodes(nb::module_& module) {
  nb::class_<NodeHandle>(
      module, "Node", nb::type_slots(node_slots),
      "An input, an operation or the output of a graph, in the words of torch.fx.Node. Where it has "
      "one result, it stands for that: ops take it, and operators compute with it.")
      .def_prop_ro("op", op_of, "placeholder, get_attr, call_function or output.")
      .def_prop_ro("target", target_of, "What it calls, such as ops.relu; the name of an input or parameter.")
      .def_prop_rw("args", arguments_of, set_arguments,
                   "Nodes, lists of nodes, and None where an operand is absent.")
      .def_prop_ro("kwargs", named_arguments_of, "The attributes.")
      .def_prop_ro(
          "name", [](const NodeHandle& node) { return node.node(), node.graph()->name(node.key()); },
          "Unique in the graph.")
      .def_prop_ro("users", users_of, "The nodes that take it, as the keys of a dictionary.")
      .def_prop_ro("all_input_nodes", input_nodes_of)
      .def_prop_ro("meta", meta_of, "A dictionary; [\"val\"] is its type.")
      .def_prop_ro(
          "type", [](const NodeHandle& node) { return to_string(node.value().type()); },
          "Such as f32[batch,128].")
      .def_prop_ro("dtype", [](const NodeHandle& node) { return dtype_of(node.value().type()); })
      .def_prop_ro(
          "shape", [](const NodeHandle& node) { return shape_of(node.value().type()); },
          "Integers, and expressions as strings; None where the rank is unknown.")
      .def_prop_ro("elements", known_elements, "Where they are known before the graph runs, else None.")
      .def_prop_ro(
          "sources",
          [](const NodeHandle& node) {
            return node.node() == nullptr ? std::vector<std::string>() : node.node()->sources();
          },
          "What the nodes of the user's model are called that it stands for.")
      .def_prop_ro("graph", &NodeHandle::graph_object)
      .def("replace_all_uses_with", replace_uses, nb::arg("replace_with"),
           "Its users take the other node instead; returns them.")
      .def("replace_input_with", replace_input, nb::arg("old_input"), nb::arg("new_input"))
      .def("describe", &NodeHandle::describe, "As an error speaks of it.")
      .def("format_node",
           [](const NodeHandle& node) {
             if (node.node() == nullptr)
               return fmt::format("%{}: {}", node.value().name(), to_string(node.value().type()));
             const ValueNames names(node.node()->graph());
             return print(*node.node(), [&](Value value) { return names.of(value); });
           })
      .def("__getitem__", element_of)
      .def("__repr__", [](const NodeHandle& node) { return node.node(), node.graph()->name(node.key()); });
  module.attr("Value") = module.attr("Node");

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
