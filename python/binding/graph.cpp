#include "binding/graph.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "binding/attributes.h"
#include "binding/tensors.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/data.h"
#include "tensor/wide.h"

namespace tenon::python {

// --- graphs ---

EditedGraph::EditedGraph(std::unique_ptr<Graph> graph) : EditedGraph(*graph) { owned_ = std::move(graph); }

EditedGraph::EditedGraph(Graph& graph) : graph_(&graph) {
  for (std::string_view word : python_words())
    taken_.take(word);
}

Graph& EditedGraph::get() const {
  if (graph_ == nullptr)
    throw user_error("the graph was lent for one call of a function, which has returned");
  return *graph_;
}

nb::object EditedGraph::handle(Value value) { return handle(value.data(), value.node()); }

nb::object EditedGraph::handle(Node* node) {
  const bool is_value = node != get().return_node() && node->result_count() == 1;
  return handle(is_value ? node->result().data() : nullptr, node);
}

nb::object EditedGraph::handle(ValueData* value, Node* node) {
  const void* const key = value != nullptr ? static_cast<const void*>(value) : node;
  const auto [found, is_new] = handles_.try_emplace(key, nullptr);
  if (!is_new)
    return nb::borrow(found->second);
  nb::object made = nb::cast(NodeHandle(shared_from_this(), value, node));
  nb::inst_ptr<NodeHandle>(made)->is_known_ = true;
  found->second = made.ptr();
  return made;
}

const std::string& EditedGraph::name(const void* key) {
  if (const auto found = names_.find(key); found != names_.end())
    return found->second;
  name_all();
  return names_.at(key);
}

// What has a name keeps it; the others are named after the ops that make them.
void EditedGraph::name_all() {
  const auto give = [&](const void* key, const auto& wanted) {
    if (!names_.contains(key))
      names_[key] = taken_.take(wanted());
  };
  for (Value input : get().inputs())
    give(input.data(), [&] { return input.name().empty() ? std::string("input") : input.name(); });
  for (const Node* node : get().nodes()) {
    const bool is_one = node->result_count() == 1;
    if (!is_one)
      give(node, [&] { return std::string(node->op().name); });
    for (Value result : node->results())
      give(result.data(), [&]() -> std::string {
        if (node->is("constant"))
          return fmt::format("_tensor_constant{}", constants_++);
        if (node->is("parameter"))
          return node->attr("name");
        return !result.name().empty() ? result.name() : is_one ? std::string(node->op().name) : "getitem";
      });
  }
  give(get().return_node(), [] { return "output"; });
}

nb::dict EditedGraph::meta(const void* key) { return metas_[key]; }

void EditedGraph::forget(const void* key) {
  if (const auto found = handles_.find(key); found != handles_.end()) {
    nb::inst_ptr<NodeHandle>(nb::handle(found->second))->is_erased_ = true;
    handles_.erase(found);
  }
  metas_.erase(key);
  names_.erase(key);
}

void EditedGraph::erase(Node* node) {
  for (Value result : node->results())
    if (result.use_count() > 0)
      throw user_error("{} cannot be erased: {} uses it", node->describe(),
                       result.users().front()->describe());
  forget(node);
  for (Value result : node->results())
    forget(result.data());
  get().erase(node);
}

void EditedGraph::erase_input(Value input) {
  if (input.use_count() > 0)
    throw user_error("the input {} cannot be erased: {} uses it", input.name(),
                     input.users().front()->describe());
  forget(input.data());
  get().erase_input(input.index());
}

// --- nodes ---

NodeHandle::~NodeHandle() {
  if (is_known_ && !is_erased_)
    graph_->handles_.erase(key());
}

void NodeHandle::check() const {
  graph_->get();
  if (is_erased_)
    throw user_error("the node was erased");
}

NodeHandle::Kind NodeHandle::kind() const {
  check();
  if (node_ == nullptr)
    return Kind::Placeholder;
  if (value_ == nullptr)
    return node_ == graph_->get().return_node() ? Kind::Output : Kind::Call;
  if (node_->result_count() > 1)
    return Kind::Element;
  return node_->is("parameter") || node_->is("constant") ? Kind::GetAttr : Kind::Call;
}

Node* NodeHandle::node() const {
  check();
  return node_;
}

bool NodeHandle::is_value() const {
  check();
  return value_ != nullptr;
}

Value NodeHandle::value() const {
  if (kind() == Kind::Output)
    throw user_error("the output of a graph is no value");
  if (value_ == nullptr)
    throw user_error("{} gives several values: node[0] is the first", describe());
  return Value(value_);
}

std::string NodeHandle::describe() const {
  check();
  return node_ == nullptr ? fmt::format("input {}", Value(value_).name()) : node_->describe();
}

namespace {

const NodeHandle& handle_of(nb::handle object) { return *nb::inst_ptr<NodeHandle>(object); }

// --- making nodes ---

// The first node that the arguments name.
const NodeHandle* first_node(nb::handle arguments) {
  for (nb::handle each : arguments) {
    if (nb::isinstance<NodeHandle>(each))
      return &handle_of(each);
    if (nb::isinstance<nb::list>(each) || nb::isinstance<nb::tuple>(each))
      if (const NodeHandle* found = first_node(each))
        return found;
  }
  return nullptr;
}

// The arguments of a new node.
class Arguments {
 public:
  Arguments(EditedGraph& graph, const OpDef& op) : graph_(graph), op_(op) {}

