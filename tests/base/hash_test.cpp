#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tenon {
namespace {

TEST(Hash, EveryBitOfEveryByteCounts) {
  // Lengths around the eight-byte step: words, tails, and both.
  for (const size_t length : {1u, 7u, 8u, 9u, 16u, 19u}) {
    std::string text(length, 'a');
    std::set<uint64_t> seen{hash_string(text)};
    for (size_t i = 0; i < length; ++i)
      for (int bit = 0; bit < 8; ++bit) {
        std::string changed = text;
        changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
        EXPECT_TRUE(seen.insert(hash_string(changed)).second) << length << " " << i << " " << bit;
      }
  }
}

TEST(Hash, TheLengthCounts) {
  std::set<uint64_t> seen;
  for (size_t length = 0; length < 40; ++length)
    EXPECT_TRUE(seen.insert(hash_string(std::string(length, '\0'))).second) << length;
}

TEST(Hash, DoesNotDependOnAlignment) {
  const std::string text = "0123456789abcdef0123";
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, 'x') + text;
    EXPECT_EQ(hash_string(std::string_view(moved).substr(shift)), hash_string(text)) << shift;
  }
}

TEST(Hash, OfNothingIsDefined) {
  EXPECT_EQ(hash_bytes({}), hash_string(""));
  EXPECT_NE(hash_bytes({}), 0u);
}

TEST(HashCombine, KnowsOrderAndZero) {
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_NE(hash_combine(hash_combine(5, 0), 0), hash_combine(5, 0));
}

}  // namespace
}  // namespace tenon
