// conversions.h — which ONNX ops we know: one table per family, in a file of the family's name.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "frontends/onnx/import.h"
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
// What the standard op `op_type` of an opset makes of these inputs and the attributes of `n`, an op that has
// more to it.
std::vector<Value> convert_as(std::string_view op_type, const NodeView& n, std::vector<Value> inputs,
                              int64_t opset = kNewestOpset);
// The conversion that the standard op of the same inputs and attributes has.
Convert as_standard(std::string_view op_type, int64_t opset = kNewestOpset);
// The conversion of an op, or null.
const Conversion* find_conversion(std::string_view domain, std::string_view op_type);

}  // namespace tenon::onnx
