// number.cpp — sizes and other numbers that a program computes with beside its tensors, and what it asserts
// of them.
#include <cmath>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/truth.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

Value as_scalar(Value x) { return x.rank() == 0 ? x : reshape(x, std::vector<int64_t>{}); }

std::vector<Value> convert_sym_size(const NodeView& n) {
  const Value x = n.tensor("self");
  return {as_scalar(size_along(x, n.axis("dim", n.rank_of(x))))};
}
std::vector<Value> convert_sym_numel(const NodeView& n) {
  return {reduce_prod(shape_of(n.tensor("self")), {0})};
}

// A tensor of one element as a number: floats as Python's, which have 64 bits.
std::vector<Value> convert_item(const NodeView& n) {
  const Value x = as_scalar(n.tensor("self"));
  if (x.dtype() == DType::Bool)
    return {x};
  return {in_dtype(x, is_float(x.dtype()) ? DType::F64 : DType::I64)};
}

// --- operators, whose arguments come in order

Value operand(const NodeView& n, size_t index) {
  const Argument& given = n.argument(index);
  if (const auto* number = std::get_if<double>(&given))
    return constant(n.graph(), Tensor::scalar(*number));
  const std::vector<Value> values = n.values(index);
  if (values.size() != 1)
    throw user_error("{}: argument {} is {}", n.op(), index, describe(given));
  return values.front();
}

// Python's numbers: an integer meets a float as a float.
struct Both {
  Value a, b;

  explicit Both(const NodeView& n) : a(operand(n, 0)), b(operand(n, 1)) {
    if (is_float(a.dtype()) || is_float(b.dtype())) {
      a = in_dtype(a, DType::F64);
      b = in_dtype(b, DType::F64);
    } else if (a.dtype() != b.dtype()) {
      a = in_dtype(a, DType::I64);
      b = in_dtype(b, DType::I64);
    }
  }
};

Convert binary(Value (*formula)(Value, Value)) {
  return [formula](const NodeView& n) {
    const Both both(n);
    return std::vector<Value>{formula(both.a, both.b)};
  };
}
Value add(Value a, Value b) { return a + b; }
Value sub(Value a, Value b) { return a - b; }
Value mul(Value a, Value b) { return a * b; }
Value truediv(Value a, Value b) { return in_dtype(a, DType::F64) / in_dtype(b, DType::F64); }
Value floordiv(Value a, Value b) { return is_float(a.dtype()) ? floor(a / b) : floor_quotient(a, b); }
Value not_equal(Value a, Value b) { return logical_not(equal(a, b)); }
Value power(Value a, Value b) { return pow(a, b); }
Value both_hold(Value a, Value b) { return logical_and(truth_of(a), truth_of(b)); }
Value one_holds(Value a, Value b) { return logical_or(truth_of(a), truth_of(b)); }

Convert unary(Value (*formula)(Value)) {
  return [formula](const NodeView& n) { return std::vector<Value>{formula(operand(n, 0))}; };
}
Value negative(Value x) { return -x; }
Value to_float(Value x) { return in_dtype(x, DType::F64); }
Value to_integer(Value x) { return in_dtype(x, DType::I64); }
Value rounded_down(Value x) { return in_dtype(is_float(x.dtype()) ? floor(x) : x, DType::I64); }
Value rounded_up(Value x) { return in_dtype(is_float(x.dtype()) ? ceil(x) : x, DType::I64); }
Value root(Value x) { return sqrt(in_dtype(x, DType::F64)); }
Value negated(Value x) { return logical_not(truth_of(x)); }

// sum([a, b, …])
std::vector<Value> convert_sym_sum(const NodeView& n) {
  const std::vector<Value> values = n.values(0);
  if (values.empty())
    throw user_error("sym_sum: it has no numbers");
  Value sum = values.front();
  for (size_t i = 1; i < values.size(); ++i)
    sum = sum + values[i];
  return {sum};
}

// What a program asserts held when it was exported, and says nothing about what it computes.
std::vector<Value> convert_assertion(const NodeView& n) {
  n.ignore_all();
  return {};
}

}  // namespace

const Conversions& number_conversions() {
  static const Conversions conversions = {
      {"_assert_async", convert_assertion},
      {"_assert_scalar", convert_assertion},
      {"_assert_tensor_metadata", convert_assertion},
      {"_local_scalar_dense", convert_item},
      {"_operator.add", binary(add)},
      {"_operator.and_", binary(both_hold)},
      {"_operator.eq", binary(equal)},
      {"_operator.floordiv", binary(floordiv)},
      {"_operator.ge", binary(greater_equal)},
      {"_operator.gt", binary(greater)},
      {"_operator.le", binary(less_equal)},
      {"_operator.lt", binary(less)},
      {"_operator.mod", binary(mod)},
      {"_operator.mul", binary(mul)},
      {"_operator.ne", binary(not_equal)},
      {"_operator.neg", unary(negative)},
      {"_operator.or_", binary(one_holds)},
      {"_operator.pow", binary(power)},
      {"_operator.sub", binary(sub)},
      {"_operator.truediv", binary(truediv)},
      {"item", convert_item},
      {"math.ceil", unary(rounded_up)},
      {"math.floor", unary(rounded_down)},
      {"math.trunc", unary(to_integer)},
      {"sym_constrain_range", convert_assertion},
      {"sym_constrain_range_for_size", convert_assertion},
      {"sym_numel", convert_sym_numel},
      {"sym_size", convert_sym_size},
      {"torch._sym_sqrt", unary(root)},
      {"torch.sym_float", unary(to_float)},
      {"torch.sym_int", unary(to_integer)},
      {"torch.sym_max", binary(maximum)},
      {"torch.sym_min", binary(minimum)},
      {"torch.sym_not", unary(negated)},
      {"torch.sym_sqrt", unary(root)},
      {"torch.sym_sum", convert_sym_sum},
  };
  return conversions;
}

}  // namespace tenon::torch
