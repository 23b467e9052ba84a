#include "base/utf8.h"

#include "base/error.h"

namespace tenon {
namespace {

void skip_character(std::string_view& text) {
  if (!take_utf8(text))
    text.remove_prefix(1);
}

}  // namespace

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

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count)
    skip_character(text);
  return count;
}

std::string_view first_characters(std::string_view text, size_t count) {
  std::string_view rest = text;
  for (; count > 0 && !rest.empty(); --count)
    skip_character(rest);
  return text.substr(0, text.size() - rest.size());
}

std::string_view last_characters(std::string_view text, size_t count) {
  const size_t all = count_characters(text);
  return all <= count ? text : text.substr(first_characters(text, all - count).size());
}

}  // namespace tenon
