#include "cli/bindings.h"

#include <charconv>

#include "base/error.h"

namespace tenon::cli {
namespace {

int64_t parse_size(const std::string& option, const std::string& text) {
  if (text.empty())
    throw user_error("{}: the size is missing, as in batch=4", option);
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument)
    throw user_error("{}: {} is no whole number", option, text);
  if (text.front() == '-')
    throw user_error("{}: a size cannot be below 0", option);
  if (error == std::errc::result_out_of_range)
    throw user_error("{}: no size is as large", option);
  return size;
}

}  // namespace

std::map<std::string, int64_t> parse_bindings(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : texts) {
    const std::string option = "--dim " + text;
    const size_t equals = text.rfind('=');  // the name may have one too
    if (equals == std::string::npos)
      throw user_error("{}: it should look like batch=4", option);
    if (equals == 0)
      throw user_error("{}: the name is missing, as in batch=4", option);
    const std::string name = text.substr(0, equals);
    const int64_t size = parse_size(option, text.substr(equals + 1));
    if (!sizes.emplace(name, size).second)
      throw user_error("{}: {} is given twice, as {} too", option, name, sizes.at(name));
  }
  return sizes;
}

}  // namespace tenon::cli
