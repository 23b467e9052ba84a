#include "views/constants.h"

#include <cmath>

#include "ir/print.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kShort = 8;  // elements

}  // namespace

std::string float_text(double value, DType dtype, bool point) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  std::string text =
      dtype == DType::F32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (point != (text.find_first_of(".e") != std::string::npos) && text.find('e') == std::string::npos)
    text = point ? text + ".0" : text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  return text;
}

std::vector<std::string> element_texts(const Tensor& tensor, const NumberStyle& style) {
  std::vector<std::string> texts;
  if (tensor.dtype() == DType::String) {
    for (const std::string& text : tensor.strings())
      texts.push_back(quote(text));
  } else if (kind(tensor.dtype()) == DTypeKind::Complex) {
    texts.assign(static_cast<size_t>(tensor.count()), "complex");
  } else {
    with_wide(tensor.dtype(), [&]<class T>(T) {
      for (const T value : widen<T>(tensor)) {
        if constexpr (std::is_same_v<T, double>)
          texts.push_back(float_text(value, tensor.dtype(), style.point));
        else if (tensor.dtype() == DType::Bool)
          texts.emplace_back(value != 0 ? style.yes : style.no);
        else
          texts.push_back(fmt::format("{}", value));
      }
    });
  }
  return texts;
}

std::optional<std::string> short_constant(Value value, const NumberStyle& style) {
  if (value.is_input() || !value.node()->is("constant"))
    return std::nullopt;
  const Literal& literal = *literal_of(value);
  if (literal.extents().size() > 1 || literal.count() > kShort)
    return std::nullopt;
  const std::vector<std::string> texts = element_texts(literal.tensor(), style);
  return literal.extents().empty() ? texts.front() : fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace tenon
