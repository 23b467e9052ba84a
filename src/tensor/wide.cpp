#include "tensor/wide.h"

#include <array>
#include <type_traits>
#include <utility>

namespace tenon {
namespace {

// A float as an integer, never undefined: see widen.
template <class T>
T truncate(double value) {
  constexpr double two_to_63 = 9223372036854775808.0;
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else if (!(value == value)) {
    return 0;
  } else if (std::is_same_v<T, uint64_t> && value >= 0) {
    return value >= 2 * two_to_63 ? std::numeric_limits<T>::max()
                                  : static_cast<T>(static_cast<uint64_t>(value));
  } else {
    const int64_t whole = value >= two_to_63    ? std::numeric_limits<int64_t>::max()
                          : value <= -two_to_63 ? std::numeric_limits<int64_t>::min()
                                                : static_cast<int64_t>(value);
    return static_cast<T>(whole);
  }
}

// A number as a double that rounds to any narrower float as the number itself does. A double holds 53 bits of
// an integer's 64; the eleven below are gathered into one, far below where a float of at most 24 bits is
// rounded.
double round_safely(double value) { return value; }
double round_safely(uint64_t value) {
  constexpr uint64_t low = 0x7ff;
  if (value >> 53 == 0 || (value & low) == 0)
    return static_cast<double>(value);
  return static_cast<double>((value & ~low) | (low + 1));
}
double round_safely(int64_t value) {
  return value < 0 ? -round_safely(-static_cast<uint64_t>(value))
                   : round_safely(static_cast<uint64_t>(value));
}

// One element's storage and what is to be done with it, for every dtype that holds one number.
template <class Storage, class T, class Convert>
std::vector<T> read_elements(const Tensor& t, Convert convert) {
  const std::span<const Storage> source = t.data<Storage>();
  std::vector<T> values(source.size());
  for (size_t i = 0; i < source.size(); ++i)
    values[i] = convert(source[i]);
  return values;
}

template <class Storage, class T, class Convert>
Tensor write_elements(DType dtype, const Extents& extents, std::span<const T> values, Convert convert) {
  Tensor t(dtype, extents);
  CHECK(static_cast<int64_t>(values.size()) == t.count(), "{} values for {}", values.size(),
        describe(dtype, extents));
  const std::span<Storage> target = t.mutable_data<Storage>();
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = convert(values[i]);
  return t;
}

template <class T, class Decode>
std::vector<T> read_coded(const Tensor& t, Decode decode) {
  std::array<T, 256> table;
  for (uint32_t code = 0; code < table.size(); ++code)
    table[code] = truncate<T>(decode(code));
  return read_elements<uint8_t, T>(t, [&](uint8_t code) { return table[code]; });
}

template <class T, class Storage>
std::vector<T> read_integers(const Tensor& t) {
  return read_elements<Storage, T>(t, [](Storage value) { return static_cast<T>(value); });
}

template <FloatFormat format, class Storage, class T>
Tensor write_floats(DType dtype, const Extents& extents, std::span<const T> values, Overflow overflow) {
  return write_elements<Storage>(dtype, extents, values, [overflow](T value) {
    return static_cast<Storage>(encode<format>(round_safely(value), overflow));
  });
}

template <class F, class T>
Tensor write_native_floats(DType dtype, const Extents& extents, std::span<const T> values,
                           Overflow overflow) {
  if (overflow == Overflow::Natural)
    return write_elements<F>(dtype, extents, values, [](T value) { return static_cast<F>(value); });
  return write_elements<F>(dtype, extents, values, [](T value) {
    const auto narrowed = static_cast<F>(value);
    if constexpr (std::is_same_v<T, double>)
      if (std::isinf(narrowed))
        return std::copysign(std::numeric_limits<F>::max(), narrowed);
    return narrowed;
  });
}

// The integer of `bits` bits nearest to a number.
template <class Storage, class T>
Storage clamp(T value, int bits) {
  const auto highest = static_cast<Storage>(std::numeric_limits<Storage>::max() >>
                                            (8 * sizeof(Storage) - static_cast<size_t>(bits)));
  const auto lowest = static_cast<Storage>(std::is_signed_v<Storage> ? -highest - 1 : 0);
  if constexpr (std::is_same_v<T, double>) {
    if (std::is_unsigned_v<Storage> && value < 0)
      return 0;
    using Wide = std::conditional_t<std::is_signed_v<Storage>, int64_t, uint64_t>;
    return clamp<Storage>(truncate<Wide>(value), bits);
  } else {
    return std::cmp_less(value, lowest)       ? lowest
           : std::cmp_greater(value, highest) ? highest
                                              : static_cast<Storage>(value);
  }
}

template <class Storage, class T>
Tensor write_integers(DType dtype, const Extents& extents, std::span<const T> values, Overflow overflow) {
  const int bits = info(dtype).bits;
  if (overflow == Overflow::Saturate)
    return write_elements<Storage>(dtype, extents, values,
                                   [bits](T value) { return clamp<Storage>(value, bits); });

  using Wide = std::conditional_t<std::is_signed_v<Storage>, int64_t, uint64_t>;
  const auto to_wide = [](T value) {
    if constexpr (std::is_same_v<T, double>)
      return truncate<Wide>(value);
    else
      return static_cast<Wide>(value);
  };
  const int unused = 8 * static_cast<int>(sizeof(Storage)) - bits;
  if (unused == 0)
    return write_elements<Storage>(dtype, extents, values,
                                   [=](T value) { return static_cast<Storage>(to_wide(value)); });
  // Up and down again, so that the sign of a number narrower than its byte fills the byte.
  return write_elements<Storage>(dtype, extents, values, [=](T value) {
    const auto raised = static_cast<Storage>(static_cast<uint64_t>(to_wide(value)) << unused);
    return static_cast<Storage>(raised >> unused);
  });
}

[[noreturn]] void refuse(DType dtype) { throw user_error("{} elements cannot be computed with", dtype); }

}  // namespace

template <class T>
std::vector<T> widen(const Tensor& t) {
  if (static_cast<uint64_t>(t.count()) > memory_limit() / sizeof(T))
    throw user_error(
        "computing with {} needs {} bytes for each of {} elements, but this machine has {} bytes of memory",
        describe(t.dtype(), t.extents()), sizeof(T), t.count(), memory_limit());
  switch (t.dtype()) {
    case DType::F64:
      return read_elements<double, T>(t, truncate<T>);
    case DType::F32:
      return read_elements<float, T>(t, [](float value) { return truncate<T>(value); });
    case DType::F16:
      return read_elements<uint16_t, T>(t,
                                        [](uint16_t code) { return truncate<T>(decode<f16_format>(code)); });
    case DType::BF16:
      return read_elements<uint16_t, T>(t, [](uint16_t code) {
        return truncate<T>(std::bit_cast<float>(static_cast<uint32_t>(code) << 16));
      });
    case DType::F8E4M3FN:
      return read_coded<T>(t, decode<f8e4m3fn_format>);
    case DType::F8E4M3FNUZ:
      return read_coded<T>(t, decode<f8e4m3fnuz_format>);
    case DType::F8E5M2:
      return read_coded<T>(t, decode<f8e5m2_format>);
    case DType::F8E5M2FNUZ:
      return read_coded<T>(t, decode<f8e5m2fnuz_format>);
    case DType::F8E8M0:
      return read_coded<T>(t, decode_e8m0);
    case DType::F4E2M1:
      return read_coded<T>(t, decode<f4e2m1_format>);
    case DType::I64:
      return read_integers<T, int64_t>(t);
    case DType::I32:
      return read_integers<T, int32_t>(t);
    case DType::I16:
      return read_integers<T, int16_t>(t);
    case DType::I8:
    case DType::I4:
    case DType::I2:
      return read_integers<T, int8_t>(t);
    case DType::U64:
      return read_integers<T, uint64_t>(t);
    case DType::U32:
      return read_integers<T, uint32_t>(t);
    case DType::U16:
      return read_integers<T, uint16_t>(t);
    case DType::U8:
    case DType::U4:
    case DType::U2:
      return read_integers<T, uint8_t>(t);
    case DType::Bool:
      return read_elements<uint8_t, T>(t, [](uint8_t value) { return static_cast<T>(value != 0); });
    case DType::String:
    case DType::C64:
    case DType::C128:
      break;
  }
  refuse(t.dtype());
}

template <class T>
Tensor narrow(DType dtype, const Extents& extents, std::span<const T> values, Overflow overflow) {
  switch (dtype) {
    case DType::F64:
      return write_native_floats<double>(dtype, extents, values, overflow);
    case DType::F32:
      return write_native_floats<float>(dtype, extents, values, overflow);
    case DType::F16:
      return write_floats<f16_format, uint16_t>(dtype, extents, values, overflow);
    case DType::BF16:
      return write_floats<bf16_format, uint16_t>(dtype, extents, values, overflow);
    case DType::F8E4M3FN:
      return write_floats<f8e4m3fn_format, uint8_t>(dtype, extents, values, overflow);
    case DType::F8E4M3FNUZ:
      return write_floats<f8e4m3fnuz_format, uint8_t>(dtype, extents, values, overflow);
    case DType::F8E5M2:
      return write_floats<f8e5m2_format, uint8_t>(dtype, extents, values, overflow);
    case DType::F8E5M2FNUZ:
      return write_floats<f8e5m2fnuz_format, uint8_t>(dtype, extents, values, overflow);
    case DType::F8E8M0:
      return write_elements<uint8_t>(dtype, extents, values, [=](T value) {
        return static_cast<uint8_t>(encode_e8m0(round_safely(value), overflow, ScaleRounding::Up));
      });
    case DType::F4E2M1:
      return write_floats<f4e2m1_format, uint8_t>(dtype, extents, values, overflow);
    case DType::I64:
      return write_integers<int64_t>(dtype, extents, values, overflow);
    case DType::I32:
      return write_integers<int32_t>(dtype, extents, values, overflow);
    case DType::I16:
      return write_integers<int16_t>(dtype, extents, values, overflow);
    case DType::I8:
    case DType::I4:
    case DType::I2:
      return write_integers<int8_t>(dtype, extents, values, overflow);
    case DType::U64:
      return write_integers<uint64_t>(dtype, extents, values, overflow);
    case DType::U32:
      return write_integers<uint32_t>(dtype, extents, values, overflow);
    case DType::U16:
      return write_integers<uint16_t>(dtype, extents, values, overflow);
    case DType::U8:
    case DType::U4:
    case DType::U2:
      return write_integers<uint8_t>(dtype, extents, values, overflow);
    case DType::Bool:
      return write_elements<uint8_t>(dtype, extents, values,
                                     [](T value) { return static_cast<uint8_t>(value != 0); });
    case DType::String:
    case DType::C64:
    case DType::C128:
      break;
  }
  refuse(dtype);
}

template std::vector<double> widen(const Tensor&);
template std::vector<int64_t> widen(const Tensor&);
template std::vector<uint64_t> widen(const Tensor&);
template Tensor narrow(DType, const Extents&, std::span<const double>, Overflow);
template Tensor narrow(DType, const Extents&, std::span<const int64_t>, Overflow);
template Tensor narrow(DType, const Extents&, std::span<const uint64_t>, Overflow);

Tensor narrow_to_scales(const Extents& extents, std::span<const double> values, Overflow overflow,
                        ScaleRounding rounding) {
  return write_elements<uint8_t>(DType::F8E8M0, extents, values, [=](double value) {
    return static_cast<uint8_t>(encode_e8m0(value, overflow, rounding));
  });
}

namespace {

template <class T>
T only_element(const Tensor& t) {
  if (t.count() != 1)
    throw user_error("one element was wanted, got {}", describe(t.dtype(), t.extents()));
  return widen<T>(t)[0];
}

}  // namespace

double as_double(const Tensor& scalar) { return only_element<double>(scalar); }
int64_t as_int(const Tensor& scalar) { return only_element<int64_t>(scalar); }
std::vector<int64_t> as_ints(const Tensor& t) { return widen<int64_t>(t); }

Tensor filled(DType dtype, const Extents& extents, double value) {
  return repeat(narrow<double>(dtype, {}, std::span<const double>(&value, 1)), extents);
}

}  // namespace tenon
