#include "ir/summary.h"

#include <cmath>

#include "ir/print.h"
#include "ir/type.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr size_t kShown = 6;

template <class T>
std::string format_element(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return fmt::format("{:.6g}", value);
  else if constexpr (std::is_same_v<T, std::string>)
    return quote(value);
  else
    return fmt::format("{}", value);
}

template <class T>
std::string first_elements(const std::vector<T>& values) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i)
    shown.push_back(format_element(values[i]));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), shown.size() < values.size() ? ", …" : "");
}

// Of the finite elements; the others are counted.
template <class T>
std::string range(std::vector<T> values) {
  std::string others;
  if constexpr (std::is_floating_point_v<T>) {
    const auto nan = std::erase_if(values, [](T value) { return std::isnan(value); });
    const auto inf = std::erase_if(values, [](T value) { return std::isinf(value); });
    if (nan > 0)
      others += fmt::format(", with {} NaN", nan);
    if (inf > 0)
      others += fmt::format(", with {} inf", inf);
  }
  if (values.empty())
    return others;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return fmt::format(", from {} to {}{}", format_element(*least), format_element(*greatest), others);
}

std::string summarize(const Tensor& tensor) {
  const std::string type = describe(tensor.dtype(), tensor.extents());
  if (tensor.count() == 0 || kind(tensor.dtype()) == DTypeKind::Complex)
    return type;
  if (kind(tensor.dtype()) == DTypeKind::String)
    return fmt::format("{} = {}", type, first_elements(tensor.strings()));
  return with_wide(tensor.dtype(), [&]<class T>(T) {
    const std::vector<T> values = widen<T>(tensor);
    return fmt::format("{} = {}{}", type, first_elements(values), range(values));
  });
}

std::string summarize(const Datum& datum, const std::string& indent) {
  if (std::holds_alternative<Tensor>(datum))
    return summarize(datum.tensor());
  if (std::holds_alternative<Optional>(datum)) {
    const auto& element = datum.optional().element;
    return element ? "optional of " + summarize(*element, indent) : "empty optional";
  }
  const std::vector<Datum>& elements = datum.sequence().elements;
  if (elements.empty())
    return "empty sequence";
  std::string text = fmt::format("{} of length {}", to_string(type_of(datum)), elements.size());
  for (size_t i = 0; i < std::min(elements.size(), kShown); ++i)
    text += "\n" + indent + summarize(elements[i], indent + "  ");
  return elements.size() > kShown ? text + "\n" + indent + "…" : text;
}

}  // namespace

std::string summary(const Datum& datum) { return summarize(datum, "  "); }

}  // namespace tenon
