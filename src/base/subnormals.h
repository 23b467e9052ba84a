// subnormals.h — floats too small to have a leading 1, in which most processors compute a hundred times as
// slowly as in others.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tenon {

// While this lives, this thread takes them for 0, as operands and as results of f32 and f64. Those of
// f16, which are not that small, stay as they are.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(mode()) { set_mode(before_ | kFlush); }
  ~FlushSubnormals() { set_mode(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 1U << 15 | 1U << 6;  // results, and operands
  static uint64_t mode() { return _mm_getcsr(); }
  static void set_mode(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = 1U << 24;  // both
  static uint64_t mode() {
    uint64_t mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set_mode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t mode() { return 0; }
  static void set_mode(uint64_t) {}
#endif

  uint64_t before_;
};

}  // namespace tenon
