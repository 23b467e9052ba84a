#include "ops/lower.h"

#include "base/error.h"

namespace tenon {

using loops::Buffer;
using loops::Definition;

DType wide_dtype(DType dtype) { return is_float(dtype) && dtype != DType::F64 ? DType::F32 : dtype; }

std::string LowerContext::operand_name(int64_t operand) { return fmt::format("x{}", operand); }
std::string LowerContext::result_name(int64_t result) { return fmt::format("y{}", result); }

Scalar LowerContext::stored(Value operand, const Index& at) const {
  CHECK(static_cast<int64_t>(at.size()) == operand.rank(), "{}: an index of {} numbers for {}",
        node_.op().name, at.size(), operand.type());
  for (int64_t i = 0; i < node_.operand_count(); ++i)
    if (node_.operand(i) == operand)
      return Scalar::load(operand_name(i), operand.dtype(), at);
  CHECK(false, "{}: lower reads what is no operand", node_.op().name);
}

Scalar LowerContext::in(Value operand, const Index& at) const {
  return Scalar::cast(wide_dtype(operand.dtype()), stored(operand, at));
}

Scalar LowerContext::broadcast(Value operand, const Index& at) const {
  const std::vector<Dim>& sizes = operand.shape().dims();
  CHECK(sizes.size() <= at.size(), "{}: {} is broadcast to rank {}", node_.op().name, operand.type(),
        at.size());
  const std::vector<Dim>& whole = node_.result().shape().dims();
  Index own;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Scalar& index = at[at.size() - sizes.size() + i];
    own.push_back(broadcast_index(index, sizes[i], whole[whole.size() - sizes.size() + i]));
  }
  return in(operand, own);
}

Scalar LowerContext::require_equal(const Dim& a, const Dim& b, const Scalar& value) {
  return a == b ? value : require(equal(Scalar::index(a), Scalar::index(b)), value);
}

Scalar LowerContext::broadcast_index(const Scalar& index, const Dim& size, const Dim& whole) {
  if (size == Dim(1))
    return Scalar::index(0);
  if (size.is_constant() || size == whole)
    return require_equal(size, whole, index);
  // One element, or as many as there are: that is dynamic.
  const Scalar own = Scalar::index(size);
  return require(equal(own, Scalar::index(1)) || equal(own, Scalar::index(whole)),
                 Scalar::index(min(index.index(), size - 1)));
}

Scalar LowerContext::position(const Scalar& element, const Dim& size) const {
  const Scalar index = Scalar::cast(DType::I64, element);
  const Scalar zero = Scalar::zero(DType::I64), end = Scalar::index(size);
  const Scalar counted = select(less(index, zero), index + end, index);
  return require(less_equal(zero, counted) && less(counted, end), counted);
}

std::vector<loops::Axis> LowerContext::axes(const std::vector<Dim>& sizes, std::string_view prefix) {
  std::vector<loops::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({fmt::format("{}{}", prefix, i), sizes[i]});
  return axes;
}

// Elements by their formula; whose they are is for the caller to say.
static Definition map_of(const std::vector<Dim>& sizes, const LowerContext::Formula& formula) {
  Definition definition{.results = {},
                        .axes = LowerContext::axes(sizes, "i"),
                        .reduced = {},
                        .at = {},
                        .combine = "",
                        .own_combine = std::nullopt,
                        .initial = {},
                        .values = {}};
  definition.at = loops::variables_of(definition.axes);
  definition.values = {formula(definition.at)};
  return definition;
}

void LowerContext::define(int64_t result, const Formula& formula) {
  const Value value = node_.result(result);
  const std::vector<Dim>& sizes = value.shape().dims();
  Definition definition =
      map_of(sizes, [&](const Index& at) { return Scalar::cast(value.dtype(), formula(at)); });
  definition.results = {{.name = result_name(result), .dtype = value.dtype(), .sizes = sizes}};
  definitions_.push_back(std::move(definition));
}

LowerContext::Formula LowerContext::keep(const std::vector<Dim>& sizes, const Formula& formula) {
  Definition definition = map_of(sizes, formula);
  const Buffer buffer{.name = fmt::format("t{}_0", definitions_.size()),
                      .dtype = definition.values.front().dtype(),
                      .sizes = sizes};
  definition.results = {buffer};
  definitions_.push_back(std::move(definition));
  return [buffer](const Index& at) { return Scalar::load(buffer.name, buffer.dtype, at); };
}

LowerContext::Formula LowerContext::reduce(
    const std::vector<Dim>& sizes, const std::vector<Dim>& reduced, std::string_view combine,
    const Scalar& initial, const std::function<Scalar(const Index& at, const Index& over)>& value) {
  return reduce(sizes, reduced, {.name = std::string(combine)}, {initial},
                [&](const Index& at, const Index& over) { return std::vector{value(at, over)}; })
      .front();
}

std::vector<LowerContext::Formula> LowerContext::reduce(
    const std::vector<Dim>& sizes, const std::vector<Dim>& reduced, const loops::Combine& combine,
    const std::vector<Scalar>& initial,
    const std::function<std::vector<Scalar>(const Index& at, const Index& over)>& values) {
  Definition definition{.results = {},
                        .axes = axes(sizes, "i"),
                        .reduced = axes(reduced, "k"),
                        .at = {},
                        .combine = combine.name,
                        .own_combine = std::nullopt,
                        .initial = initial,
                        .values = {}};
  if (!loops::built_in_combine(combine.name))
    definition.own_combine = combine;
  definition.at = loops::variables_of(definition.axes);
  definition.values = values(loops::variables_of(definition.axes), loops::variables_of(definition.reduced));
  std::vector<Formula> formulas;
  for (const Scalar& start : initial) {
    Buffer buffer{.name = fmt::format("t{}_{}", definitions_.size(), definition.results.size()),
                  .dtype = start.dtype(),
                  .sizes = sizes};
    formulas.push_back([name = buffer.name, dtype = buffer.dtype](const Index& at) {
      return Scalar::load(name, dtype, at);
    });
    definition.results.push_back(std::move(buffer));
  }
  definitions_.push_back(std::move(definition));
  return formulas;
}

std::vector<loops::Statement> LowerContext::around(const std::vector<loops::Axis>& axes, loops::Mark mark,
                                                   std::vector<loops::Statement> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    loops::Loop loop{
        .variable = axes[i].variable, .end = axes[i].size, .mark = mark, .body = std::move(body)};
    body = {loops::Statement(std::move(loop))};
  }
  return body;
}

void LowerContext::nest(std::vector<loops::Statement> body) { statements_ = std::move(body); }

}  // namespace tenon
