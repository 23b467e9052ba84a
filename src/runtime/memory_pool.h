// memory_pool.h — reuses memory of tensors of dynamic size: fresh pages from the system take longer to fault
// in than to fill.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace tenon::runtime {

class MemoryPool {
 public:
  // Less than this comes from the heap as quickly.
  static constexpr int64_t kLeastBytes = 1 << 16;

  // A tensor to write to, which may hold anything: in the smallest free memory that is large enough, or in
  // new memory. It is free again once nothing shares its elements.
  Tensor take(DType dtype, const Extents& extents);

  // Gives back what was not taken since this was called last, so that sizes that change from run to run leave
  // nothing behind.
  void give_back_unused();

  int64_t bytes() const;

 private:
  struct Block {
    std::shared_ptr<const Tensor> memory;
    bool was_taken = true;
  };
  std::vector<Block> blocks_;
};

}  // namespace tenon::runtime
