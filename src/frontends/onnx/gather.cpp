// gather.cpp — ONNX ops that pick elements by index.
#include "ops/gather.h"

#include "frontends/onnx/conversions.h"

namespace tenon::onnx {
namespace {

std::vector<Value> slices(const NodeView& n) { return {gather(n.in(0), n.in(1), n.integer("axis", 0))}; }
std::vector<Value> elements(const NodeView& n) {
  return {gather_elements(n.in(0), n.in(1), n.integer("axis", 0))};
}
std::vector<Value> tuples(const NodeView& n) {
  return {gather_nd(n.in(0), n.in(1), n.integer("batch_dims", 0))};
}

}  // namespace

const Conversions& gather_conversions() {
  static const Conversions conversions = {
      {"Gather", slices}, {"GatherElements", elements}, {"GatherND", tuples}};
  return conversions;
}

}  // namespace tenon::onnx
