#include "frontends/torch/node_view.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/torch/importer.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

// Arguments that say where and how a result lies in memory, which our values do not know, and generators of
// random numbers.
bool says_where(std::string_view name) {
  constexpr std::string_view names[] = {"device",        "layout",    "pin_memory", "non_blocking",
                                        "memory_format", "generator", "implicit"};
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

NodeView::NodeView(Importer& importer, Scope& scope, const NodeSpec& spec, std::string_view op)
    : importer_(importer),
      scope_(scope),
      spec_(spec),
      op_(op),
      used_(std::make_shared<std::vector<bool>>(spec.inputs.size(), false)) {}

NodeView::NodeView(const NodeView& other, Value first) : NodeView(other) { first_ = first; }

NodeView::NodeView(const NodeView& other, Enclosure& enclosure) : NodeView(other) { enclosure_ = &enclosure; }

// Constants stay known.
Value Enclosure::capture(Value outside) {
  if (const Literal* literal = literal_of(outside))
    return constant(graph, *literal);
  for (size_t i = 0; i < captured.size(); ++i)
    if (captured[i] == outside)
      return stand_ins[i];
  captured.push_back(outside);
  stand_ins.push_back(graph.add_input(outside.type(), ""));
  return stand_ins.back();
}

Graph& NodeView::graph() const { return enclosure_ != nullptr ? enclosure_->graph : *scope_.graph; }

Value NodeView::enclosed(std::string_view argument) const {
  if (enclosure_ == nullptr)
    return {};
  const auto it = enclosure_->tensors.find(argument);
  return it == enclosure_->tensors.end() ? Value() : it->second;
}

std::string_view NodeView::overload() const {
  const size_t dot = op_.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : op_.substr(dot + 1);
}

const Argument* NodeView::find(std::string_view name) const {
  for (size_t i = 0; i < spec_.inputs.size(); ++i)
    if (spec_.inputs[i].name == name) {
      (*used_)[i] = true;
      return &spec_.inputs[i].argument;
    }
  return nullptr;
}

const Argument& NodeView::get(std::string_view name) const {
  const Argument* argument = find(name);
  if (argument == nullptr || std::holds_alternative<None>(*argument))
    throw user_error("{}: argument {} is missing", op_, name);
  return *argument;
}

void NodeView::refuse(std::string_view name, const Argument& argument, std::string_view wanted) const {
  throw user_error("{}: argument {} is {}, but must be {}", op_, name, describe(argument), wanted);
}

bool NodeView::has(std::string_view name) const {
  const Argument* argument = find(name);
  if (enclosed(name))
    return true;
  return argument != nullptr && !std::holds_alternative<None>(*argument);
}

Value NodeView::resolve(std::string_view tensor) const {
  const bool is_first = first_ && std::ranges::any_of(spec_.inputs, [&](const NamedArgument& input) {
                          const auto* name = std::get_if<TensorName>(&input.argument);
                          return name != nullptr && name->name == tensor && &input == &spec_.inputs.front();
                        });
  const Value value = is_first ? first_ : scope_.tensors.get(tensor);
  return enclosure_ != nullptr ? enclosure_->capture(value) : value;
}

Value NodeView::resolve(const SymbolName& number) const {
  const Value value = scope_.number(number.name);
  return enclosure_ != nullptr ? enclosure_->capture(value) : value;
}

Value NodeView::tensor(std::string_view name) const {
  if (const Value input = enclosed(name))
    return input;
  const Argument& argument = get(name);
  if (const auto* tensor = std::get_if<TensorName>(&argument))
    return resolve(tensor->name);
  refuse(name, argument, "a tensor");
}

Value NodeView::maybe_tensor(std::string_view name) const { return has(name) ? tensor(name) : Value(); }

std::vector<Value> NodeView::tensors(std::string_view name) const {
  const Argument& argument = get(name);
  if (std::holds_alternative<std::vector<TensorName>>(argument) ||
      std::holds_alternative<OptionalTensors>(argument)) {
    std::vector<Value> values = optional_tensors(name);
    if (std::ranges::find(values, Value()) == values.end())
      return values;
  }
  refuse(name, argument, "tensors");
}

std::vector<Value> NodeView::optional_tensors(std::string_view name) const {
  const Argument& argument = get(name);
  std::vector<Value> values;
  if (const auto* tensors = std::get_if<std::vector<TensorName>>(&argument)) {
    for (const TensorName& each : *tensors)
      values.push_back(resolve(each.name));
  } else if (const auto* some = std::get_if<OptionalTensors>(&argument)) {
    for (const auto& each : some->names)
      values.push_back(each ? resolve(*each) : Value());
  } else if (const auto* none = std::get_if<Numbers>(&argument); none == nullptr || !none->items.empty()) {
    refuse(name, argument, "tensors");
  }
  return values;
}

Term NodeView::term(std::string_view name) const {
  if (const Value input = enclosed(name))
    return input;
  const Argument& argument = get(name);
  if (const auto* tensor = std::get_if<TensorName>(&argument))
    return resolve(tensor->name);
  if (const auto* number = std::get_if<int64_t>(&argument))
    return Number(*number);
  if (const auto* number = std::get_if<double>(&argument))
    return Number(*number);
  if (const auto* truth = std::get_if<bool>(&argument))
    return Number(*truth);
  if (const auto* symbol = std::get_if<SymbolName>(&argument))
    return Term::size(resolve(*symbol));
  refuse(name, argument, "a tensor or number");
}

int64_t NodeView::integer(std::string_view name) const {
  const Size given = size(name);
  if (const auto* number = std::get_if<int64_t>(&given))
    return *number;
  throw unsupported("{}: argument {} depends on dynamic sizes", op_, name);
}

Size NodeView::size(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* number = std::get_if<int64_t>(&argument))
    return *number;
  if (const auto* truth = std::get_if<bool>(&argument))
    return int64_t{*truth};
  if (const auto* number = std::get_if<double>(&argument);
      number != nullptr && *number == static_cast<double>(static_cast<int64_t>(*number)))
    return static_cast<int64_t>(*number);
  if (const auto* symbol = std::get_if<SymbolName>(&argument)) {
    const Value value = resolve(*symbol);
    if (const auto known = value.known_ints(); known && known->size() == 1)
      return known->front();
    return value;
  }
  refuse(name, argument, "an int");
}