  void add_all(nb::handle positional) {
    note_dtypes(positional);
    size_t next = 0;
    const size_t count = nb::len(positional);
    for (const OperandDecl& declared : op_.operands) {
      if (next == count)
        return;
      add(declared, positional[next++]);
    }
    if (next < count)
      throw user_error("{} takes {} operands, but {} were given; attributes are given by name: {}", op_.name,
                       op_.operands.size(), count, op_.signature());
  }

  void add_named(const nb::dict& named) {
    for (const auto& [key, object] : named) {
      const std::string word = nb::cast<std::string>(key);
      if (const AttributeDecl* const declared = op_.find_attribute(word)) {
        if (nb::isinstance<NodeHandle>(object))
          operands_.emplace_back(declared->name, value_of(object, word));
        else
          attributes_.emplace(word, to_attribute(object, *declared));
      } else if (const OperandDecl* const operand = op_.find_operand(word)) {
        add(*operand, object);
      } else {
        throw op_.unknown_name(word);
      }
    }
  }

  Node* make() { return graph_.get().create(op_, std::move(operands_), std::move(attributes_)); }

 private:
  void add(const OperandDecl& declared, nb::handle object) {
    if (declared.arity == Arity::Many) {
      std::vector<Value> values;
      for (nb::handle each : nb::borrow(object))
        values.push_back(value_of(each, declared.name, declared.type));
      operands_.emplace_back(declared.name, std::move(values));
    } else if (!object.is_none()) {
      operands_.emplace_back(declared.name, value_of(object, declared.name, declared.type));
    }
  }

  // A number is a constant of the dtype that is declared, or else that other operands of the same type have.
  Value value_of(nb::handle object, std::string_view title, std::string_view type = "i64") {
    Graph& graph = graph_.get();
    if (nb::isinstance<NodeHandle>(object)) {
      const NodeHandle& handle = handle_of(object);
      if (handle.graph().get() != &graph_)
        throw user_error("{} is a value of another graph", title);
      return handle.value();
    }
    if (PyBool_Check(object.ptr()) || PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()))
      return scalar(graph, dtype_for(type), nb::cast<double>(object));
    if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
      return vector_of(object, title, dtype_for(type));
    const Datum datum = to_datum(object, std::string(title));
    if (!std::holds_alternative<Tensor>(datum))
      throw user_error("{} is no tensor", title);
    return constant(graph, Literal(datum.tensor()));
  }

