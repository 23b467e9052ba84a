#include "views/hlo_types.h"

namespace tenon {

std::string_view hlo_element(DType dtype) {
  switch (dtype) {
    case DType::I64:
      return "s64";
    case DType::I32:
      return "s32";
    case DType::I16:
      return "s16";
    case DType::I8:
      return "s8";
    case DType::I4:
      return "s4";
    case DType::I2:
      return "s2";
    case DType::Bool:
      return "pred";
    case DType::F4E2M1:
      return "f4e2m1fn";
    case DType::F8E8M0:
      return "f8e8m0fnu";
    default:
      return name(dtype);
  }
}

std::string hlo_type(const Type& type) {
  if (!type.is_tensor())
    return fmt::format("({})", hlo_type(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return fmt::format("{}[*]", hlo_element(dtype));
  std::vector<std::string> sizes;
  for (const Dim& dim : shape.dims())
    sizes.push_back(dim.is_constant() ? dim.to_string() : "?");
  return fmt::format("{}[{}]", hlo_element(dtype), fmt::join(sizes, ","));
}

std::string hlo_tuple(const Types& types) {
  std::vector<std::string> texts;
  for (const Type& type : types)
    texts.push_back(hlo_type(type));
  return fmt::format("({})", fmt::join(texts, ", "));
}

}  // namespace tenon
