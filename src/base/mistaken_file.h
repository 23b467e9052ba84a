// mistaken_file.h — what people take for another kind of file by mistake, told by how it starts.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tenon {

// For the end of an error about a file that could not be read: "\n  hint: this is …". Empty where nothing is
// known of it.
std::string_view hint_at_content(std::span<const std::byte> bytes);

// Whether it starts like text: no byte of it would move a terminal's cursor but for tabs and line ends.
bool looks_like_text(std::span<const std::byte> bytes);

}  // namespace tenon
