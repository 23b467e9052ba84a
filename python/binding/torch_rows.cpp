// torch_rows.cpp — a graph as the calls of PyTorch that compute the same, by their parts: what `tenon print
// --as fx` shows, for tenon/fx/_to_fx.py to make a torch.fx.Graph of.
#include "binding/torch_rows.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/attributes.h"
#include "binding/tensors.h"
#include "ir/dim_expression.h"
#include "tensor/wide.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/fx_rows.h"

namespace tenon::python {
namespace {

// An integer; the name of a symbol; (function, dims); or ("sum", [(coefficient, [factor, …]), …]).
nb::object to_object(const Dim& dim) {
  if (const std::optional<int64_t> size = dim.constant())
    return nb::cast(*size);
  if (dim.is_unknown())
    return nb::none();
  static constexpr std::array<std::string_view, 5> functions = {"", "floordiv", "mod", "max", "min"};
  nb::list terms;
  for (const DimTerm& term : terms_of(dim)) {
    nb::list factors;
    for (const DimFactor& factor : term.factors) {
      if (factor->function == DimFunction::Symbol) {
        factors.append(factor->name);
        continue;
      }
      nb::list operands;
      for (const Dim& operand : factor->operands)
        operands.append(to_object(operand));
      factors.append(nb::make_tuple(std::string(functions[static_cast<size_t>(factor->function)]), operands));
    }
    terms.append(nb::make_tuple(term.coefficient, factors));
  }
  return nb::make_tuple("sum", terms);
}

nb::object to_objects(const std::vector<Dim>& dims) {
  nb::list list;
  for (const Dim& dim : dims)
    list.append(to_object(dim));
  return std::move(list);
}

nb::object known_dims(Value value) {
  if (!value || !value.type().is_tensor())
    return nb::none();
  const std::optional<std::vector<Dim>> dims = value.known_dims();
  return dims ? to_objects(*dims) : nb::object(nb::none());
}

nb::object numbers_of(const Tensor& tensor) {
  nb::list numbers;
  with_wide(tensor.dtype(), [&]<class T>(T) {
    for (const T value : widen<T>(tensor))
      if (tensor.dtype() == DType::Bool)
        numbers.append(value != 0);
      else
        numbers.append(value);
  });
  return tensor.extents().empty() ? nb::object(numbers[0]) : nb::object(numbers);
}

constexpr std::string_view kSlots[] = {"tensor", "tensor or number", "number", "int", "ints"};

// (kind, …): see tenon/fx/_to_fx.py.
nb::object to_object(const FxArgument& argument) {
  const std::string slot(kSlots[static_cast<size_t>(argument.slot)]);
  const auto parts = [&](const char* kind) {
    nb::list list;
    for (const FxArgument& part : argument.parts)
      list.append(to_object(part));
    return nb::make_tuple(kind, list);
  };
  switch (argument.kind) {
    case FxArgument::Kind::None:
      return nb::make_tuple("none");
    case FxArgument::Kind::Node:
      return nb::make_tuple("node", argument.node, slot, known_dims(argument.value));
    case FxArgument::Kind::Constant:
      if (argument.constant->kind() == AttributeKind::DType)
        return nb::make_tuple("dtype", std::string(words_for(argument.constant->as<DType>()).torch));
      return nb::make_tuple("constant", python::to_object(*argument.constant));
    case FxArgument::Kind::ShortConstant: {
      const Tensor tensor = literal_of(argument.value)->tensor();
      const bool has_numbers = tensor.dtype() != DType::String && kind(tensor.dtype()) != DTypeKind::Complex;
      return nb::make_tuple("short", has_numbers ? numbers_of(tensor) : nb::object(nb::none()), tensor, slot);
    }
    case FxArgument::Kind::List:
      return parts("list");
    case FxArgument::Kind::Tuple:
      return parts("tuple");
    case FxArgument::Kind::Slice:
      return parts("slice");
  }
  CHECK(false, "an argument is of no kind");
}

nb::object to_objects(const FxRows& rows) {
  nb::list list, nested;
  for (const FxRow& row : rows.rows) {
    nb::list args;
    for (const FxArgument& argument : row.args)
      args.append(to_object(argument));
    nb::dict named, made;
    for (const auto& [name, argument] : row.kwargs)
      named[name.c_str()] = to_object(argument);
    made["op"] = row.opcode;
    made["name"] = row.name;
    made["target"] = row.target;
    made["args"] = args;
    made["kwargs"] = named;
    if (row.node != nullptr) {
      made["tenon_op"] = std::string(row.node->op().name);
      made["described"] = row.node->describe();
      made["sources"] = row.node->sources();
    }
    if (row.result && row.result.type().is_tensor()) {
      made["dtype"] = std::string(words_for(row.result.dtype()).torch);
      if (row.result.shape().ranked())
        made["shape"] = to_objects(row.result.shape().dims());
      made["dims"] = known_dims(row.result);
    }
    if (row.opcode == "get_attr" && row.result)
      made["elements"] = literal_of(row.result)->tensor();
    list.append(made);
  }
  for (const HandedGraph& handed : rows.nested)
    nested.append(nb::make_tuple(handed.name, to_objects(fx_rows(*handed.graph, handed.returns))));
  return nb::make_tuple(list, nested);
}

}  // namespace

void bind_torch_rows(nb::module_& module) {
  module.def("torch_rows", [](const std::shared_ptr<Graph>& graph) { return to_objects(fx_rows(*graph)); });
}

}  // namespace tenon::python
