#include "codegen/cuda/elements.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "loops/apply_function.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

using loops::Function;

namespace {

std::string_view integer_type(int bytes, bool has_sign) {
  switch (bytes) {
    case 1:
      return has_sign ? "signed char" : "unsigned char";
    case 2:
      return has_sign ? "short" : "unsigned short";
    case 4:
      return has_sign ? "int" : "unsigned";
    default:
      return has_sign ? "long long" : "unsigned long long";
  }
}

// In which integers of the dtype are computed with, as overflow has no meaning in others.
std::string_view wrapping_type(DType dtype) {
  return info(dtype).bytes == 8 ? "unsigned long long" : "unsigned";
}

Expression converted(std::string_view type, const Expression& value) {
  return {fmt::format("({}){}", type, value.at(Binding::Unary)), Binding::Unary};
}

Expression between(const Expression& a, std::string_view sign, const Expression& b, Binding binding) {
  // Operands of the same kind are put into parentheses on the right, as a - (b - c) needs.
  const auto tighter = static_cast<Binding>(static_cast<int>(binding) + 1);
  return {fmt::format("{} {} {}", a.at(binding), sign, b.at(tighter)), binding};
}

}  // namespace

std::string_view register_type(DType dtype) {
  CHECK(loops::has_code(dtype), "code for {}", dtype);
  if (dtype == DType::F64)
    return "double";
  if (is_float(dtype))
    return "float";
  return dtype == DType::Bool ? "bool" : integer_type(info(dtype).bytes, is_signed(dtype));
}

std::string_view stored_type(DType dtype) {
  if (ElementText::is_narrow(dtype))
    return "unsigned short";
  return dtype == DType::Bool ? "unsigned char" : register_type(dtype);
}

Expression ElementText::call(std::string_view function, std::span<const Expression> operands) {
  std::vector<std::string_view> texts;
  for (const Expression& operand : operands)
    texts.push_back(operand.text);
  return {fmt::format("{}({})", function, fmt::join(texts, ", "))};
}

Expression ElementText::power_of_two(const Expression& exponent) {
  return call("exp2f", std::array{exponent});
}

Expression ElementText::helper(std::string_view function, std::span<const Expression> operands) {
  return call(preamble_.use(function), operands);
}

Expression ElementText::from_stored(DType dtype, const Expression& stored) {
  if (is_narrow(dtype))
    return helper(dtype == DType::F16 ? "f32_of_f16" : "f32_of_bf16", std::array{stored});
  return dtype == DType::Bool ? between(stored, "!=", {"0"}, Binding::Equality) : stored;
}

Expression ElementText::to_stored(DType dtype, const Expression& value) {
  if (is_narrow(dtype))
    return helper(dtype == DType::F16 ? "f16_of_f32" : "bf16_of_f32", std::array{value});
  return value;
}

Expression ElementText::number(DType dtype, const loops::Number& value) {
  const loops::Number fitted = loops::fitted(dtype, value);
  if (dtype == DType::Bool)
    return {loops::holds(fitted) ? "true" : "false"};
  if (is_float(dtype)) {
    const double number = std::get<double>(fitted);
    const bool is_double = dtype == DType::F64;
    const Binding binding = std::signbit(number) && !std::isnan(number) ? Binding::Unary : Binding::Primary;
    if (!std::isfinite(number)) {
      const std::string_view function = preamble_.use(std::isnan(number) ? is_double ? "nan_f64" : "nan_f32"
                                                      : is_double        ? "infinity_f64"
                                                                         : "infinity_f32");
      return {fmt::format("{}{}()", binding == Binding::Unary ? "-" : "", function), binding};
    }
    std::string text = is_double ? fmt::format("{}", number) : fmt::format("{}", static_cast<float>(number));
    if (text.find_first_of(".e") == std::string::npos)
      text += ".0";
    return {is_double ? text : text + "f", binding};
  }
  if (is_signed(dtype)) {
    const int64_t number = std::get<int64_t>(fitted);
    const std::string_view suffix = dtype == DType::I64 ? "LL" : "";
    if (number == std::numeric_limits<int64_t>::min() || number == std::numeric_limits<int32_t>::min())
      return {fmt::format("{}{} - 1", number + 1, suffix), Binding::Sum};
    Expression text{fmt::format("{}{}", number, suffix), number < 0 ? Binding::Unary : Binding::Primary};
    return info(dtype).bytes < 4 ? converted(register_type(dtype), text) : text;
  }
  Expression text{fmt::format("{}{}", std::get<uint64_t>(fitted), dtype == DType::U64 ? "ULL" : "U")};
  return info(dtype).bytes < 4 ? converted(register_type(dtype), text) : text;
}

