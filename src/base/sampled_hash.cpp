#include "base/sampled_hash.h"

#include "base/hash.h"

namespace tenon {

uint64_t sampled_hash(std::span<const std::byte> bytes) {
  constexpr size_t kBlocks = 16, kBlockSize = 256;
  if (bytes.size() <= kBlocks * kBlockSize)
    return hash_bytes(bytes);
  uint64_t hash = bytes.size();
  const size_t step = (bytes.size() - kBlockSize) / (kBlocks - 1);
  for (size_t i = 0; i + 1 < kBlocks; ++i)
    hash = hash_combine(hash, hash_bytes(bytes.subspan(i * step, kBlockSize)));
  return hash_combine(hash, hash_bytes(bytes.last(kBlockSize)));
}

}  // namespace tenon
