// hash.h — one way to hash: words of 64 bits, each multiplied in and folded, then a mixer; and a way to
// combine hashes in order.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tenon {

inline uint64_t mix(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  return h ^ (h >> 33);
}

inline uint64_t hash_combine(uint64_t seed, uint64_t value) {
  return mix(seed * 0x9e3779b97f4a7c15ULL + value + 0x7f4a7c15);
}

// Eight bytes at a time, so that hashing weights runs at memory speed.
inline uint64_t hash_bytes(std::span<const std::byte> bytes) {
  uint64_t h = 0xcbf29ce484222325ULL ^ bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    h = (h ^ word) * 0x9fb21c651e98df25ULL;
    h ^= h >> 32;
  }
  for (; i < bytes.size(); ++i)
    h = (h ^ static_cast<uint64_t>(bytes[i])) * 0x100000001b3ULL;
  return mix(h);
}

inline uint64_t hash_string(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text))); }

}  // namespace tenon
