#include "frontends/torch/conversions.h"

#include <map>

#include "base/error.h"
#include "frontends/torch/families.h"

namespace tenon::torch {
namespace {

const std::map<std::string_view, const Conversion*>& table() {
  static const auto conversions = [] {
    std::map<std::string_view, const Conversion*> all;
    for (const Conversions* family :
         {&activation_conversions(), &arithmetic_conversions(), &attention_conversions(),
          &control_conversions(),    &convolve_conversions(),   &elementwise_conversions(),
          &external_conversions(),   &generate_conversions(),   &image_conversions(),
          &index_conversions(),      &join_conversions(),       &linear_conversions(),
          &loss_conversions(),       &normalise_conversions(),  &number_conversions(),
          &pool_conversions(),       &recurrent_conversions(),  &reduce_conversions(),
          &reshape_conversions(),    &scatter_conversions(),    &select_conversions(),
          &sort_conversions(),       &random_conversions(),     &strided_conversions()})
      for (const Conversion& conversion : *family)
        CHECK(all.emplace(conversion.op, &conversion).second, "{} is converted in two places", conversion.op);
    return all;
  }();
  return conversions;
}

const Conversion* find(std::string_view op) {
  const auto it = table().find(op);
  return it == table().end() ? nullptr : it->second;
}

}  // namespace

std::string op_of(std::string_view target) {
  for (std::string_view prefix : {"torch.ops.aten.", "torch.ops."})
    if (target.starts_with(prefix))
      return std::string(target.substr(prefix.size()));
  return std::string(target);
}

Found find_conversion(std::string_view op) {
  if (const Conversion* exact = find(op))
    return {exact, false};
  const size_t dot = op.rfind('.');
  const std::string_view base = op.substr(0, dot),
                         overload = dot == std::string_view::npos ? "" : op.substr(dot);
  if (const Conversion* general = find(base))
    return {general, false};
  if (!base.ends_with('_') || base.ends_with("__"))
    return {};
  const std::string_view functional = base.substr(0, base.size() - 1);
  if (const Conversion* exact = find(std::string(functional) + std::string(overload)))
    return {exact, true};
  return {find(functional), true};
}

std::vector<std::string_view> known_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, conversion] : table())
    ops.push_back(op);
  return ops;
}

}  // namespace tenon::torch
