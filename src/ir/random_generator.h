// random_generator.h — what the random ops of a run draw from. Each call of an op takes a number, and each of
// its elements is drawn by seed, call number and index alone (base/philox.h), in any order.
#pragma once

#include <cstdint>

namespace tenon {

// One call of a random op.
struct RandomCall {
  uint64_t key = 0;  // the seed
  uint64_t number = 0;
};

class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed = 0) : next_{seed, 1} {}

  // Call number 0 is that of ops which have the seed as their own.
  RandomCall take_call() {
    const RandomCall call = next_;
    ++next_.number;
    return call;
  }

 private:
  RandomCall next_;
};

}  // namespace tenon
