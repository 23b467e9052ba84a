// gpu.h — a GPU that kernels are generated for: what its code may use, and what it is arranged for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Gpu {
  std::string name;      // as its driver calls it, "NVIDIA H200"; of one that is not here, its architecture
  int architecture = 0;  // compute capability 9.0 is 90
  int multiprocessors = 0;  // that run thread blocks
  int64_t threads_per_multiprocessor = 0;
  int64_t registers_per_multiprocessor = 0;  // of 32 bits
  int64_t shared_bytes_per_block = 0;        // the most that a kernel may ask for
  int64_t shared_bytes_per_multiprocessor = 0;
  int64_t level2_bytes = 0;
  double bytes_per_nanosecond = 0;   // from its memory
  double cycles_per_nanosecond = 0;  // of its multiprocessors, at most

  bool operator==(const Gpu&) const = default;
};

constexpr int kWarpThreads = 32;
constexpr int64_t kMostThreads = 1024;  // of a thread block

// Multiplications and additions of f32 in a second, at most.
double peak_flops(const Gpu& gpu);

// Multiply-adds that a multiprocessor starts in a cycle: of f32, and of matrices of 16-bit elements. 0 of
// those where there are no instructions for bf16.
int64_t multiply_adds_per_cycle(const Gpu& gpu);
int64_t tensor_multiply_adds_per_cycle(const Gpu& gpu);

// Thread blocks that a multiprocessor runs at once. `registers` are those of a thread; 0 where that is not
// known.
int64_t blocks_per_multiprocessor(const Gpu& gpu, int64_t threads, int64_t shared_bytes,
                                  int64_t registers = 0);

// All of it in one line, as of a Target.
std::string describe(const Gpu& gpu);

// A typical GPU of an architecture by name, "sm_90", the same on every host. A name that is not there is a
// user_error that lists those that are.
Gpu gpu_named(std::string_view name);
std::vector<std::string_view> gpu_names();

}  // namespace tenon
