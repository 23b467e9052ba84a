#include "frontends/onnx/keep.h"

#include <algorithm>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/signatures.h"
#include "frontends/onnx/wire.h"
#include "ops/onnx_node.h"

namespace tenon::onnx {
namespace {

bool is_self_contained(const AttributeProto& attribute) {
  return attribute.graphs.empty() && attribute.ref_attr_name.empty() &&
         std::ranges::all_of(attribute.tensors, [](const TensorProto& tensor) {
           return tensor.data_location == DataLocation::Default;
         });
}

}  // namespace

std::vector<Value> kept_or(const NodeView& n, const std::vector<Value>& converted) {
  const NodeProto& proto = n.proto();
  const std::string_view domain = canonical_domain(proto.domain);
  const auto range =
      has_signature(domain, proto.op_type) ? same_opsets(domain, proto.op_type, n.opset()) : std::nullopt;
  if (!range || converted.size() < proto.output.size() ||
      !std::ranges::all_of(proto.attribute, is_self_contained))
    return converted;
  OnnxNode kept = {
      .op = domain.empty() ? std::string(proto.op_type) : fmt::format("{}.{}", domain, proto.op_type),
      .since = range->since,
      .until = range->until};
  std::vector<Value> operands;
  for (Value input : n.inputs()) {
    kept.inputs.push_back(input ? static_cast<int64_t>(operands.size()) : -1);
    if (input)
      operands.push_back(input);
  }
  for (const AttributeProto& attribute : proto.attribute)
    kept.attributes.emplace_back(as_text(attribute.message));
  Types types;
  for (size_t i = 0; i < proto.output.size(); ++i) {
    if (!converted[i] || !converted[i].type().is_tensor())
      return converted;
    types.push_back(converted[i].type());
  }
  return keep_onnx_node(n.graph(), kept, operands, types);
}

}  // namespace tenon::onnx
