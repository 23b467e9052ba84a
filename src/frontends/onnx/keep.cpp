#include "frontends/onnx/keep.h"

#include <algorithm>

#include "frontends/onnx/custom.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/signatures.h"

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
  Types types;
  for (size_t i = 0; i < proto.output.size(); ++i) {
    if (!converted[i] || !converted[i].type().is_tensor())
      return converted;
    if (n.wants(i))
      types.push_back(converted[i].type());
  }
  return keep_custom(n, types, *range);
}

}  // namespace tenon::onnx
