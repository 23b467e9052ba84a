// conversions.h — which ONNX ops we know: one table per family, in a file of the family's name.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "frontends/onnx/node_view.h"

namespace tenon::onnx {

using Convert = std::function<std::vector<Value>(const NodeView&)>;

// The standard domain is the empty one; "ai.onnx" is another spelling of it.
struct Conversion {
  std::string_view op_type;
  Convert convert;
  std::string_view domain = "";
};

using Conversions = std::vector<Conversion>;


// The conversion to our `op` of one operand, x, and no attributes but its defaults.
Convert unary(std::string_view op);
const Conversions& control_conversions();
const Conversions& convolve_conversions();
const Conversions& elementwise_conversions();
const Conversions& gather_conversions();
const Conversions& linear_conversions();
const Conversions& normalise_conversions();
const Conversions& pool_conversions();
const Conversions& recurrent_conversions();
const Conversions& reduce_conversions();
const Conversions& reshape_conversions();
const Conversions& scatter_conversions();
const Conversions& select_conversions();
const Conversions& sequence_conversions();
const Conversions& softmax_conversions();
// The conversion of an op, or null.
const Conversion* find_conversion(std::string_view domain, std::string_view op_type);

}  // namespace tenon::onnx
