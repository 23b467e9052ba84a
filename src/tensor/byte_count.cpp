#include "tensor/byte_count.h"

namespace tenon {

int64_t byte_count(DType dtype, const Extents& extents) {
  const int64_t count = element_count(extents), each = info(dtype).bytes;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes))
    throw user_error("{} needs {} bytes for each of {} elements, but this machine has {} bytes of memory",
                     describe(dtype, extents), each, count, memory_limit());
  return bytes;
}

}  // namespace tenon
