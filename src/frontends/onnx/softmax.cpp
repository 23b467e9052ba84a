// softmax.cpp — ONNX Softmax, LogSoftmax and Hardmax.
#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

// From opset 13 on, along one axis. Before that, over all axes from `axis` on, taken as one.
std::vector<Value> convert_softmax(const NodeView& n, std::string_view op) {
  const Value x = n.in(0);
  if (n.opset() >= 13)
    return n.make(op, {{"x", x}}, {{"axis", n.integer("axis", -1)}});
  const int64_t rank = n.rank_of(x), given = n.integer("axis", 1);
  if (given < -rank || given > rank)
    throw user_error("{}: axis {} is out of range for a tensor of rank {}", n.op_type(), given, rank);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis == rank - 1)
    return n.make(op, {{"x", x}}, {{"axis", axis}});
  std::vector<int64_t> flat(static_cast<size_t>(axis), 0);
  flat.push_back(-1);
  const Value rows = reshape_copying(x, flat);
  return {reshape(n.make(op, {{"x", rows}}, {{"axis", -1}}).front(), shape_of(x))};
}

Convert conversion(std::string_view op) {
  return [op](const NodeView& n) { return convert_softmax(n, op); };
}

}  // namespace

const Conversions& softmax_conversions() {
  static const Conversions conversions = {
      {"Softmax", conversion("softmax")},
      {"LogSoftmax", conversion("log_softmax")},
      {"Hardmax", conversion("hardmax")},
  };
  return conversions;
}

}  // namespace tenon::onnx
