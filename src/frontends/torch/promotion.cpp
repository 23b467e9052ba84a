#include "frontends/torch/promotion.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ops/data.h"
#include "ops/select.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

bool is_narrow_float(DType dtype) { return is_float(dtype) && info(dtype).bits <= 16; }

// The smallest signed integer that holds both: u8 and i8 meet in i16.
DType promote_integers(DType a, DType b) {
  if (a == b)
    return a;
  if (is_unsigned(a) == is_unsigned(b))
    return info(a).bits > info(b).bits ? a : b;
  const DType unsigned_one = is_unsigned(a) ? a : b, signed_one = is_unsigned(a) ? b : a;
  if (info(signed_one).bits > info(unsigned_one).bits)
    return signed_one;
  switch (info(unsigned_one).bits) {
    case 8:
      return DType::I16;
    case 16:
      return DType::I32;
    default:
      return DType::I64;
  }
}

DType promote_floats(DType a, DType b) {
  if (a == b)
    return a;
  if (is_narrow_float(a) && is_narrow_float(b))
    return DType::F32;
  return info(a).bits > info(b).bits ? a : b;
}

std::optional<DType> joined(std::optional<DType> a, std::optional<DType> b) {
  if (!a || !b)
    return a ? a : b;
  return promote_types(*a, *b);
}

// How operands of a kind that counts more meet those that count less: these only matter if they are of a
// higher category.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  if (is_float(*higher))
    return higher;
  if (*higher == DType::Bool || is_float(*lower))
    return promote_types(*higher, *lower);
  return higher;
}

}  // namespace

DType Term::dtype() const {
  if (value_)
    return wrapped_ && is_float(value_.dtype()) ? DType::F32 : value_.dtype();
  constexpr DType kinds[] = {DType::Bool, DType::I64, DType::F32};
  return kinds[number_.index()];
}

DType promote_types(DType a, DType b) {
  if (a == b)
    return a;
  if (!is_float(a) && !is_integer(a) && a != DType::Bool)
    throw unsupported("numbers of {} and {} together", a, b);
  if (!is_float(b) && !is_integer(b) && b != DType::Bool)
    throw unsupported("numbers of {} and {} together", a, b);
  if (a == DType::Bool || b == DType::Bool)
    return a == DType::Bool ? b : a;
  if (is_float(a) && is_float(b))
    return promote_floats(a, b);
  if (is_float(a) || is_float(b))
    return is_float(a) ? a : b;
  return promote_integers(a, b);
}

DType result_type(const std::vector<Term>& terms) {
  std::optional<DType> dimensioned, scalars, numbers;
  for (const Term& term : terms) {
    std::optional<DType>& kind = term.is_number()           ? numbers
                                 : term.value().rank() == 0 ? scalars
                                                            : dimensioned;
    kind = joined(kind, term.dtype());
  }
  return combine(dimensioned, combine(scalars, numbers)).value();
}

Value as_value(Graph& graph, const Term& term, DType dtype) {
  if (term.value())
    return in_dtype(term.value(), dtype);
  return std::visit(
      [&](auto number) {
        if (is_float(dtype))
          return scalar(graph, dtype, static_cast<double>(number));
        if (dtype == DType::Bool)
          return constant(graph, Tensor::scalar(number != 0));
        // A float for integers truncates, as a cast does.
        return constant(graph,
                        narrow<int64_t>(dtype, {}, std::vector<int64_t>{static_cast<int64_t>(number)}));
      },
      term.number());
}

}  // namespace tenon::torch
