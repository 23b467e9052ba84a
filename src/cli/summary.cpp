#include "cli/summary.h"

#include <cmath>

#include "ir/type.h"
#include "tensor/wide.h"

namespace tenon::cli {
namespace {

constexpr size_t kShown = 6;

template <class T>
std::string format_number(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return fmt::format("{:.6g}", value);
  else
    return fmt::format("{}", value);
}

template <class T>
std::string first_elements(const std::vector<T>& values) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i)
    shown.push_back(format_number(values[i]));
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
  return fmt::format(", from {} to {}{}", format_number(*least), format_number(*greatest), others);
}

}  // namespace

std::string summary(const Datum& datum) {
  const std::string type = to_string(type_of(datum));
  if (!std::holds_alternative<Tensor>(datum))
    return type;
  const Tensor& tensor = datum.tensor();
  if (tensor.count() == 0 || kind(tensor.dtype()) == DTypeKind::String ||
      kind(tensor.dtype()) == DTypeKind::Complex)
    return type;
  return with_wide(tensor.dtype(), [&]<class T>(T) {
    const std::vector<T> values = widen<T>(tensor);
    return fmt::format("{} = {}{}", type, first_elements(values), range(values));
  });
}

}  // namespace tenon::cli
