#include "base/mistaken_file.h"

#include <algorithm>

namespace tenon {
namespace {

constexpr size_t kStart = 256;  // bytes that are looked at

std::string_view start_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kStart)};
}

}  // namespace

bool looks_like_text(std::span<const std::byte> bytes) {
  const auto is_control = [](unsigned char c) {
    return c == 0x7F || (c < ' ' && c != '\t' && c != '\n' && c != '\r');
  };
  const std::string_view start = start_of(bytes);
  return !start.empty() && std::none_of(start.begin(), start.end(), is_control);
}

std::string_view hint_at_content(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return "\n  hint: the file is empty";
  std::string_view start = start_of(bytes);
  if (start.starts_with("version https://git-lfs"))
    return "\n  hint: this is a Git LFS pointer, not the file itself; run `git lfs pull`";
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  for (std::string_view tag : {"<html", "<HTML", "<!DOCTYPE", "<!doctype"})
    if (start.starts_with(tag))
      return "\n  hint: this is a web page, perhaps one that says why there was nothing to download";
  if (looks_like_text(bytes) && (start.starts_with("{") || start.starts_with("[")))
    return "\n  hint: this is JSON";
  return "";
}

}  // namespace tenon
