// generate.cpp — PyTorch's ops that make tensors from sizes and numbers.
#include "ops/generate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/random.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

Tensor element(DType dtype, double value) { return narrow<double>(dtype, {}, std::vector<double>{value}); }

// --- one number everywhere

Convert filled(double value) {
  return [value](const NodeView& n) {
    return std::vector<Value>{fill(n.vector(n.sizes("size")), element(n.dtype("dtype", DType::F32), value))};
  };
}

// Of the dtype that the number has, unless the node says otherwise.
Value filled_by_term(const NodeView& n, Value shape, DType otherwise) {
  const Term number = n.term("fill_value");
  const Value value = as_value(n.graph(), number, n.dtype("dtype", otherwise));
  if (const Tensor* known = value.known_tensor())
    return fill(shape, *known);
  return broadcast_to(value, shape);
}
// How it lies in memory makes no difference to us.
std::vector<Value> convert_empty_strided(const NodeView& n) {
  for (std::string_view name : {"stride", "physical_layout"})
    n.ignore(name);
  return filled(0)(n);
}

std::vector<Value> convert_full(const NodeView& n) {
  return {filled_by_term(n, n.vector(n.sizes("size")), n.term("fill_value").dtype())};
}

// The shape or the dtype of another tensor.
Convert filled_like(double value) {
  return [value](const NodeView& n) {
    const Value x = n.tensor("self");
    return std::vector<Value>{fill(shape_of(x), element(n.dtype("dtype", x.dtype()), value))};
  };
}
std::vector<Value> convert_full_like(const NodeView& n) {
  const Value x = n.tensor("self");
  return {filled_by_term(n, shape_of(x), x.dtype())};
}
Convert new_filled(double value) {
  return [value](const NodeView& n) {
    const Value x = n.tensor("self");
    return std::vector<Value>{fill(n.vector(n.sizes("size")), element(n.dtype("dtype", x.dtype()), value))};
  };
}
std::vector<Value> convert_new_empty_strided(const NodeView& n) {
  n.ignore("stride");
  return new_filled(0)(n);
}
std::vector<Value> convert_new_full(const NodeView& n) {
  return {filled_by_term(n, n.vector(n.sizes("size")), n.tensor("self").dtype())};
}

std::vector<Value> convert_scalar_tensor(const NodeView& n) {
  const Term number = n.term("s");
  return {as_value(n.graph(), number, n.dtype("dtype", DType::F32))};
}

// --- sequences

// start, start + step, … before end: integers, if all are.
std::vector<Value> convert_arange(const NodeView& n) {
  const auto term = [&](std::string_view name, int64_t otherwise) {
    return n.has(name) ? n.term(name) : Term(Number(otherwise));
  };
  const Term start = term("start", 0), end = n.term("end"), step = term("step", 1);
  bool whole = true;
  for (const Term& each : {start, end, step})
    whole = whole && is_integer(each.dtype());
  const DType dtype = n.dtype("dtype", whole ? DType::I64 : DType::F32);
  // The count comes from the numbers as they are, so integers are counted as integers.
  const DType computed = whole ? DType::I64 : DType::F64;
  const auto value = [&](const Term& each) { return as_value(n.graph(), each, computed); };
  return {in_dtype(range(value(start), value(end), value(step)), dtype)};
}

std::vector<Value> convert_linspace(const NodeView& n) {
  const double start = n.real("start"), end = n.real("end");
  const int64_t steps = n.integer("steps");
  if (steps < 0 || steps > int64_t{1} << 28)
    throw user_error("linspace: steps is {}", steps);
  std::vector<double> values;
  for (int64_t i = 0; i < steps; ++i) {
    const double each = steps == 1 ? 0 : (end - start) / static_cast<double>(steps - 1);
    // From either end, so that both are met.
    values.push_back(i < steps / 2 ? start + each * static_cast<double>(i)
                                   : end - each * static_cast<double>(steps - 1 - i));
  }
  if (steps == 1)
    values.front() = start;
  return {constant(n.graph(), narrow<double>(n.dtype("dtype", DType::F32), {steps}, values))};
}

// Of tensors, too: they are computed from either end, so that both are met.
std::vector<Value> convert_linspace_of_tensors(const NodeView& n) {
  const int64_t steps = n.integer("steps");
  const DType dtype = n.dtype("dtype", DType::F32), computed = is_float(dtype) ? dtype : DType::F64;
  const Value start = as_value(n.graph(), n.term("start"), computed),
              end = as_value(n.graph(), n.term("end"), computed);
  std::vector<double> from_start, from_end;
  for (int64_t i = 0; i < steps; ++i) {
    const double gaps = std::max<double>(static_cast<double>(steps - 1), 1);
    from_start.push_back(steps == 1 ? 1 : 1 - static_cast<double>(i) / gaps);
    from_end.push_back(steps == 1 ? 0 : static_cast<double>(i) / gaps);
  }
  const auto weights = [&](const std::vector<double>& values) {
    return constant(n.graph(), narrow<double>(computed, {steps}, values));
  };
  return {in_dtype(start * weights(from_start) + end * weights(from_end), dtype)};
}