std::vector<Size> NodeView::sizes(std::string_view name) const {
  const Argument& argument = get(name);
  std::vector<Size> sizes;
  if (const auto* numbers = std::get_if<Numbers>(&argument)) {
    for (const auto& item : numbers->items) {
      if (const auto* number = std::get_if<int64_t>(&item)) {
        sizes.emplace_back(*number);
        continue;
      }
      const Value value = resolve(std::get<SymbolName>(item));
      const auto known = value.known_ints();
      sizes.push_back(known && known->size() == 1 ? Size(known->front()) : Size(value));
    }
    return sizes;
  }
  return {size(name)};
}

std::vector<int64_t> NodeView::integers(std::string_view name) const {
  std::vector<int64_t> numbers;
  for (const Size& each : sizes(name)) {
    const auto* number = std::get_if<int64_t>(&each);
    if (number == nullptr)
      throw unsupported("{}: argument {} depends on dynamic sizes", op_, name);
    numbers.push_back(*number);
  }
  return numbers;
}

double NodeView::real(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* number = std::get_if<double>(&argument))
    return *number;
  return static_cast<double>(integer(name));
}

std::vector<double> NodeView::reals(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* numbers = std::get_if<std::vector<double>>(&argument))
    return *numbers;
  const std::vector<int64_t> whole = integers(name);
  return {whole.begin(), whole.end()};
}

bool NodeView::flag(std::string_view name, bool otherwise) const {
  if (!has(name))
    return otherwise;
  return integer(name) != 0;
}

std::vector<bool> NodeView::flags(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* truths = std::get_if<std::vector<bool>>(&argument))
    return *truths;
  refuse(name, argument, "bools");
}

std::string NodeView::text(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* word = std::get_if<std::string>(&argument))
    return *word;
  refuse(name, argument, "a string");
}

std::vector<std::string> NodeView::texts(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* words = std::get_if<std::vector<std::string>>(&argument))
    return *words;
  refuse(name, argument, "strings");
}

std::optional<DType> NodeView::dtype(std::string_view name) const {
  if (!has(name))
    return std::nullopt;
  const Argument& argument = get(name);
  if (const auto* dtype = std::get_if<DType>(&argument))
    return *dtype;
  refuse(name, argument, "a dtype");
}

void NodeView::change(std::string_view name, Value value) const {
  const Argument& argument = get(name);
  if (const auto* tensor = std::get_if<TensorName>(&argument))
    return scope_.tensors.change(tensor->name, value);
  refuse(name, argument, "a tensor");
}

// --- arguments of higher-order ops

const Argument& NodeView::argument(size_t index) const {
  if (index >= spec_.inputs.size())
    throw user_error("{}: it has {} arguments, but argument {} was expected", op_, spec_.inputs.size(),
                     index);
  (*used_)[index] = true;
  return spec_.inputs[index].argument;
}

std::vector<Value> NodeView::values(size_t index) const {
  const Argument& given = argument(index);
  if (const auto* tensor = std::get_if<TensorName>(&given))
    return {resolve(tensor->name)};
  if (const auto* symbol = std::get_if<SymbolName>(&given))
    return {resolve(*symbol)};
  if (const auto* number = std::get_if<int64_t>(&given))
    return {constant(graph(), Tensor::scalar(*number))};
  if (const auto* truth = std::get_if<bool>(&given))
    return {constant(graph(), Tensor::scalar(*truth))};
  std::vector<Value> values;
  if (const auto* tensors = std::get_if<std::vector<TensorName>>(&given)) {
    for (const TensorName& each : *tensors)
      values.push_back(resolve(each.name));
    return values;
  }
  if (const auto* numbers = std::get_if<Numbers>(&given)) {
    for (const auto& item : numbers->items) {
      const auto* number = std::get_if<int64_t>(&item);
      values.push_back(number != nullptr ? constant(graph(), Tensor::scalar(*number))
                                         : resolve(std::get<SymbolName>(item)));
    }
    return values;
  }
  throw unsupported("{}: argument {} is {}", op_, index, describe(given));
}