Expression ElementText::neutral(Function function, DType dtype) {
  const bool least = function == Function::Maximum;  // the least is neutral
  if (function == Function::Minimum || function == Function::Maximum) {
    if (is_float(dtype))
      return number(dtype, least ? -HUGE_VAL : HUGE_VAL);
    if (!is_signed(dtype))
      return number(dtype, least                  ? uint64_t{0}
                           : dtype == DType::Bool ? 1
                                                  : ~uint64_t{0} >> (64 - info(dtype).bits));
    const auto most = static_cast<int64_t>(~uint64_t{0} >> (65 - info(dtype).bits));
    return number(dtype, least ? -most - 1 : most);
  }
  if (is_float(dtype))
    return number(dtype, function == Function::Multiply ? 1.0 : -0.0);
  const bool is_one = function == Function::Multiply || (function == Function::And && dtype == DType::Bool);
  const int64_t value = is_one ? 1 : function == Function::And ? -1 : 0;
  return number(dtype, is_signed(dtype) ? loops::Number(value) : loops::Number(static_cast<uint64_t>(value)));
}

Expression ElementText::fit(DType dtype, const Expression& value) {
  if (is_narrow(dtype))
    return helper(dtype == DType::F16 ? "round_to_f16" : "round_to_bf16", std::array{value});
  if (is_float(dtype))
    return value;
  if (dtype == DType::Bool)
    return converted("bool", value);
  const Expression held = converted(register_type(dtype), value);
  const int bits = info(dtype).bits;
  if (bits == 8 * info(dtype).bytes)
    return held;
  if (is_unsigned(dtype))
    return converted("unsigned char", {fmt::format("({} & {})", held.text, (1 << bits) - 1)});
  return converted("signed char", {fmt::format("((signed char)({} << {}) >> {})", value.at(Binding::Unary),
                                               8 - bits, 8 - bits)});
}

Expression ElementText::cast(DType from, DType to, const Expression& value) {
  if (to == DType::Bool)
    return between(value, "!=", {is_float(from) ? from == DType::F64 ? "0.0" : "0.0f" : "0"},
                   Binding::Equality);
  if (is_float(to)) {
    if (!is_narrow(to))
      return register_type(from) == register_type(to) ? value : converted(register_type(to), value);
    if (from == DType::F64)
      return helper("round_to_odd", std::array{value});
    if (!is_float(from) && info(from).bits > 16)
      return cast(DType::F64, to, cast(from, DType::F64, value));
    return is_float(from) ? value : converted("float", value);
  }
  if (is_float(from))
    return fit(to, helper(is_unsigned(to) ? "to_unsigned" : "to_signed", std::array{value}));
  return fit(to, value);
}

Expression ElementText::cast_limited(DType to, const Expression& value) {
  return fit(to, call("__float2int_rz", std::array{value}));
}

Expression ElementText::multiply_add(Function function, DType dtype, const Expression& a, const Expression& b,
                                     const Expression& c) {
  const std::array operands = {a, b, c};
  if (function == Function::DotI8x4)
    return fit(dtype, helper("dot_i8x4", operands));
  if (function == Function::DotBf16x2)
    return helper("dot_bf16x2", operands);
  return call(dtype == DType::F64 ? "fma" : "fmaf", operands);
}

