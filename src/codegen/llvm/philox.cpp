#include "codegen/llvm/philox.h"

#include "base/philox.h"

namespace tenon::codegen {

using llvm::Value;

// Words of 32 bits are the low halves of i64, as the instructions that multiply two such to 64 bits have
// them.
Value* emit_philox(Builder& builder, loops::Function function, std::span<Value* const> key_call_element) {
  const auto low = [&](Value* word) { return builder.CreateAnd(word, uint64_t{0xffffffff}); };
  const auto high = [&](Value* word) { return builder.CreateLShr(word, 32); };
  const auto like = [&](uint64_t number) {
    return llvm::ConstantInt::get(key_call_element.front()->getType(), number);
  };
  const auto exclusive_or = [&](Value* a, Value* b, Value* c) {
    return builder.CreateXor(builder.CreateXor(a, b), c);
  };
  Value *key = key_call_element[0], *call = key_call_element[1], *element = key_call_element[2];
  std::array<Value*, 4> counter = {low(element), high(element), low(call), high(call)};
  std::array<Value*, 2> keys = {low(key), high(key)};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    Value* first = builder.CreateMul(counter[0], like(kPhiloxMultipliers[0]));
    Value* second = builder.CreateMul(counter[2], like(kPhiloxMultipliers[1]));
    counter = {exclusive_or(high(second), counter[1], keys[0]), low(second),
               exclusive_or(high(first), counter[3], keys[1]), low(first)};
    for (size_t i = 0; i < keys.size(); ++i)
      keys[i] = low(builder.CreateAdd(keys[i], like(kPhiloxKeySteps[i])));
  }
  const size_t first = function == loops::Function::Philox ? 0 : 2;
  return builder.CreateOr(counter[first], builder.CreateShl(counter[first + 1], 32));
}

}  // namespace tenon::codegen
