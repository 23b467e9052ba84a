#include "base/utf8.h"

#include "base/error.h"

namespace tenon {

bool is_code_point(uint32_t number) { return number < 0xd800 || (number >= 0xe000 && number <= 0x10ffff); }

void append_utf8(std::string& text, uint32_t code_point) {
  CHECK(is_code_point(code_point), "{:#x} is no code point", code_point);
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
    return;
  }
  const int tail = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  constexpr uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(lead[tail] | code_point >> (6 * tail));
  for (int i = tail - 1; i >= 0; --i)
    text += static_cast<char>(0x80 | (code_point >> (6 * i) & 0x3f));
}

std::optional<uint32_t> take_utf8(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text.front());
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8 || text.size() < length)
    return std::nullopt;
  uint32_t code_point = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0) != 0x80)
      return std::nullopt;
    code_point = code_point << 6 | (byte & 0x3f);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code_point < smallest[length] || !is_code_point(code_point))
    return std::nullopt;
  text.remove_prefix(length);
  return code_point;
}

}  // namespace tenon
