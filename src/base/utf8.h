// utf8.h — UTF-8 as RFC 3629 defines it: no overlong spellings, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

bool is_code_point(uint32_t number);

void append_utf8(std::string& text, uint32_t code_point);

// Takes the first character off `text`, which is not empty. Where its bytes are no UTF-8, nothing is taken.
std::optional<uint32_t> take_utf8(std::string_view& text);

// Below, what is no UTF-8 counts byte by byte.
size_t count_characters(std::string_view text);
// All of it where it has no more.
std::string_view first_characters(std::string_view text, size_t count);
std::string_view last_characters(std::string_view text, size_t count);

}  // namespace tenon
