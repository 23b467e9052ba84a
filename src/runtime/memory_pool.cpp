#include "runtime/memory_pool.h"

#include <atomic>

#include "tensor/byte_count.h"

namespace tenon::runtime {

Tensor MemoryPool::take(DType dtype, const Extents& extents) {
  const int64_t bytes = byte_count(dtype, extents);
  constexpr int64_t kMostWasted = 4;  // an output that shows a part of it would hold all of it
  if (bytes < kLeastBytes)
    return {dtype, extents};
  const auto size = [](const Block& block) { return std::ssize(block.memory->bytes()); };
  Block* best = nullptr;  // the smallest of those that are free and large enough
  for (Block& block : blocks_)
    if (block.memory.use_count() == 1 && size(block) >= bytes && size(block) / kMostWasted <= bytes &&
        (best == nullptr || size(block) < size(*best)))
      best = &block;
  if (best == nullptr)
    best = &blocks_.emplace_back(std::make_shared<const Tensor>(dtype, extents));
  else  // whoever had it last, in whatever thread, is through with it
    std::atomic_thread_fence(std::memory_order_acquire);
  best->was_taken = true;
  return {dtype, extents, best->memory, best->memory->bytes().first(static_cast<size_t>(bytes))};
}

void MemoryPool::give_back_unused() {
  std::erase_if(blocks_, [](const Block& block) { return !block.was_taken; });
  for (Block& block : blocks_)
    block.was_taken = false;
}

int64_t MemoryPool::bytes() const {
  int64_t bytes = 0;
  for (const Block& block : blocks_)
    bytes += std::ssize(block.memory->bytes());
  return bytes;
}

}  // namespace tenon::runtime
