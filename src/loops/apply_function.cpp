#include "loops/apply_function.h"

#include <bit>
#include <cmath>

#include "base/philox.h"
#include "tensor/wide.h"

namespace tenon::loops {
namespace {

Number truth(bool holds) { return static_cast<uint64_t>(holds); }

Number cast(DType dtype, const Number& value) {
  if (dtype == DType::Bool)
    return truth(std::visit([](auto v) { return v != 0; }, value));
  if (std::holds_alternative<double>(value) && is_float(dtype))
    return fitted(dtype, value);
  // By way of tensors, which know how numbers that do not fit are cast.
  const DType from = std::holds_alternative<double>(value)    ? DType::F64
                     : std::holds_alternative<int64_t>(value) ? DType::I64
                                                              : DType::U64;
  const Tensor wide = std::visit([&]<class T>(T v) { return narrow<T>(from, {1}, std::span(&v, 1)); }, value);
  return with_wide(dtype, [&]<class T>(T) -> Number { return fitted(dtype, widen<T>(wide).front()); });
}

double of_floats(Function function, double a) {
  switch (function) {
    case Function::Negate:
      return -a;
    case Function::Absolute:
      return std::abs(a);
    case Function::Sqrt:
      return std::sqrt(a);
    case Function::Exp:
      return std::exp(a);
    case Function::Log:
      return std::log(a);
    case Function::Sin:
      return std::sin(a);
    case Function::Cos:
      return std::cos(a);
    case Function::Tan:
      return std::tan(a);
    case Function::Asin:
      return std::asin(a);
    case Function::Acos:
      return std::acos(a);
    case Function::Atan:
      return std::atan(a);
    case Function::Sinh:
      return std::sinh(a);
    case Function::Cosh:
      return std::cosh(a);
    case Function::Tanh:
      return std::tanh(a);
    case Function::Asinh:
      return std::asinh(a);
    case Function::Acosh:
      return std::acosh(a);
    case Function::Atanh:
      return std::atanh(a);
    case Function::Erf:
      return std::erf(a);
    case Function::Floor:
      return std::floor(a);
    case Function::Ceil:
      return std::ceil(a);
    case Function::Round:
      return std::nearbyint(a);
    default:
      throw user_error("{} of a float", info(function).name);
  }
}

double of_floats(Function function, double a, double b) {
  switch (function) {
    case Function::Add:
      return a + b;
    case Function::Subtract:
      return a - b;
    case Function::Multiply:
      return a * b;
    case Function::Divide:
      return a / b;
    case Function::Remainder:
      return std::fmod(a, b);
    case Function::Minimum:  // NaN where either is
      return std::isnan(a) || a < b ? a : b;
    case Function::Maximum:
      return std::isnan(a) || a > b ? a : b;
    case Function::Power:
      return std::pow(a, b);
    default:
      throw user_error("{} of floats", info(function).name);
  }
}

template <class T>
T of_integers(Function function, T a) {
  switch (function) {
    case Function::Not:
      return ~a;
    case Function::Negate:
      return static_cast<T>(-static_cast<uint64_t>(a));
    case Function::Absolute:
      return a < 0 ? static_cast<T>(-static_cast<uint64_t>(a)) : a;
    default:
      throw user_error("{} of an integer", info(function).name);
  }
}

uint32_t dot_i8x4(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int bits = 0; bits < 32; bits += 8)
    sum += (a >> bits & 0xff) * static_cast<uint32_t>(static_cast<int8_t>(b >> bits & 0xff));
  return sum;
}

double dot_bf16x2(uint32_t a, uint32_t b) {
  const auto low = [](uint32_t word) { return std::bit_cast<float>(word << 16); };
  const auto high = [](uint32_t word) { return std::bit_cast<float>(word & 0xffff0000); };
  return double{low(a)} * double{low(b)} + double{high(a)} * double{high(b)};
}

int64_t pack_i8x4(std::span<const Number> operands) {
  uint32_t word = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    word |= (static_cast<uint32_t>(std::get<int64_t>(operands[i])) & 0xff) << (8 * i);
  return static_cast<int32_t>(word);
}

double round_down_to_bf16(double number) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(number)) & 0xffff0000);
}

int64_t pack_bf16x2(double low, double high) {
  const auto bits = [](double number) { return std::bit_cast<uint32_t>(static_cast<float>(number)) >> 16; };
  return static_cast<int32_t>(bits(low) | bits(high) << 16);
}

