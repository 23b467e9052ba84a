// wide.h — numbers widened for computing, and narrowed back.
//
// The reference evaluator computes every number in one of three types: double for all floats, int64_t for
// signed integers, uint64_t for unsigned integers and bool. Each widening and narrowing is one loop over a
// tensor, so no element is ever dispatched on its dtype, and an op's formula is compiled three times and not
// twenty-five.
#pragma once

#include <vector>

#include "tensor/float_formats.h"  // Overflow
#include "tensor/tensor.h"

namespace tenon {

// The elements of a tensor of any numeric or bool dtype as T: double, int64_t or uint64_t. An integer read as
// another wraps. A float read as an integer truncates towards zero: NaN is 0, a number beyond T is the
// nearest of T, except that negative numbers read as uint64_t wrap around as int64_t does (-1.0 is 2^64 - 1).
template <class T>
std::vector<T> widen(const Tensor& t);

// The other way: floats round to nearest even from the double or integer (once: never through f32), integers
// keep their low bits, bool is value != 0 (so NaN is true). A double becomes an integer as in widen,
// saturated to the dtype's own range or reduced to its low bits. Casts to f8e8m0 round up, as ONNX does
// unless told otherwise.
template <class T>
Tensor narrow(DType dtype, const Extents& extents, std::span<const T> values,
              Overflow overflow = Overflow::Natural);

extern template std::vector<double> widen(const Tensor&);
extern template std::vector<int64_t> widen(const Tensor&);
extern template std::vector<uint64_t> widen(const Tensor&);
extern template Tensor narrow(DType, const Extents&, std::span<const double>, Overflow);
extern template Tensor narrow(DType, const Extents&, std::span<const int64_t>, Overflow);
extern template Tensor narrow(DType, const Extents&, std::span<const uint64_t>, Overflow);

// narrow to f8e8m0 with another rounding.
Tensor narrow_to_scales(const Extents& extents, std::span<const double> values, Overflow overflow,
                        ScaleRounding rounding);

// Calls f with a value of the type that `dtype` widens to:
//   with_wide(t.dtype(), [&]<class T>(T) { widen<T>(t) … })
template <class F>
decltype(auto) with_wide(DType dtype, F&& f) {
  switch (kind(dtype)) {
    case DTypeKind::Float:
      return f(double{});
    case DTypeKind::Signed:
      return f(int64_t{});
    case DTypeKind::Unsigned:
    case DTypeKind::Bool:
      return f(uint64_t{});
    default:
      throw user_error("{} elements cannot be computed with", dtype);
  }
}

// One scalar, for attributes, fills and tests.
double as_double(const Tensor& scalar);  // the only element of a one-element tensor
int64_t as_int(const Tensor& scalar);
std::vector<int64_t> as_ints(const Tensor& t);  // widen<int64_t>, for shapes and axes
Tensor filled(DType dtype, const Extents& extents, double value);

}  // namespace tenon
