#include "views/script_text.h"

#include "ir/print.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/torch_words.h"

namespace tenon {
namespace {

// There are no tensors of strings, but lists of them.
std::string string_type(const Shape& shape) {
  std::string type = "str";
  for (int64_t i = 0; i < shape.rank(); ++i)
    type += "[]";
  return type;
}

}  // namespace

std::string script_type(const Type& type) {
  if (type.is_sequence())
    return script_type(type.element()) + "[]";
  if (type.is_optional())
    return script_type(type.element()) + "?";
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked())
    return "Tensor";
  if (dtype == DType::String)
    return string_type(shape);
  std::vector<std::string> sizes;
  for (const Dim& dim : shape.dims())
    sizes.push_back(dim.is_constant() ? dim.to_string() : "*");
  return fmt::format("{}({})", words_for(dtype).script, fmt::join(sizes, ", "));
}

std::string script_type(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return "bool";
    case AttributeKind::Float:
      return "float";
    case AttributeKind::Floats:
      return "float[]";
    case AttributeKind::Ints:
      return "int[]";
    case AttributeKind::String:
    case AttributeKind::Type:
      return "str";
    case AttributeKind::Strings:
      return "str[]";
    case AttributeKind::Literal:
      return script_type(attribute.as<Literal>());
    default:
      return "int";
  }
}

std::string script_type(const Literal& literal) {
  std::vector<std::string> parts;
  for (const int64_t extent : literal.extents())
    parts.push_back(fmt::format("{}", extent));
  if (!parts.empty())
    parts.push_back(fmt::format("strides=[{}]", fmt::join(row_major_strides(literal.extents()), ", ")));
  parts.insert(parts.end(), {"requires_grad=0", "device=cpu"});
  return fmt::format("{}({})", words_for(literal.dtype()).script, fmt::join(parts, ", "));
}

std::string script_text(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return attribute.as<bool>() ? "1" : "0";
    case AttributeKind::DType:
      return fmt::format("{}", words_for(attribute.as<DType>()).script_number);
    case AttributeKind::Type:
      return quote(print(attribute));
    case AttributeKind::Literal:
      return script_tensor(attribute);
    default:
      return print(attribute);
  }
}

std::string script_tensor(const Literal& literal) {
  const DTypeKind kind_of = kind(literal.dtype());
  if (literal.count() != 1 || literal.dtype() == DType::String || kind_of == DTypeKind::Complex)
    return "<Tensor>";
  const std::string text = element_texts(literal.tensor(), {"1", "0", false}).front();
  const bool is_finite = text.find_first_of("in") == std::string::npos;  // of inf and nan
  return is_finite ? fmt::format("{{{}}}", text) : "<Tensor>";
}

std::string script_number_type(const Literal& literal) {
  const DType dtype = literal.dtype();
  const std::string_view word = dtype == DType::String ? "str"
                                : is_float(dtype)      ? "float"
                                : dtype == DType::Bool ? "bool"
                                                       : "int";
  return fmt::format("{}{}", word, literal.extents().empty() ? "" : "[]");
}

}  // namespace tenon