  // Numbers in a list, such as a shape.
  Value vector_of(nb::handle list, std::string_view title, DType dtype) {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    for (nb::handle each : list) {
      if (!PyLong_Check(each.ptr()) && !PyFloat_Check(each.ptr()))
        throw user_error("{} is a list of {}, and not of numbers", title, describe_type(each));
      numbers.push_back(nb::cast<double>(each));
      if (PyLong_Check(each.ptr()))
        integers.push_back(nb::cast<int64_t>(each));
    }
    if (dtype == DType::I64 && integers.size() == numbers.size())
      return int_vector(graph_.get(), integers);
    return constant(graph_.get(), narrow<double>(dtype, {static_cast<int64_t>(numbers.size())}, numbers));
  }

  void note_dtypes(nb::handle positional) {
    size_t next = 0;
    for (nb::handle each : positional) {
      const std::string_view type = next < op_.operands.size() ? op_.operands[next++].type : "";
      if (const NodeHandle* const node = first_node(nb::make_tuple(each)))
        if (node->is_value() && node->value().type().is_tensor())
          dtypes_.emplace_back(type, node->value().dtype());
    }
  }

  DType dtype_for(std::string_view type) const {
    if (const std::optional<DType> dtype = parse_dtype(type))
      return *dtype;
    for (const auto& [variable, dtype] : dtypes_)
      if (variable == type)
        return dtype;
    return dtypes_.empty() ? DType::F32 : dtypes_.front().second;
  }

