#include "frontends/onnx/conversions.h"

#include <map>

#include "base/error.h"
#include "frontends/onnx/families.h"
#include "frontends/onnx/signatures.h"

namespace tenon::onnx {
namespace {

const std::map<std::pair<std::string_view, std::string_view>, const Conversion*>& table() {
  static const auto conversions = [] {
    std::map<std::pair<std::string_view, std::string_view>, const Conversion*> all;
    const auto add = [&](const Conversions& family) {
      for (const Conversion& conversion : family) {
        CHECK(has_signature(conversion.domain, conversion.op_type), "{} has no signature",
              conversion.op_type);
        CHECK(all.emplace(std::pair(conversion.domain, conversion.op_type), &conversion).second,
              "{} is converted in two places", conversion.op_type);
      }
    };
    add(activation_conversions());
    add(attention_conversions());
    add(control_conversions());
    add(convolve_conversions());
    add(einsum_conversions());
    add(elementwise_conversions());
    add(gather_conversions());
    add(generate_conversions());
    add(image_conversions());
    add(linear_conversions());
    add(loss_conversions());
    add(microsoft_attention_conversions());
    add(microsoft_fused_conversions());
    add(microsoft_quantised_conversions());
    add(microsoft_recurrent_conversions());
    add(ml_conversions());
    add(normalise_conversions());
    add(pool_conversions());
    add(quantise_conversions());
    add(random_conversions());
    add(recurrent_conversions());
    add(reduce_conversions());
    add(reshape_conversions());
    add(scatter_conversions());
    add(select_conversions());
    add(sequence_conversions());
    add(signal_conversions());
    add(slice_conversions());
    add(softmax_conversions());
    add(sort_conversions());
    add(string_conversions());
    add(training_conversions());
    add(tree_conversions());
    return all;
  }();
  return conversions;
}

}  // namespace

Convert unary(std::string_view op) {
  return [op](const NodeView& n) { return n.make(op, {{"x", n.in(0)}}); };
}

std::vector<Value> convert_as(std::string_view op_type, const NodeView& n, std::vector<Value> inputs,
                              int64_t opset) {
  const Conversion* conversion = find_conversion("", op_type);
  CHECK(conversion != nullptr, "{} is not converted", op_type);
  return conversion->convert(n.with(std::move(inputs), opset));
}

Convert as_standard(std::string_view op_type, int64_t opset) {
  return [=](const NodeView& n) { return convert_as(op_type, n, n.inputs(), opset); };
}

const Conversion* find_conversion(std::string_view domain, std::string_view op_type) {
  const auto it = table().find({domain, op_type});
  return it == table().end() ? nullptr : it->second;
}

}  // namespace tenon::onnx
