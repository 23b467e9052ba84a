#include "binding/graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/make_node.h"
#include "binding/tensors.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ir/print.h"

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
  nb::object made = nb::cast(NodeHandle(nb::cast(shared_from_this()), value, node));
  nb::inst_ptr<NodeHandle>(made)->is_known_ = true;
  found->second = made.ptr();
  return made;
}

nb::tuple EditedGraph::handles(const std::vector<Value>& values) {
  nb::list list;
  for (Value value : values)
    list.append(handle(value));
  return nb::tuple(list);
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
    graph()->handles_.erase(key());
}

void NodeHandle::check() const {
  graph()->get();
  if (is_erased_)
    throw user_error("the node was erased");
}

NodeHandle::Kind NodeHandle::kind() const {
  check();
  if (node_ == nullptr)
    return Kind::Placeholder;
  if (value_ == nullptr)
    return node_ == graph()->get().return_node() ? Kind::Output : Kind::Call;
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

}  // namespace

std::vector<Value> values_in(nb::handle object) {
  std::vector<Value> values;
  flatten(object, values);
  return values;
}

namespace {

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

void erase(const GraphHandle& graph, const NodeHandle& node) {
  if (node.graph() != graph.get())
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
  const std::vector<Value> values = values_in(outputs);
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
    if (!node_.is_none() && handle_of(node_).graph() != graph_.get())
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

// What Python keeps beside a node may be nodes: the garbage collector finds such cycles.
int traverse_graph(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self))
    for (const auto& [key, meta] : nb::inst_ptr<EditedGraph>(self)->metas_)
      Py_VISIT(meta.ptr());
  return 0;
}

int clear_graph(PyObject* self) {
  const auto metas = std::exchange(nb::inst_ptr<EditedGraph>(self)->metas_, {});
  return 0;
}

void bind_graph(nb::module_& module) {
  bind_nodes(module);
  nb::class_<InsertionPoint>(module, "InsertionPoint")
      .def("__enter__", &InsertionPoint::enter)
      .def("__exit__", [](InsertionPoint& point, const nb::args&) { point.exit(); });

  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_graph)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_graph)},
                                {0, nullptr}};
  nb::class_<EditedGraph>(module, "Graph", nb::type_slots(slots),
                          "A graph that can be edited, in the words of torch.fx.Graph.")
      .def_prop_ro("nodes", nodes_of, "In an order in which they can run; the output is the last.")
      .def_prop_ro("inputs", [](const GraphHandle& graph) { return graph->handles(graph->get().inputs()); })
      .def_prop_ro("outputs", [](const GraphHandle& graph) { return graph->handles(graph->get().outputs()); })
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
}

}  // namespace tenon::python
