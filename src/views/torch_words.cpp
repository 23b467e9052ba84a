#include "views/torch_words.h"

#include "ir/print.h"

namespace tenon {

std::string_view torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return "float64";
    case DType::F32:
      return "float32";
    case DType::F16:
      return "float16";
    case DType::BF16:
      return "bfloat16";
    case DType::I64:
      return "int64";
    case DType::I32:
      return "int32";
    case DType::I16:
      return "int16";
    case DType::I8:
      return "int8";
    case DType::U64:
      return "uint64";
    case DType::U32:
      return "uint32";
    case DType::U16:
      return "uint16";
    case DType::U8:
      return "uint8";
    case DType::C64:
      return "complex64";
    case DType::C128:
      return "complex128";
    default:
      return name(dtype);
  }
}

std::string python_text(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return attribute.as<bool>() ? "True" : "False";
    case AttributeKind::String:
      return fmt::format("'{}'", attribute.as<std::string>());
    case AttributeKind::DType:
      return fmt::format("torch.{}", torch_dtype(attribute.as<DType>()));
    default:
      return print(attribute);
  }
}

}  // namespace tenon