Expression ElementText::apply(Function function, DType dtype, std::span<const Expression> operands) {
  switch (function) {
    case Function::Equal:
      return between(operands[0], "==", operands[1], Binding::Equality);
    case Function::Less:
      return between(operands[0], "<", operands[1], Binding::Relation);
    case Function::LessEqual:
      return between(operands[0], "<=", operands[1], Binding::Relation);
    case Function::Select:
      return {fmt::format("{} ? {} : {}", operands[0].at(Binding::Or), operands[1].at(Binding::Or),
                          operands[2].at(Binding::Or)),
              Binding::Choice};
    case Function::DotI8x4:
      return multiply_add(
          function, dtype, operands[0], operands[1],
          number(dtype, is_signed(dtype) ? loops::Number(int64_t{0}) : loops::Number(uint64_t{0})));
    case Function::DotBf16x2:
      return multiply_add(function, dtype, operands[0], operands[1], {"0.0f"});
    case Function::RoundDownToBf16:
    case Function::PackBf16x2:
    case Function::PackI8x4:
    case Function::Philox:
    case Function::PhiloxHigh:
      return helper(loops::info(function).name, operands);
    case Function::Bf16Remainder:
      return between(operands[0], "-", helper("round_down_to_bf16", operands), Binding::Sum);
    case Function::Minimum:
    case Function::Maximum:
      return helper(function == Function::Minimum ? "minimum" : "maximum", operands);
    default:
      return is_float(dtype) ? of_floats(function, dtype, operands) : of_integers(function, dtype, operands);
  }
}

Expression ElementText::of_floats(Function function, DType dtype, std::span<const Expression> operands) {
  const auto math = [&](std::string_view name) {
    return call(dtype == DType::F64 ? std::string(name) : fmt::format("{}f", name), operands);
  };
  switch (function) {
    case Function::Add:
      return between(operands[0], "+", operands[1], Binding::Sum);
    case Function::Subtract:
      return between(operands[0], "-", operands[1], Binding::Sum);
    case Function::Multiply:
      return between(operands[0], "*", operands[1], Binding::Product);
    case Function::Divide:
      return between(operands[0], "/", operands[1], Binding::Product);
    case Function::Negate:
      return {fmt::format("-{}", operands[0].at(Binding::Primary)), Binding::Unary};
    case Function::Remainder:
      return math("fmod");
    case Function::Power:
      return math("pow");
    case Function::Absolute:
      return math("fabs");
    case Function::Round:
      return math("rint");
    case Function::Sqrt:
    case Function::Exp:
    case Function::Log:
    case Function::Sin:
    case Function::Cos:
    case Function::Tan:
    case Function::Asin:
    case Function::Acos:
    case Function::Atan:
    case Function::Sinh:
    case Function::Cosh:
    case Function::Tanh:
    case Function::Asinh:
    case Function::Acosh:
    case Function::Atanh:
    case Function::Erf:
    case Function::Floor:
    case Function::Ceil:
      return math(loops::info(function).name);
    default:
      throw user_error("{} of {}", loops::info(function).name, dtype);
  }
}

Expression ElementText::of_integers(Function function, DType dtype, std::span<const Expression> operands) {
  const auto wrapped = [&](std::string_view sign, Binding binding) {
    const Expression a = converted(wrapping_type(dtype), operands[0]),
                     b = converted(wrapping_type(dtype), operands[1]);
    return between(a, sign, b, binding);
  };
  const auto bitwise = [&](std::string_view sign) {
    return Expression{
        fmt::format("({} {} {})", operands[0].at(Binding::Unary), sign, operands[1].at(Binding::Unary))};
  };
  switch (function) {
    case Function::Add:
      return wrapped("+", Binding::Sum);
    case Function::Subtract:
      return wrapped("-", Binding::Sum);
    case Function::Multiply:
      return wrapped("*", Binding::Product);
    case Function::Divide:
      return helper("divide_integers", operands);
    case Function::Remainder:
      return helper("remainder_integers", operands);
    case Function::ShiftLeft:
    case Function::ShiftRight:
      return helper(loops::info(function).name, operands);
    case Function::And:
      return bitwise("&");
    case Function::Or:
      return bitwise("|");
    case Function::Xor:
      return bitwise("^");
    case Function::Not:
      return {fmt::format("{}{}", dtype == DType::Bool ? "!" : "~", operands[0].at(Binding::Primary)),
              Binding::Unary};
    case Function::Negate:
      return {fmt::format("0 - {}", converted(wrapping_type(dtype), operands[0]).text), Binding::Sum};
    case Function::Absolute:
      if (!is_signed(dtype))
        return operands[0];
      return {fmt::format("{} < 0 ? 0 - {} : {}", operands[0].at(Binding::Sum),
                          converted(wrapping_type(dtype), operands[0]).text,
                          converted(wrapping_type(dtype), operands[0]).text),
              Binding::Choice};
    default:
      throw user_error("{} of {}", loops::info(function).name, dtype);
  }
}

}  // namespace tenon::codegen::cuda
