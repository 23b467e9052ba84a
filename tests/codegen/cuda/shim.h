// shim.h — enough of CUDA to run emitted text on the host: included by the text, compiled by the host's
// compiler.
//
// Each thread of a block is a fibre. It runs until it meets others, at a barrier or a shuffle, or ends; then
// the first that can runs, in ascending or descending order. So what one thread leaves in shared memory for
// another is found too early or too late in one of the orders, unless there is a barrier between. The blocks
// of a cluster run at once, and share their static shared memory: they write the same into all. What a thread
// copies asynchronously comes at once, or not before it is waited for.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#define __global__ static
#define __device__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static
#define __restrict__

struct Index {
  unsigned x;
};
static Index threadIdx, blockIdx, gridDim;

namespace shim {

constexpr size_t kStackBytes = 64 << 10;

struct AsyncCopy {
  void* to;
  const void* from;
  int bytes, count;  // that are written, and of these read; the others are 0

  void run() const {
    memset(to, 0, bytes);
    if (count > 0)  // else it may be anywhere
      memcpy(to, from, count);
  }
};

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack = std::unique_ptr<char[]>(new char[kStackBytes]);
  enum class State { Runs, Waits, Ended } state;
  unsigned mask;  // lanes of its warp that it waits for; 0: the whole block
  unsigned long long passed[2][3];
  unsigned shuffles;
  std::vector<std::vector<AsyncCopy>> groups;  // that it has not waited for; the last one is not committed
  std::vector<std::vector<std::function<void()>>> products;  // the same, of its warpgroup
};

struct Block {
  std::vector<std::unique_ptr<Fibre>> fibres;  // kept for the next block
  unsigned threads = 0, current = 0;
  unsigned at_barrier = 0, ended = 0;              // threads
  unsigned threads_of_block = 0, first_block = 0;  // fewer than all, in a cluster
  ucontext_t scheduler;
  unsigned char* shared = nullptr;  // dynamic, of the first block
  size_t shared_bytes = 0;          // of each
  bool copies_late = false;
  unsigned waiting = 0;   // threads that have gone on from a barrier that others will go on from
  bool is_stuck = false;  // some such barrier does not let anybody go on
  void (*entry)(void*) = nullptr;
  void* arguments = nullptr;

  Fibre& fibre(unsigned thread) { return *fibres[thread]; }
  Fibre& here() { return fibre(current); }

  void wait(unsigned mask) {
    here().state = Fibre::State::Waits;
    here().mask = mask;
    at_barrier += mask == 0 ? 1 : 0;
    swapcontext(&here().context, &scheduler);
  }

  bool concerns(unsigned thread, unsigned other) {
    const unsigned mask = fibre(thread).mask;
    return mask == 0 || (mask >> other % 32 & 1) != 0;
  }
  // Where the threads are that it may wait for: its warp, or all.
  unsigned first_of(unsigned thread) { return fibre(thread).mask == 0 ? 0 : thread / 32 * 32; }
  unsigned end_of(unsigned thread) {
    return fibre(thread).mask == 0 ? threads : std::min(threads, thread / 32 * 32 + 32);
  }
  // Whether all that the thread waits for wait for it, but for those that have ended.
  bool meets(unsigned thread) {
    if (fibre(thread).mask == 0)
      return at_barrier + ended == threads;
    for (unsigned other = first_of(thread), end = end_of(thread); other < end; ++other)
      if (const Fibre& each = fibre(other);
          concerns(thread, other) && each.state != Fibre::State::Ended &&
          !(each.state == Fibre::State::Waits && each.mask == fibre(thread).mask))
        return false;
    return true;
  }
  void release(unsigned thread) {
    at_barrier = fibre(thread).mask == 0 ? 0 : at_barrier;
    for (unsigned other = first_of(thread), end = end_of(thread); other < end; ++other)
      if (concerns(thread, other) && fibre(other).state == Fibre::State::Waits)
        fibre(other).state = Fibre::State::Runs;
  }

  void run_fibre(unsigned thread) {
    current = thread;
    threadIdx.x = thread % threads_of_block;
    blockIdx.x = first_block + thread / threads_of_block;
    swapcontext(&scheduler, &here().context);
  }
  // False where threads wait for each other forever.
  bool run(bool descending);
};
inline Block block;

inline void enter() {
  block.entry(block.arguments);
  block.here().state = Fibre::State::Ended;
  ++block.ended;
  swapcontext(&block.here().context, &block.scheduler);
}