// The base to powers from start to end.
std::vector<Value> convert_logspace(const NodeView& n) {
  const DType dtype = n.dtype("dtype", DType::F32);
  const double start = n.real("start"), end = n.real("end"), base = n.real("base", 10);
  const int64_t steps = n.integer("steps");
  std::vector<double> values;
  for (int64_t i = 0; i < steps; ++i) {
    const double part = steps == 1 ? 0 : static_cast<double>(i) / static_cast<double>(steps - 1);
    values.push_back(std::pow(base, start * (1 - part) + end * part));
  }
  return {constant(n.graph(), narrow<double>(dtype, {steps}, values))};
}

// The rows and columns of what lies on one side of a diagonal, by rows.
Convert triangle_indices(bool upper) {
  return [upper](const NodeView& n) {
    const int64_t rows = n.integer("row"), columns = n.integer("col"), offset = n.integer("offset", 0);
    std::vector<int64_t> all, second;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        if (upper ? column - row >= offset : column - row <= offset) {
          all.push_back(row);
          second.push_back(column);
        }
    const auto count = static_cast<int64_t>(second.size());
    all.insert(all.end(), second.begin(), second.end());
    return std::vector<Value>{
        constant(n.graph(), narrow<int64_t>(n.dtype("dtype", DType::I64), {2, count}, all))};
  };
}

std::vector<Value> convert_eye(const NodeView& n) {
  const Size rows = n.size("n");
  return {eye(n.vector({rows, n.size("m", rows)}), n.dtype("dtype", DType::F32))};
}

// --- chance

std::vector<Value> convert_rand(const NodeView& n) {
  return {random_uniform(n.vector(n.sizes("size")), n.dtype("dtype", DType::F32))};
}
std::vector<Value> convert_randn(const NodeView& n) {
  return {random_normal(n.vector(n.sizes("size")), n.dtype("dtype", DType::F32))};
}
std::vector<Value> convert_rand_like(const NodeView& n) {
  return {random_uniform(shape_of(n.tensor("self")), n.dtype("dtype", n.tensor("self").dtype()))};
}
std::vector<Value> convert_randn_like(const NodeView& n) {
  return {random_normal(shape_of(n.tensor("self")), n.dtype("dtype", n.tensor("self").dtype()))};
}

// A window of cosines, periodic unless it is said otherwise; alpha and beta are coefficients of Hamming's.
Convert cosine_window(const std::vector<double>& coefficients) {
  return [coefficients](const NodeView& n) {
    std::vector<double> given = coefficients;
    constexpr std::string_view kNames[] = {"alpha", "beta"};
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (n.has(kNames[i]))
        given[i] = n.real(kNames[i]);
    return n.make("cosine_window", {{"size", n.as_number(n.size("window_length"))}},
                  {{"coefficients", given},
                   {"periodic", n.flag("periodic", true)},
                   {"dtype", n.dtype("dtype", DType::F32)}});
  };
}

}  // namespace

const Conversions& generate_conversions() {
  static const Conversions conversions = {
      {"arange", convert_arange},
      {"blackman_window", cosine_window({0.42, 0.5, 0.08})},
      {"empty", filled(0)},  // what nobody wrote may as well be 0
      {"empty_like", filled_like(0)},
      {"_efficientzerotensor", filled(0)},
      {"empty_permuted", convert_empty_strided},
      {"empty_strided", convert_empty_strided},
      {"eye", convert_eye},
      {"full", convert_full},
      {"full_like", convert_full_like},
      {"hamming_window", cosine_window({0.54, 0.46})},
      {"hann_window", cosine_window({0.5, 0.5})},
      {"linspace", convert_linspace},
      {"linspace.Scalar_Tensor", convert_linspace_of_tensors},
      {"linspace.Tensor_Scalar", convert_linspace_of_tensors},
      {"linspace.Tensor_Tensor", convert_linspace_of_tensors},
      {"logspace.default", convert_logspace},
      {"new_empty", new_filled(0)},
      {"new_empty_strided", convert_new_empty_strided},
      {"new_full", convert_new_full},
      {"new_ones", new_filled(1)},
      {"new_zeros", new_filled(0)},
      {"ones", filled(1)},
      {"ones_like", filled_like(1)},
      {"rand", convert_rand},
      {"rand_like", convert_rand_like},
      {"randn", convert_randn},
      {"randn_like", convert_randn_like},
      {"scalar_tensor", convert_scalar_tensor},
      {"tril_indices", triangle_indices(false)},
      {"triu_indices", triangle_indices(true)},
      {"zeros", filled(0)},
      {"zeros_like", filled_like(0)},
  };
  return conversions;
}

}  // namespace tenon::torch
