#include "binding/make_node.h"

#include <nanobind/stl/string.h>

#include "base/error.h"
#include "binding/attributes.h"
#include "binding/tensors.h"
#include "ops/data.h"
#include "tensor/wide.h"

namespace tenon::python {
namespace {

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
      if (handle.graph() != &graph_)
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

}  // namespace

nb::object create(const std::string& op_name, const nb::args& positional, const nb::kwargs& named) {
  wanted_op(op_name);
  const NodeHandle* beside = first_node(positional);
  if (beside == nullptr)
    beside = first_node(named.values());
  if (beside == nullptr)
    throw user_error("{} needs a tenon.Node among its arguments: it is recorded in the graph of that",
                     op_name);
  EditedGraph* const graph = beside->graph();
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

}  // namespace tenon::python
