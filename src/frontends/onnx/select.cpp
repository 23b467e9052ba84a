// select.cpp — ONNX ops that choose, limit and convert elements.
#include "ops/select.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

// The names that opsets below 6 use for dtypes.
DType named_dtype(const std::string& name) {
  constexpr std::pair<std::string_view, DType> names[] = {
      {"BOOL", DType::Bool},     {"DOUBLE", DType::F64}, {"FLOAT", DType::F32},  {"FLOAT16", DType::F16},
      {"INT16", DType::I16},     {"INT32", DType::I32},  {"INT64", DType::I64},  {"INT8", DType::I8},
      {"STRING", DType::String}, {"UINT16", DType::U16}, {"UINT32", DType::U32}, {"UINT64", DType::U64},
      {"UINT8", DType::U8},
  };
  const auto found =
      std::ranges::find(names, std::string_view(name), &std::pair<std::string_view, DType>::first);
  if (found == std::end(names))
    throw user_error("Cast: attribute to names no data type: \"{}\"", name);
  return found->second;
}

// Saturation is for float8 only: elsewhere floats overflow to infinity, and integers wrap around.
std::vector<Value> convert_to(const NodeView& n, DType to) {
  constexpr DTypeSet saturated = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                                  DType::F8E8M0};
  return n.make("cast", {{"x", n.in(0)}},
                {{"to", to},
                 {"saturate", saturated.contains(to) && n.flag("saturate", true)},
                 {"scale_rounding", n.text("round_mode", "up")}});
}

std::vector<Value> convert_cast(const NodeView& n) {
  return convert_to(n, n.opset() < 6 ? named_dtype(n.text("to")) : n.dtype("to"));
}
std::vector<Value> convert_cast_like(const NodeView& n) { return convert_to(n, n.in(1).dtype()); }

std::vector<Value> convert_bit_cast(const NodeView& n) { return {bit_cast(n.in(0), n.dtype("to"))}; }

// The bounds are attributes before opset 11 and inputs since.
std::vector<Value> convert_clip(const NodeView& n) {
  const Value x = n.in(0);
  if (n.opset() >= 11)
    return {clip(x, n.maybe(1), n.maybe(2))};
  const auto bound = [&](std::string_view name) {
    return n.has(name) ? scalar(n.graph(), x.dtype(), n.real(name)) : Value();
  };
  return {clip(x, bound("min"), bound("max"))};
}

std::vector<Value> convert_where(const NodeView& n) { return {where(n.in(0), n.in(1), n.in(2))}; }

}  // namespace

const Conversions& select_conversions() {
  static const Conversions conversions = {
      {"BitCast", convert_bit_cast}, {"Cast", convert_cast},   {"CastLike", convert_cast_like},
      {"Clip", convert_clip},        {"Where", convert_where},
  };
  return conversions;
}

}  // namespace tenon::onnx
