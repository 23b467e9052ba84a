#include "binding/added_ops.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "binding/attributes.h"
#include "binding/functions.h"
#include "binding/program.h"
#include "binding/tensors.h"
#include "frontends/onnx/added_ops.h"
#include "frontends/torch/added_ops.h"
#include "ir/evaluate.h"
#include "ir/parse.h"
#include "ops/trace.h"

namespace tenon::python {
namespace {

// What an op does. Null where there is none: there is a decomposition, or both of the others.
struct Functions {
  std::shared_ptr<nb::object> types;      // of the types of the operands, to those of the results as text
  std::shared_ptr<nb::object> eval;       // of numpy arrays
  std::shared_ptr<nb::object> decompose;  // of nodes
};

// An op that is added again, as a cell of a notebook that runs again does, has other functions from then on.
struct AddedOps {
  std::mutex mutex;
  std::map<const OpDef*, Functions> functions;
};

AddedOps& added() {
  static AddedOps& all = *new AddedOps();  // kept for ever, as what graphs refer to
  return all;
}

Functions functions_of(const OpDef& op) {
  const std::lock_guard lock(added().mutex);
  return added().functions.at(&op);
}

// Operands by the declaration: none where one is left out, several where it takes many.
template <class T>
using Operands = std::vector<std::vector<T>>;

Operands<Value> values_of(const Node& n) {
  Operands<Value> values;
  for (const OperandDecl& decl : n.op().operands)
    values.push_back(n.ins(decl.name));
  return values;
}

Operands<Type> types_of(const Node& n) {
  Operands<Type> types;
  for (const OperandDecl& decl : n.op().operands) {
    types.emplace_back();
    for (Value value : n.ins(decl.name))
      types.back().push_back(value.type());
  }
  return types;
}

// Calls a function as it is written: operands in order, attributes by name.
template <class T, class Make>
nb::object call(const nb::object& function, const Node& n, const Operands<T>& operands, Make make) {
  nb::list arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (const T& each : operands[i])
      arguments.append(make(each));
    if (operands[i].empty() && n.op().operands[i].arity == Arity::Optional)
      arguments.append(nb::none());
  }
  nb::dict attributes;
  for (const auto& [name, attribute] : n.attributes())
    attributes[nb::str(name.c_str())] = to_object(attribute);
  return function(*nb::tuple(arguments), **attributes);
}

// What an op computes in ops that there are, for operands of these types.
std::unique_ptr<Graph> trace_decomposition(const nb::object& function, const Node& n,
                                           const Operands<Type>& types) {
  TracedInputs inputs;
  for (const std::vector<Type>& each : types)
    inputs.insert(inputs.end(), each.begin(), each.end());
  return trace(inputs, [&](const std::vector<Value>& values) {
    const nb::gil_scoped_acquire acquired;
    const Lent graph(values.front().graph());
    Operands<Value> operands;
    auto next = values.begin();
    for (const std::vector<Type>& each : types) {
      const auto end = next + static_cast<int64_t>(each.size());
      operands.emplace_back(next, end);
      next = end;
    }
    const nb::object result =
        call(function, n, operands, [&](Value value) { return (*graph)->handle(value); });
    std::vector<Value> results = returned_values(result, *graph);
    if (std::ranges::count(results, Value()) > 0)
      throw user_error("{}: its decomposition returns None", n.op().name);
    return results;
  });
}

Types check_symbols(const Node& n, const Operands<Type>& operands, Types results) {
  std::set<std::string> known;
  for (const std::vector<Type>& each : operands)
    for (const Type& type : each)
      known.merge(symbols_of(type));
  for (const Type& type : results)
    for (const std::string& symbol : symbols_of(type))
      if (!known.contains(symbol))
        throw user_error("{}: no operand has the size {} of a result {}: ? stands for one that is dynamic",
                         n.op().name, symbol, to_string(type));
  return results;
}

Types ask_for_types(const nb::object& function, const Node& n, const Operands<Type>& operands) {
  const nb::gil_scoped_acquire acquired;
  const nb::object answer = call(function, n, operands, [](const Type& type) { return type_object(type); });
  const bool is_one = nb::isinstance<nb::str>(answer);
  if (!is_one && !nb::isinstance<nb::tuple>(answer) && !nb::isinstance<nb::list>(answer))
    throw user_error("{}: its types are text such as f32[n,8], or a list of such, but not a {}", n.op().name,
                     describe_type(answer));
  Types types;
  for (nb::handle each : is_one ? nb::object(nb::make_tuple(answer)) : answer) {
    if (!nb::isinstance<nb::str>(each))
      throw user_error("{}: the type of a result is text such as f32[n,8], and no {}", n.op().name,
                       describe_type(each));
    types.push_back(parse_type(nb::cast<std::string>(each)));
  }
  return check_symbols(n, operands, std::move(types));
}

bool is_ranked(const Type& type) { return !type.is_tensor() || type.as_tensor().shape.ranked(); }

// The types of the results for operands of these.
Types types_for(const Node& n, const Operands<Type>& operands) {
  const Functions functions = functions_of(n.op());
  const bool are_ranked = std::ranges::all_of(
      operands, [](const std::vector<Type>& each) { return std::ranges::all_of(each, is_ranked); });
  if (functions.types && (are_ranked || !functions.decompose))
    return ask_for_types(*functions.types, n, operands);
  const std::unique_ptr<Graph> graph = trace_decomposition(*functions.decompose, n, operands);
  Types types;
  for (Value output : graph->outputs())
    types.push_back(output.type());
  return types;
}

Types infer(const Node& n) { return types_for(n, types_of(n)); }

Data ask_for_elements(const nb::object& function, const Node& n, const Operands<Datum>& operands) {
  const nb::gil_scoped_acquire acquired;
  try {
    const Library numpy{Library::Numpy, nullptr};
    const nb::object answer =
        call(function, n, operands, [&](const Datum& datum) { return to_python(numpy, datum); });
    Data results;
    if (nb::isinstance<nb::tuple>(answer) || nb::isinstance<nb::list>(answer))
      for (nb::handle each : answer)
        results.push_back(to_datum(each, fmt::format("a result of {}", n.op().name)));
    else
      results.push_back(to_datum(answer, fmt::format("the result of {}", n.op().name)));
    return results;
  } catch (const nb::python_error& error) {
    keep_python_error(error);  // tenon_run has no exceptions
    throw;
  }
}

Data eval(const Call& c) {
  const Node& n = c.node();
  const Functions functions = functions_of(n.op());
  Operands<Datum> operands;
  Operands<Type> types;
  for (const OperandDecl& decl : n.op().operands) {
    const std::span<const Datum> each = c.all(decl.name);
    operands.emplace_back(each.begin(), each.end());
    types.emplace_back();
    std::ranges::transform(each, std::back_inserter(types.back()), type_of);
  }
  if (!functions.eval) {
    Data flat;
    for (const std::vector<Datum>& each : operands)
      flat.insert(flat.end(), each.begin(), each.end());
    return evaluate(*trace_decomposition(*functions.decompose, n, types), flat);
  }
  Data results = ask_for_elements(*functions.eval, n, operands);
  const Types expected = types_for(n, types);
  if (results.size() != expected.size())
    throw user_error("{}: its function gave {} results, but its types say {}", n.op().name, results.size(),
                     expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (const Type type = type_of(results[i]); !refines(type, expected[i]))
      throw user_error("{}: its function gave {}, but its types say {}", n.op().name, to_string(type),
                       to_string(expected[i]));
  return results;
}

std::vector<Value> decompose(const Node& n) {
  const Functions functions = functions_of(n.op());
  const nb::gil_scoped_acquire acquired;
  const Lent graph(n.graph());
  const nb::object result =
      call(*functions.decompose, n, values_of(n), [&](Value value) { return (*graph)->handle(value); });
  std::vector<Value> results = returned_values(result, *graph);
  if (results.size() != n.results().size() || std::ranges::count(results, Value()) > 0)
    throw user_error("{}: its decomposition returns {} nodes, but it has {} results", n.op().name,
                     results.size() - static_cast<size_t>(std::ranges::count(results, Value())),
                     n.results().size());
  return results;
}

AttributeKind kind_of(const std::string& word) {
  for (const AttributeKind each :
       {AttributeKind::Bool, AttributeKind::Int, AttributeKind::Float, AttributeKind::String,
        AttributeKind::Ints, AttributeKind::Floats, AttributeKind::Strings})
    if (word == name(each))
      return each;
  throw InternalError(fmt::format("there is no kind of attributes {}", word));
}

// The parameters of an op, as python/tenon/_added_ops.py reads them from a function.
using OperandSpec = std::pair<std::string, std::string>;  // name, and "", "?" or "..."
struct AttributeSpec {
  std::string name, kind;
  std::optional<nb::object> default_value;
};

OpDef declare(const std::string& op_name, const std::string& doc, const std::vector<OperandSpec>& operands,
              const std::vector<AttributeSpec>& attributes, const Functions& functions) {
  OpDef op{.name = interned(op_name),
           .doc = interned(doc),
           .results = {{"results", "any", Arity::Many}},
           .traits = {.takes_unranked = functions.decompose != nullptr},
           .infer = infer,
           .eval = eval};
  if (functions.decompose)
    op.decompose = decompose;
  for (const auto& [operand, mark] : operands)
    op.operands.push_back({interned(operand), interned(fmt::format("T{}", op.operands.size() + 1)),
                           mark.empty()  ? Arity::One
                           : mark == "?" ? Arity::Optional
                                         : Arity::Many});
  for (const AttributeSpec& each : attributes) {
    AttributeDecl decl{.name = interned(each.name), .kind = kind_of(each.kind), .doc = ""};
    if (each.default_value)
      decl.default_value = to_attribute(*each.default_value, decl);
    op.attributes.push_back(std::move(decl));
  }
  return op;
}

// The op of this name that was added before; null where there is none.
const OpDef* find_added(const std::string& op_name) {
  const std::lock_guard lock(added().mutex);
  const auto it =
      std::ranges::find_if(added().functions, [&](const auto& each) { return each.first->name == op_name; });
  return it == added().functions.end() ? nullptr : it->first;
}

void add(const std::string& op_name, const std::string& doc, const std::vector<OperandSpec>& operands,
         const std::vector<std::tuple<std::string, std::string, std::optional<nb::object>>>& attributes,
         const std::vector<std::optional<nb::object>>& given,
         const std::pair<std::string, std::string>& in_onnx, const std::string& in_torch) {
  const auto keep = [&](size_t i) { return given[i] ? kept(*given[i]) : nullptr; };
  Functions functions{.types = keep(0), .eval = keep(1), .decompose = keep(2)};
  std::vector<AttributeSpec> specs;
  for (const auto& [name, kind, default_value] : attributes)
    specs.push_back({name, kind, default_value});
  OpDef op = declare(op_name, doc, operands, specs, functions);
  const OpDef* known = find_added(op_name);
  if (known != nullptr) {
    const onnx::AddedOp* const before = onnx::find_added_op(*known);
    if (known->signature() != op.signature() || (known->decompose == nullptr) != (op.decompose == nullptr) ||
        before->name.domain != in_onnx.first || before->name.op_type != in_onnx.second)
      throw user_error(
          "there is an op {} already, which differs from this one in more than its functions: {}", op_name,
          known->signature());
  } else {
    known = &add_op_or_throw(std::move(op),
                             {.domain = interned(in_onnx.first), .op_type = interned(in_onnx.second)});
  }
  {
    const std::lock_guard lock(added().mutex);
    std::swap(added().functions[known], functions);  // those before are let go of without the mutex
  }
  if (!in_torch.empty())
    torch::add_torch_name(*known, in_torch);
}

}  // namespace

void bind_added_ops(nb::module_& module) {
  module.def("add_op", add, nb::arg("name"), nb::arg("doc"), nb::arg("operands"), nb::arg("attributes"),
             nb::arg("functions"), nb::arg("in_onnx"), nb::arg("in_torch"));
}

}  // namespace tenon::python
