// npy_text.h — whole .npy files as text, for tests.
#pragma once

#include <string>

#include "tensor/npy_format.h"

namespace tenon {

inline Tensor parse_npy(const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  const NpyHeader header = parse_npy_header(bytes);
  check_npy_size(header, bytes.size());
  return read_npy_items(header, bytes.subspan(header.data_offset), nullptr);
}

inline std::string format_npy(const Tensor& t) {
  const NpyImage image = make_npy_image(t);
  const std::span<const std::byte> items = image.items.bytes();
  return image.header + std::string(reinterpret_cast<const char*>(items.data()), items.size());
}

}  // namespace tenon