const GraphSpec& NodeView::nested(size_t index) const {
  const Argument& given = argument(index);
  const auto* graph = std::get_if<Nested>(&given);
  if (graph == nullptr)
    throw user_error("{}: argument {} is {}, but must be a graph", op_, index, describe(given));
  return *graph->graph;
}

std::vector<Value> NodeView::import_into(Graph& graph, const GraphSpec& nested,
                                         const std::vector<Value>& inputs) const {
  return importer_.import_graph(graph, nested, inputs);
}

size_t NodeView::output_count() const {
  size_t count = 0;
  for (const Argument& output : spec_.outputs) {
    const auto* list = std::get_if<std::vector<TensorName>>(&output);
    count += list != nullptr ? list->size() : 1;
  }
  return count;
}

const TensorMeta* NodeView::argument_meta(std::string_view name) const {
  const auto* tensor = std::get_if<TensorName>(&get(name));
  if (tensor == nullptr)
    return nullptr;
  const auto meta = scope_.spec->tensors.find(tensor->name);
  return meta == scope_.spec->tensors.end() ? nullptr : &meta->second;
}

const TensorMeta* NodeView::result_meta(size_t index) const {
  const auto* tensor =
      index < spec_.outputs.size() ? std::get_if<TensorName>(&spec_.outputs[index]) : nullptr;
  if (tensor == nullptr)
    return nullptr;
  const auto meta = scope_.spec->tensors.find(tensor->name);
  return meta == scope_.spec->tensors.end() ? nullptr : &meta->second;
}

DType NodeView::result_dtype(size_t index, DType otherwise) const {
  const TensorMeta* meta = result_meta(index);
  return meta == nullptr ? otherwise : meta->dtype;
}

// --- values

int64_t NodeView::rank_of(Value x) const {
  if (!x.shape().ranked())
    throw unsupported("{}: the rank of {} is not known when the model is read", op_, x.type());
  return x.rank();
}

int64_t NodeView::axis(std::string_view name, int64_t rank) const {
  return checked_axis(op_, integer(name), std::max<int64_t>(rank, 1));  // a scalar is a vector of one here
}

int64_t NodeView::axis(std::string_view name, int64_t rank, int64_t otherwise) const {
  return checked_axis(op_, integer(name, otherwise), std::max<int64_t>(rank, 1));
}

std::vector<int64_t> NodeView::axes(std::string_view name, int64_t rank) const {
  std::vector<int64_t> all;
  for (int64_t each = 0; each < rank; ++each)
    all.push_back(each);
  std::vector<int64_t> given = integers(name, {});
  if (given.empty() || rank == 0)
    return all;
  return checked_axes(op_, given, rank);
}

Value NodeView::as_number(const Size& size) const {
  if (const auto* number = std::get_if<int64_t>(&size))
    return constant(graph(), Tensor::scalar(*number));
  return std::get<Value>(size);
}

Value NodeView::vector(const std::vector<Size>& sizes) const {
  std::vector<int64_t> known;
  for (const Size& size : sizes)
    if (const auto* number = std::get_if<int64_t>(&size))
      known.push_back(*number);
  if (known.size() == sizes.size())
    return int_vector(graph(), known);
  std::vector<Value> parts;
  for (const Size& size : sizes) {
    const auto* number = std::get_if<int64_t>(&size);
    parts.push_back(number != nullptr ? int_vector(graph(), {*number}) : reshape(std::get<Value>(size), {1}));
  }
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

Value NodeView::number(DType dtype, double value) const { return scalar(graph(), dtype, value); }

void NodeView::check_all_used() const {
  for (size_t i = 0; i < used_->size(); ++i)
    if (!(*used_)[i] && !says_where(spec_.inputs[i].name) &&
        !std::holds_alternative<None>(spec_.inputs[i].argument))
      throw unsupported("{}: its argument {}", op_, spec_.inputs[i].name);
}

Value floor_quotient(Value a, Value b) {
  const auto dividend = a.known_dims(), divisor = b.known_dims();
  const auto at_least = [](const std::optional<std::vector<Dim>>& dims, int64_t bound) {
    return dims && dims->size() == 1 && dims->front().lower_bound().value_or(bound - 1) >= bound;
  };
  if (at_least(dividend, 0) && at_least(divisor, 1))
    return a / b;  // truncating is rounding down
  return (a - mod(a, b)) / b;
}

}  // namespace tenon::torch
