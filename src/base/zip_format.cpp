#include "base/zip_format.h"

#include <zlib.h>

#include <algorithm>

namespace tenon::zip_format {

// In pieces that zlib's 32 bits can count.
uint32_t checksum(std::span<const std::byte> bytes, uint32_t so_far) {
  constexpr size_t piece = size_t{1} << 30;
  uLong sum = so_far;
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), piece);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
    bytes = bytes.subspan(count);
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace tenon::zip_format