inline bool Block::run(bool descending) {
  while (fibres.size() < threads)
    fibres.push_back(std::make_unique<Fibre>());
  for (unsigned i = 0; i < threads; ++i) {
    Fibre& each = fibre(i);
    getcontext(&each.context);
    each.context.uc_stack.ss_sp = each.stack.get();
    each.context.uc_stack.ss_size = kStackBytes;
    makecontext(&each.context, enter, 0);
    each.state = Fibre::State::Runs;
    each.shuffles = 0;
    each.groups.assign(1, {});
    each.products.clear();
  }
  at_barrier = ended = waiting = 0;
  is_stuck = false;
  // The first that can run, so that a warp gets as far ahead of others as barriers let it.
  for (unsigned i = 0; i < threads;) {
    const unsigned thread = descending ? threads - 1 - i : i;
    if (fibre(thread).state == Fibre::State::Waits && meets(thread)) {
      release(thread);
      i = 0;
    } else if (fibre(thread).state == Fibre::State::Runs) {
      run_fibre(thread);
      if (fibre(thread).state == Fibre::State::Ended)
        i = 0;  // nobody waits for it any more
    } else {
      ++i;
    }
  }
  for (unsigned i = 0; i < threads; ++i)
    if (fibre(i).state != Fibre::State::Ended)
      return false;
  return !is_stuck;
}

// What another lane passes: those of the mask all come here.
template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
  Fibre& here = block.here();
  const unsigned turn = here.shuffles++ % 2, warp = block.current / 32 * 32;
  memcpy(&here.passed[turn], &value, sizeof(T));
  block.wait(mask);
  T other = value;
  if (from < 32 && warp + from < block.threads)
    memcpy(&other, &block.fibre(warp + from).passed[turn], sizeof(T));
  return other;
}

}  // namespace shim

// --- asynchronous copies ---

static inline unsigned char* shared_of_block() {
  return shim::block.shared + shim::block.current / shim::block.threads_of_block * shim::block.shared_bytes;
}
static uintptr_t high_bits;  // of what was converted last; a place in shared memory has 32
static inline size_t __cvta_generic_to_shared(const void* place) {
  high_bits = (uintptr_t)place >> 32 << 32;
  return (size_t)place;
}
static inline void cp_async(unsigned place, const void* from, int bytes, int count) {
  const shim::AsyncCopy copy = {(void*)(high_bits | place), from, bytes, count};
  if ((uintptr_t)copy.to % bytes != 0 || (uintptr_t)from % bytes != 0)
    abort();
  if (shim::block.copies_late)
    shim::block.here().groups.back().push_back(copy);
  else
    copy.run();
}
static inline void cp_async_commit_group() { shim::block.here().groups.emplace_back(); }
static inline void cp_async_wait_group(unsigned later) {
  auto& groups = shim::block.here().groups;
  while (groups.size() > later + 1) {
    for (const shim::AsyncCopy& copy : groups.front())
      copy.run();
    groups.erase(groups.begin());
  }
}
static inline void cp_async_wait_all() {
  cp_async_commit_group();
  cp_async_wait_group(0);
}

static inline void __syncthreads() { shim::block.wait(0); }
static inline void __syncwarp(unsigned mask = 0xffffffff) { shim::block.wait(mask); }
template <class T>
static T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const unsigned own = threadIdx.x % 32;
  return shim::shuffle(mask, value, own / width * width + lane % width);
}
template <class T>
static T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const unsigned own = threadIdx.x % 32, from = own ^ lanes;
  return shim::shuffle(mask, value, from / width == own / width ? from : own);
}
template <class T>
static T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
  const unsigned own = threadIdx.x % 32, from = own + lanes;
  return shim::shuffle(mask, value, from / width == own / width ? from : own);
}

template <class T>
static T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
static T max(T a, T b) {
  return a < b ? b : a;
}
static inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
static inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
static inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
static inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
static inline int __float2int_rz(float value) {
  if (value != value)
    return 0;
  return value >= 2147483648.0f    ? 2147483647
         : value <= -2147483648.0f ? -2147483647 - 1
                                   : static_cast<int>(value);
}
static inline float __double2float_rz(double value) {
  const auto nearest = static_cast<float>(value);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafter(nearest, 0.0f) : nearest;
}

// --- instructions in inline assembly, by their names ---

