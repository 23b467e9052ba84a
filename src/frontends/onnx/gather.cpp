// gather.cpp — ONNX ops that pick elements by index.
#include "ops/gather.h"

#include "frontends/onnx/conversions.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_gather(const NodeView& n) {
  return {gather(n.in(0), n.in(1), n.integer("axis", 0))};
}
std::vector<Value> convert_gather_elements(const NodeView& n) {
  return {gather_elements(n.in(0), n.in(1), n.integer("axis", 0))};
}
std::vector<Value> convert_gather_nd(const NodeView& n) {
  return {gather_nd(n.in(0), n.in(1), n.integer("batch_dims", 0))};
}

}  // namespace

const Conversions& gather_conversions() {
  static const Conversions conversions = {{"Gather", convert_gather},
                                          {"GatherElements", convert_gather_elements},
                                          {"GatherND", convert_gather_nd}};
  return conversions;
}

}  // namespace tenon::onnx
