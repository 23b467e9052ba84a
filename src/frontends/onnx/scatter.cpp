// scatter.cpp — ONNX ops that replace elements by index.
#include "ops/scatter.h"

#include "frontends/onnx/conversions.h"

namespace tenon::onnx {
namespace {

// Scatter, of opset 9 and deprecated since, is ScatterElements under its first name.
std::vector<Value> convert_scatter_elements(const NodeView& n) {
  return {scatter_elements(n.in(0), n.in(1), n.in(2), n.integer("axis", 0), n.text("reduction", "none"))};
}

std::vector<Value> convert_scatter_nd(const NodeView& n) {
  return {scatter_nd(n.in(0), n.in(1), n.in(2), n.text("reduction", "none"))};
}

std::vector<Value> convert_tensor_scatter(const NodeView& n) {
  const bool circular = n.translate<bool>("mode", "linear", {{"linear", false}, {"circular", true}});
  return n.make("write_along", {{"x", n.in(0)}, {"updates", n.in(1)}, {"starts", n.maybe(2)}},
                {{"axis", n.integer("axis", -2)}, {"circular", circular}});
}

}  // namespace

const Conversions& scatter_conversions() {
  static const Conversions conversions = {{"Scatter", convert_scatter_elements},
                                          {"ScatterElements", convert_scatter_elements},
                                          {"ScatterND", convert_scatter_nd},
                                          {"TensorScatter", convert_tensor_scatter}};
  return conversions;
}

}  // namespace tenon::onnx