static inline void barrier_cluster_arrive_aligned() {}
static inline void barrier_cluster_wait_aligned() { shim::block.wait(0); }
// A barrier that counts bytes: all threads of the cluster come to it, so that it is as if they met. It is one
// for all blocks, as what they write is. Threads wait forever where not all came that was expected.
struct TransactionBarrier {
  unsigned char phase;
  unsigned char arrived;
  int bytes;  // expected, and not there yet
};
static_assert(sizeof(TransactionBarrier) == 8);
static inline TransactionBarrier& barrier_at(unsigned place) {
  return *(TransactionBarrier*)(high_bits | place);
}
static inline void mbarrier_init(unsigned own) { barrier_at(own) = {}; }
static inline void mbarrier_expect(unsigned own, unsigned bytes) {
  barrier_at(own).bytes += static_cast<int>(bytes);
  ++barrier_at(own).arrived;
}
template <class T>
static void st_async(unsigned place, T value, unsigned barrier) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  *(T*)(high_bits | place) = value;
  barrier_at(barrier).bytes -= static_cast<int>(sizeof(T));
}
static inline bool mbarrier_wait(unsigned own, unsigned parity) {
  TransactionBarrier& barrier = barrier_at(own);
  shim::block.wait(0);
  const unsigned blocks = shim::block.threads / shim::block.threads_of_block;
  if (shim::block.waiting++ == 0) {  // the first that goes on
    if (barrier.bytes != 0 || barrier.arrived != blocks || barrier.phase % 2 != parity)
      shim::block.is_stuck = true;
    barrier.arrived = 0;
    ++barrier.phase;
  }
  if (shim::block.waiting == shim::block.threads)
    shim::block.waiting = 0;
  return true;
}

static inline void min_NaN_f32(float& value, float a, float b) { value = a != a || a < b ? a : b; }
static inline void max_NaN_f32(float& value, float a, float b) { value = a != a || a > b ? a : b; }
static inline void cvt_f32_f16(float& value, unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? fraction != 0 ? NAN : INFINITY
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  value = (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
static inline void cvt_rn_f16_f32(unsigned short& bits, float value) {
  const unsigned sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude != magnitude) {
    bits = 0x7fff;
    return;
  }
  int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
  if (exponent > 15) {
    bits = static_cast<unsigned short>(sign | 0x7c00);
    return;
  }
  // Rounding up may carry into the exponent, as it should.
  const auto fraction = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  bits = static_cast<unsigned short>(sign | (fraction + (static_cast<unsigned>(exponent + 14) << 10)));
}
static inline void cvt_rn_bf16_f32(unsigned short& bits, float value) {
  const unsigned all = __float_as_uint(value);
  bits = value != value ? 0x7fff : static_cast<unsigned short>((all + 0x7fff + (all >> 16 & 1)) >> 16);
}

static inline void cvt_rn_f16x2_f32(unsigned& word, float high, float low) {
  unsigned short halves[2];
  cvt_rn_f16_f32(halves[0], low);
  cvt_rn_f16_f32(halves[1], high);
  word = halves[0] | (unsigned)halves[1] << 16;
}
static inline void cvt_rn_bf16x2_f32(unsigned& word, float high, float low) {
  unsigned short halves[2];
  cvt_rn_bf16_f32(halves[0], low);
  cvt_rn_bf16_f32(halves[1], high);
  word = halves[0] | (unsigned)halves[1] << 16;
}

// --- products of matrices ---

// What all lanes of the warp pass.
template <class T>
static std::array<T, 32> exchange(const T& value) {
  std::array<T, 32> all;
  shim::Fibre& here = shim::block.here();
  const unsigned turn = here.shuffles++ % 2, warp = shim::block.current / 32 * 32;
  static_assert(sizeof(T) <= sizeof(here.passed[turn]));
  memcpy(&here.passed[turn], &value, sizeof(T));
  shim::block.wait(0xffffffff);
  for (unsigned lane = 0; lane < 32; ++lane)
    memcpy(&all[lane], &shim::block.fibre(warp + lane).passed[turn], sizeof(T));
  return all;
}
template <int count>
static void ldmatrix(unsigned (&to)[count], unsigned row, bool transposes) {
  const auto rows = exchange(row);
  const unsigned lane = threadIdx.x % 32;
  for (int matrix = 0; matrix < count; ++matrix) {
    unsigned short own[2];
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned at = lane % 4 * 2 + i, from = transposes ? at : lane / 4;
      if (rows[matrix * 8 + from] % 16 != 0)
        abort();
      own[i] = ((const unsigned short*)(high_bits | rows[matrix * 8 + from]))[transposes ? lane / 4 : at];
    }
    to[matrix] = own[0] | (unsigned)own[1] << 16;
  }
}
static inline float f32_of_bf16_bits(unsigned bits) { return __uint_as_float(bits << 16); }
static inline float f32_of_f16_bits(unsigned bits) {
  float value;
  cvt_f32_f16(value, static_cast<unsigned short>(bits));
  return value;
}
static void mma_m16n8k16(float& s0, float& s1, float& s2, float& s3, const unsigned (&a)[4], unsigned b0,
                         unsigned b1, float (*widened)(unsigned)) {
  float rows[16][16], columns[8][16];
  const auto all = exchange(std::array{a[0], a[1], a[2], a[3], b0, b1});
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 12; ++i) {
      const int part = i / 2, k = lane % 4 * 2 + i % 2;
      const float value = widened(all[lane][part] >> 16 * (i % 2) & 0xffff);
      if (part < 4)
        rows[part % 2 * 8 + lane / 4][part / 2 * 8 + k] = value;
      else
        columns[lane / 4][(part - 4) * 8 + k] = value;
    }
  const int lane = threadIdx.x % 32;
  float* const sums[] = {&s0, &s1, &s2, &s3};
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k)
      *sums[i] += rows[lane / 4 + i / 2 * 8][k] * columns[lane % 4 * 2 + i % 2][k];
}

