#include "frontends/onnx/conversions.h"

#include <map>

#include "base/error.h"
#include "frontends/onnx/families.h"

namespace tenon::onnx {
namespace {

const std::map<std::pair<std::string_view, std::string_view>, const Conversion*>& table() {
  static const auto conversions = [] {
    std::map<std::pair<std::string_view, std::string_view>, const Conversion*> all;
    for (const Conversions* family : {
             &control_conversions(),
             &convolve_conversions(),
             &elementwise_conversions(),
             &gather_conversions(),
             &generate_conversions(),
             &linear_conversions(),
             &loss_conversions(),
             &normalise_conversions(),
             &pool_conversions(),
             &recurrent_conversions(),
             &reduce_conversions(),
             &reshape_conversions(),
             &scatter_conversions(),
             &select_conversions(),
             &sequence_conversions(),
             &signal_conversions(),
             &slice_conversions(),
             &softmax_conversions(),
             &sort_conversions(),
             &string_conversions(),
             &training_conversions(),
         })
      for (const Conversion& conversion : *family)
        CHECK(all.emplace(std::pair(conversion.domain, conversion.op_type), &conversion).second,
              "{} is converted in two places", conversion.op_type);
    return all;
  }();
  return conversions;
}

}  // namespace

const Conversion* find_conversion(std::string_view domain, std::string_view op_type) {
  const auto it = table().find({domain, op_type});
  return it == table().end() ? nullptr : it->second;
}

std::vector<const Conversion*> all_conversions() {
  std::vector<const Conversion*> all;
  for (const auto& [key, conversion] : table())
    all.push_back(conversion);
  return all;
}

}  // namespace tenon::onnx