Number philox_bits(Function function, DType dtype, std::span<const Number> operands) {
  if (dtype != DType::U64)
    throw user_error("{} of {}", info(function).name, dtype);
  const auto word = [&](size_t i) { return std::get<uint64_t>(operands[i]); };
  return philox(word(0), word(1), word(2))[function == Function::Philox ? 0 : 1];
}

template <class T>
T of_integers(Function function, T a, T b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // which may overflow
  switch (function) {
    case Function::Add:
      return static_cast<T>(x + y);
    case Function::Subtract:
      return static_cast<T>(x - y);
    case Function::Multiply:
      return static_cast<T>(x * y);
    case Function::Divide:
    case Function::Remainder:
      if (b == 0)
        throw user_error("an integer is divided by 0");
      if (b == static_cast<T>(-1) && std::is_signed_v<T>)
        return function == Function::Divide ? static_cast<T>(-x) : T{0};
      return function == Function::Divide ? a / b : a % b;
    case Function::Minimum:
      return std::min(a, b);
    case Function::Maximum:
      return std::max(a, b);
    case Function::ShiftLeft:
      return y < 64 ? static_cast<T>(x << y) : T{0};
    case Function::ShiftRight:
      return static_cast<T>(y < 64 ? a >> y : std::is_signed_v<T> ? a >> 63 : T{0});
    case Function::And:
      return a & b;
    case Function::Or:
      return a | b;
    case Function::Xor:
      return a ^ b;
    case Function::DotI8x4:
      return static_cast<T>(dot_i8x4(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
    default:
      throw user_error("{} of integers", info(function).name);
  }
}

}  // namespace

Number fitted(DType dtype, const Number& value) {
  if (dtype == DType::F64 || dtype == DType::I64 || dtype == DType::U64)
    return value;
  if (dtype == DType::F32)
    return static_cast<double>(static_cast<float>(std::get<double>(value)));
  if (kind(dtype) == DTypeKind::Signed) {
    const int unused = 64 - info(dtype).bits;
    return static_cast<int64_t>(static_cast<uint64_t>(std::get<int64_t>(value)) << unused) >> unused;
  }
  return std::visit(
      [&]<class T>(T v) -> Number { return widen<T>(narrow<T>(dtype, {1}, std::span(&v, 1))).front(); },
      value);
}

Number apply_function(Function function, DType dtype, std::span<const Number> operands) {
  if (function == Function::Cast)
    return cast(dtype, operands[0]);
  if (function == Function::Select)
    return holds(operands[0]) ? operands[1] : operands[2];
  if (function == Function::Require) {
    if (!holds(operands[0]))
      throw user_error("what the kernel requires does not hold");
    return operands[1];
  }
  if (function == Function::DotBf16x2) {
    const auto word = [&](size_t i) { return static_cast<uint32_t>(std::get<int64_t>(operands[i])); };
    return fitted(dtype, dot_bf16x2(word(0), word(1)));
  }
  if (function == Function::RoundDownToBf16)
    return round_down_to_bf16(std::get<double>(operands[0]));
  if (function == Function::Bf16Remainder)
    return fitted(dtype, std::get<double>(operands[0]) - round_down_to_bf16(std::get<double>(operands[0])));
  if (function == Function::PackBf16x2)
    return pack_bf16x2(std::get<double>(operands[0]), std::get<double>(operands[1]));
  if (function == Function::PackI8x4)
    return fitted(dtype, pack_i8x4(operands));
  if (function == Function::Philox || function == Function::PhiloxHigh)
    return philox_bits(function, dtype, operands);
  if (dtype == DType::Bool && function == Function::Not)
    return truth(!holds(operands[0]));
  const Number result = std::visit(
      [&]<class T>(T a) -> Number {
        if (operands.size() == 1) {
          if constexpr (std::is_same_v<T, double>)
            return of_floats(function, a);
          else
            return of_integers<T>(function, a);
        }
        const T b = std::get<T>(operands[1]);
        if (function == Function::Equal)
          return truth(a == b);
        if (function == Function::Less)
          return truth(a < b);
        if (function == Function::LessEqual)
          return truth(a <= b);
        if constexpr (std::is_same_v<T, double>)
          return of_floats(function, a, b);
        else
          return of_integers<T>(function, a, b);
      },
      operands[0]);
  return fitted(dtype, result);
}

}  // namespace tenon::loops