  EditedGraph& graph_;
  const OpDef& op_;
  std::vector<Operand> operands_;
  Attributes attributes_;
  std::vector<std::pair<std::string_view, DType>>
      dtypes_;  // of operands that are nodes, and their declared types
};

Node* make_node(EditedGraph& graph, const std::string& op_name, nb::handle positional,
                const nb::dict& named) {
  const OpDef& op = wanted_op(op_name);
  if (!op.regions.empty())
    throw unsupported("{} has nested graphs, which cannot be made from Python", op_name);
  Arguments arguments(graph, op);
  arguments.add_all(positional);
  arguments.add_named(named);
  return arguments.make();
}

nb::object create(const std::string& op_name, const nb::args& positional, const nb::kwargs& named) {
  wanted_op(op_name);
  const NodeHandle* beside = first_node(positional);
  if (beside == nullptr)
    beside = first_node(named.values());
  if (beside == nullptr)
    throw user_error("{} needs a tenon.Node among its arguments: it is recorded in the graph of that",
                     op_name);
  const GraphHandle graph = beside->graph();
  const Node* const node = make_node(*graph, op_name, positional, named);
  if (node->result_count() == 1)
    return graph->handle(node->result());
  nb::list results;
  for (Value result : node->results())
    results.append(graph->handle(result));
  return nb::tuple(results);
}

nb::object call_function(const GraphHandle& graph, const std::string& op_name, const nb::tuple& positional,
                         const nb::dict& named) {
  return graph->handle(make_node(*graph, op_name, positional, named));
}

nb::object get_attr(const GraphHandle& graph, const std::string& target,
                    const std::optional<nb::object>& elements) {
  Graph& edited = graph->get();
  if (elements) {
    const Datum datum = to_datum(*elements, target);
    if (!std::holds_alternative<Tensor>(datum))
      throw user_error("{} is no tensor", target);
    return graph->handle(parameter(edited, target, Literal(datum.tensor())));
  }
  for (Node* node : edited.nodes())
    if (literal_of(*node) != nullptr &&
        (node->is("parameter") ? node->attr("name").as<std::string>() : graph->name(node->result().data())) ==
            target)
      return graph->handle(edited.copy_node(*node, [](Value value) { return value; }));
  throw user_error("the graph has no parameter or constant {}: with elements, get_attr makes one", target);
}

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

nb::tuple tuple_of(EditedGraph& graph, const std::vector<Value>& values) {
  nb::list list;
  for (Value value : values)
    list.append(graph.handle(value));
  return nb::tuple(list);
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
                                                : nb::object(tuple_of(graph, outputs)));
    }
    case NodeHandle::Kind::Call:
      break;
  }
  nb::list all;
  size_t count = 0;
  for (const OperandDecl& declared : node->op().operands) {
    if (declared.arity == Arity::Many) {
      all.append(nb::list(tuple_of(graph, node->ins(declared.name))));
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

nb::object shape_of(const NodeHandle& handle) {
  const Value value = handle.value();
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

std::optional<std::string> dtype_of(const NodeHandle& handle) {
  const Type& type = handle.value().type();
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
nb::object type_object(const NodeHandle& handle) {
  const nb::object make = nb::module_::import_("tenon._graph").attr("TensorType");
  if (handle.is_value())
    return make(to_string(handle.value().type()), dtype_of(handle), shape_of(handle));
  nb::list types;
  for (Value value :
       handle.kind() == NodeHandle::Kind::Output ? handle.node()->operands() : handle.node()->results())
    types.append(type_object(handle_of(handle.graph()->handle(value))));
  return nb::tuple(types);
}

nb::dict meta_of(const NodeHandle& handle) {
  nb::dict meta = handle.graph()->meta(handle.key());
  meta["val"] = type_object(handle);
  return meta;
}

// An operation, and after one with several results those that are used.
void append_node(EditedGraph& graph, Node* node, nb::list& list) {
  list.append(graph.handle(node));
  if (node->result_count() != 1)
    for (Value result : node->results())
      if (result.use_count() > 0)
        list.append(graph.handle(result));
}

nb::list nodes_of(const GraphHandle& graph) {
  nb::list list;
  for (Value input : graph->get().inputs())
    list.append(graph->handle(input));
  for (Node* node = graph->get().first(); node != graph->get().return_node(); node = node->next())
    append_node(*graph, node, list);
  list.append(graph->handle(graph->get().return_node()));
  return list;
}

// --- editing ---

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

void flatten(nb::handle object, std::vector<Value>& values) {
  if (nb::isinstance<NodeHandle>(object))
    values.push_back(handle_of(object).value());
  else if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))
    for (nb::handle each : object)
      flatten(each, values);
  else if (!object.is_none())
    throw user_error("the arguments of a node are nodes, and lists of them, but not a {}",
                     describe_type(object));
}

// As many as there were: what an op takes otherwise is another node.
void set_arguments(const NodeHandle& handle, const nb::tuple& arguments) {
  Node* const node = handle.node();
  if (node == nullptr || handle.kind() == NodeHandle::Kind::Element)
    throw user_error("{} has no arguments to replace", handle.describe());
  std::vector<Value> values;
  flatten(arguments, values);
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

void erase(const GraphHandle& graph, const NodeHandle& node) {
  if (node.graph() != graph)
    throw user_error("the node is of another graph");
  switch (node.kind()) {
    case NodeHandle::Kind::Placeholder:
      return graph->erase_input(node.value());
    case NodeHandle::Kind::Element:
      if (node.value().use_count() > 0)
        throw user_error("{} cannot be erased: {} uses its result", node.describe(),
                         node.value().users().front()->describe());
      return;  // it goes with the node whose result it is
    case NodeHandle::Kind::Output:
      throw user_error("the outputs of a graph cannot be erased");
    default:
      return graph->erase(node.node());
  }
}

int64_t eliminate_dead_code(const GraphHandle& handle) {
  const std::vector<Node*> nodes = handle->get().nodes();
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

nb::object set_outputs(const GraphHandle& graph, nb::handle outputs) {
  std::vector<Value> values;
  flatten(outputs, values);
  for (Value value : values)
    if (&value.graph() != &graph->get())
      throw user_error("an output is a value of another graph");
  graph->get().set_outputs(values);
  return graph->handle(graph->get().return_node());
}

// New nodes go before a node, or after it, within a with-statement.
class InsertionPoint {
 public:
  InsertionPoint(GraphHandle graph, nb::object node, bool after)
      : graph_(std::move(graph)), node_(std::move(node)), after_(after) {
    if (!node_.is_none() && handle_of(node_).graph() != graph_)
      throw user_error("the node is of another graph");
  }
  void enter() { point_ = std::make_unique<InsertBefore>(place()); }
  void exit() { point_.reset(); }

 private:
  Node* place() const {
    Graph& graph = graph_->get();
    if (node_.is_none())
      return after_ || graph.first() == nullptr ? graph.return_node() : graph.first();
    const NodeHandle& handle = handle_of(node_);
    Node* const node = handle.node();
    if (node == nullptr)
      return graph.first() == nullptr ? graph.return_node() : graph.first();
    if (after_ && node == graph.return_node())
      throw user_error("nothing comes after the output");
    return after_ ? node->next() : node;
  }

  GraphHandle graph_;
  nb::object node_;
  bool after_;
  std::unique_ptr<InsertBefore> point_;
};

}  // namespace

void bind_graph(nb::module_& module) {
  nb::class_<NodeHandle>(
      module, "Node",
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
      .def_prop_ro("dtype", dtype_of)
      .def_prop_ro("shape", shape_of, "Integers, and expressions as strings; None where the rank is unknown.")
      .def_prop_ro("elements", known_elements, "Where they are known before the graph runs, else None.")
      .def_prop_ro(
          "sources",
          [](const NodeHandle& node) {
            return node.node() == nullptr ? std::vector<std::string>() : node.node()->sources();
          },
          "What the nodes of the user's model are called that it stands for.")
      .def_prop_ro("graph", [](const NodeHandle& node) { return node.graph(); })
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

  nb::class_<InsertionPoint>(module, "InsertionPoint")
      .def("__enter__", &InsertionPoint::enter)
      .def("__exit__", [](InsertionPoint& point, const nb::args&) { point.exit(); });

  nb::class_<EditedGraph>(module, "Graph", "A graph that can be edited, in the words of torch.fx.Graph.")
      .def_prop_ro("nodes", nodes_of, "In an order in which they can run; the output is the last.")
      .def_prop_ro("inputs", [](const GraphHandle& graph) { return tuple_of(*graph, graph->get().inputs()); })
      .def_prop_ro("outputs",
                   [](const GraphHandle& graph) { return tuple_of(*graph, graph->get().outputs()); })
      .def_prop_ro("output_names", [](const GraphHandle& graph) { return graph->get().output_names(); })
      .def(
          "placeholder",
          [](const GraphHandle& graph, const std::string& name, const std::string& type) {
            return graph->handle(graph->get().add_input(parse_type(type), name));
          },
          nb::arg("name"), nb::arg("type_expr"), "A new input, after the others, of a type such as f32[n,8].")
      .def("get_attr", get_attr, nb::arg("target"), nb::arg("elements") = nb::none(),
           "A parameter or constant of the graph by its name; a new parameter where elements are given.")
      .def("_call", call_function)
      .def("output", set_outputs, nb::arg("result"), "Makes a node, or a tuple of them, the outputs.")
      .def("erase_node", erase, nb::arg("to_erase"))
      .def("eliminate_dead_code", eliminate_dead_code, "Erases nodes that nothing uses; returns how many.")
      .def("lint",
           [](const GraphHandle& graph) {
             const std::vector<std::string> problems = lint(graph->get());
             if (!problems.empty())
               throw user_error("the graph is not well formed: {}", fmt::join(problems, "; "));
           })
      .def(
          "inserting_before",
          [](const GraphHandle& graph, nb::object node) {
            return InsertionPoint(graph, std::move(node), false);
          },
          nb::arg("n") = nb::none())
      .def(
          "inserting_after",
          [](const GraphHandle& graph, nb::object node) {
            return InsertionPoint(graph, std::move(node), true);
          },
          nb::arg("n") = nb::none())
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
