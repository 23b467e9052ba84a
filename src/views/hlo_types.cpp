#include "views/hlo_types.h"

#include "views/dtype_words.h"

namespace tenon {

std::string hlo_type(const Type& type) {
  if (!type.is_tensor())
    return fmt::format("({})", hlo_type(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return fmt::format("{}[*]", words_for(dtype).hlo);
  std::vector<std::string> sizes;
  for (const Dim& dim : shape.dims())
    sizes.push_back(dim.is_constant() ? dim.to_string() : "?");
  return fmt::format("{}[{}]", words_for(dtype).hlo, fmt::join(sizes, ","));
}

std::string hlo_tuple(const Types& types) {
  std::vector<std::string> texts;
  for (const Type& type : types)
    texts.push_back(hlo_type(type));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string hlo_list(const std::vector<int64_t>& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ","));
}

}  // namespace tenon
