#include "tensor/packing.h"

#include <bit>
#include <cstring>

namespace tenon {

static_assert(std::endian::native == std::endian::little, "files are read as they stand in memory");

uint64_t packed_size(DType dtype, int64_t count) {
  CHECK(dtype != DType::String, "strings have no packed size");
  const auto bits = static_cast<uint64_t>(info(dtype).bits);
  const auto elements = static_cast<uint64_t>(count);
  if (bits >= 8) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(elements, bits / 8, &size))
      throw user_error("{} elements of {} take more bytes than can be counted", count, dtype);
    return size;
  }
  const uint64_t per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
}

Tensor unpack(DType dtype, const Extents& extents, std::span<const std::byte> bytes) {
  Tensor t(dtype, extents);
  CHECK(bytes.size() == packed_size(dtype, t.count()), "{} from {} bytes", describe(dtype, extents),
        bytes.size());
  const std::span<std::byte> target = t.mutable_bytes();
  const auto bits = static_cast<unsigned>(info(dtype).bits);
  if (bits < 8) {
    const size_t per_byte = 8 / bits;
    for (size_t i = 0; i < target.size(); ++i) {
      const auto code = std::to_integer<unsigned>(bytes[i / per_byte]) >> (i % per_byte * bits);
      const unsigned raised = code << (8 - bits) & 0xff;  // and down again: the sign of i4 fills its byte
      target[i] = is_signed(dtype) ? static_cast<std::byte>(static_cast<int8_t>(raised) >> (8 - bits))
                                   : static_cast<std::byte>(raised >> (8 - bits));
    }
  } else if (dtype == DType::Bool) {
    for (size_t i = 0; i < target.size(); ++i)
      target[i] = std::byte{bytes[i] != std::byte{0}};
  } else if (!bytes.empty()) {
    std::memcpy(target.data(), bytes.data(), bytes.size());
  }
  return t;
}

std::vector<std::byte> pack(const Tensor& t) {
  const std::span<const std::byte> source = t.bytes();
  const auto bits = static_cast<unsigned>(info(t.dtype()).bits);
  if (bits >= 8)
    return {source.begin(), source.end()};
  const size_t per_byte = 8 / bits;
  std::vector<std::byte> packed(packed_size(t.dtype(), t.count()));
  for (size_t i = 0; i < source.size(); ++i) {
    const unsigned code = std::to_integer<unsigned>(source[i]) & ((1u << bits) - 1);
    packed[i / per_byte] |= static_cast<std::byte>(code << (i % per_byte * bits));
  }
  return packed;
}

}  // namespace tenon
