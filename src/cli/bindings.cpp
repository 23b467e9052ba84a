#include "cli/bindings.h"

#include <charconv>

#include "base/error.h"

namespace tenon::cli {

std::pair<std::string, int64_t> parse_binding(const std::string& text) {
  const size_t equals = text.rfind('=');
  int64_t size = -1;
  if (equals != std::string::npos) {
    const auto [end, error] = std::from_chars(text.data() + equals + 1, text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size())
      size = -1;
  }
  if (equals == std::string::npos || equals == 0 || size < 0)
    throw user_error("--dim {}: it should look like batch=4", text);
  return {text.substr(0, equals), size};
}

}  // namespace tenon::cli