// An element of a matrix in shared memory as its descriptor says: 8 rows of 128 bytes that are swizzled are
// 1024 bytes, and panels of 64 columns so many apart where k comes first. Row is along m or n.
static unsigned short element_of(unsigned long long matrix, bool has_k_first, int row, int k) {
  const uintptr_t base = (uintptr_t)shared_of_block();
  const auto field = [&](int bit) { return (uintptr_t)(matrix >> bit & 0x3fff) << 4; };
  uintptr_t at = base + ((field(0) - base) & 0x3ffff);
  if (matrix >> 62 != 1)
    abort();
  at += has_k_first ? row / 64 * field(16) + row % 64 * 2 + k / 8 * field(32) + k % 8 * 128
                    : row / 8 * field(32) + row % 8 * 128 + k * 2;
  return *(const unsigned short*)(at ^ (at >> 7 & 7) << 4);
}
// The products come when they are waited for: of rows, for each half and k.
template <int count, class F>
static void wgmma_later(float (&s)[count], unsigned long long b, bool b_has_k_first,
                        float (*widened)(unsigned), F&& element_of_row) {
  const int thread = threadIdx.x % 128;
  float* const sums = s;
  auto& products = shim::block.here().products;
  if (products.empty())
    products.emplace_back();
  products.back().push_back([=] {
    float rows[2][16], column[16];
    for (int k = 0; k < 16; ++k)
      for (int half = 0; half < 2; ++half)
        rows[half][k] = widened(element_of_row(half, k));
    for (int i = 0; i < count; i += i % 2 == 0 ? 1 : 3) {
      for (int k = 0; k < 16; ++k)
        column[k] = widened(element_of(b, b_has_k_first, i / 4 * 8 + thread % 4 * 2 + i % 2, k));
      for (int half = 0; half < 2; ++half)
        for (int k = 0; k < 16; ++k)
          sums[i + half * 2] += rows[half][k] * column[k];
    }
  });
}
template <int count>
static void wgmma(float (&s)[count], unsigned long long a, unsigned long long b, bool a_has_k_first,
                  bool b_has_k_first, float (*widened)(unsigned)) {
  const int thread = threadIdx.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
  wgmma_later(s, b, b_has_k_first, widened,
              [=](int half, int k) { return element_of(a, a_has_k_first, row + half * 8, k); });
}
// Fragments are those of the time when it begins: of k, each lane of a quad has two elements in each half.
template <int count>
static void wgmma(float (&s)[count], const std::array<unsigned, 4>& a, unsigned long long b,
                  bool b_has_k_first, float (*widened)(unsigned)) {
  const auto all = exchange(std::array{a[0], a[1], a[2], a[3]});
  const unsigned quad = threadIdx.x % 32 / 4 * 4;
  wgmma_later(s, b, b_has_k_first, widened, [=](int half, int k) {
    return all[quad + k % 8 / 2][k / 8 * 2 + half] >> 16 * (k % 2) & 0xffff;
  });
}
static void wgmma_commit_group() { shim::block.here().products.emplace_back(); }
// All groups but the last ones.
static void wgmma_wait_group(size_t later) {
  auto& groups = shim::block.here().products;
  while (groups.size() > later + 1) {
    for (const auto& product : groups.front())
      product();
    groups.erase(groups.begin());
  }
}

// Runs the clusters of a launch one after the other, each with nothing in its shared memory. False where
// threads of one wait forever.
extern "C" inline __attribute__((used)) bool shim_launch(void (*entry)(void*), void* arguments,
                                                         long long clusters, unsigned blocks,
                                                         unsigned threads, void* shared, size_t shared_bytes,
                                                         bool descending, bool copies_late) {
  shim::block.shared = (unsigned char*)shared;
  shim::block.shared_bytes = shared_bytes;
  shim::block.copies_late = copies_late;
  gridDim.x = static_cast<unsigned>(clusters) * blocks;
  shim::block.entry = entry;
  shim::block.arguments = arguments;
  shim::block.threads = blocks * threads;
  shim::block.threads_of_block = threads;
  for (long long i = 0; i < clusters; ++i) {
    shim::block.first_block = blocks * static_cast<unsigned>(descending ? clusters - 1 - i : i);
    memset(shared, 0xab, shared_bytes * blocks);
    if (!shim::block.run(descending))
      return false;
  }
  return true;
}
