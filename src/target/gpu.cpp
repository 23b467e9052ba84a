#include "target/gpu.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace tenon {
namespace {

const std::vector<Gpu>& named_gpus() {
  static const std::vector<Gpu> gpus = {
      {.name = "sm_80",  // as A100
       .architecture = 80,
       .multiprocessors = 108,
       .threads_per_multiprocessor = 2048,
       .registers_per_multiprocessor = 65536,
       .shared_bytes_per_block = 163 << 10,
       .shared_bytes_per_multiprocessor = 164 << 10,
       .level2_bytes = 40 << 20,
       .bytes_per_nanosecond = 2039,
       .cycles_per_nanosecond = 1.41},
      {.name = "sm_89",  // as L40S
       .architecture = 89,
       .multiprocessors = 142,
       .threads_per_multiprocessor = 1536,
       .registers_per_multiprocessor = 65536,
       .shared_bytes_per_block = 99 << 10,
       .shared_bytes_per_multiprocessor = 100 << 10,
       .level2_bytes = 96 << 20,
       .bytes_per_nanosecond = 864,
       .cycles_per_nanosecond = 2.52},
      {.name = "sm_90",  // as H200
       .architecture = 90,
       .multiprocessors = 132,
       .threads_per_multiprocessor = 2048,
       .registers_per_multiprocessor = 65536,
       .shared_bytes_per_block = 227 << 10,
       .shared_bytes_per_multiprocessor = 228 << 10,
       .level2_bytes = 50 << 20,
       .bytes_per_nanosecond = 4800,
       .cycles_per_nanosecond = 1.98},
  };
  return gpus;
}

constexpr int64_t kMostBlocks = 32;        // of a multiprocessor
constexpr int64_t kReservedBytes = 1024;   // of shared memory, by the driver for each block
constexpr int64_t kRegistersAtOnce = 256;  // are given to a warp

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

// "Arithmetic Instructions" in NVIDIA's CUDA C++ Programming Guide.
int64_t multiply_adds_per_cycle(const Gpu& gpu) {
  const bool is_half = gpu.architecture == 60 || (gpu.architecture >= 70 && gpu.architecture <= 80);
  return is_half ? 64 : 128;
}

// By the data sheets, for sums in f32.
int64_t tensor_multiply_adds_per_cycle(const Gpu& gpu) {
  if (gpu.architecture < 80)
    return 0;
  return gpu.architecture == 80 ? 1024 : gpu.architecture < 90 ? 512 : 2048;
}

double peak_flops(const Gpu& gpu) {
  return 2e9 * static_cast<double>(gpu.multiprocessors * multiply_adds_per_cycle(gpu)) *
         gpu.cycles_per_nanosecond;
}

int64_t blocks_per_multiprocessor(const Gpu& gpu, int64_t threads, int64_t shared_bytes, int64_t registers) {
  if (shared_bytes > gpu.shared_bytes_per_block)
    return 0;
  const int64_t warps = round_up(threads, kWarpThreads) / kWarpThreads;
  int64_t blocks = std::min(kMostBlocks, gpu.threads_per_multiprocessor / (warps * kWarpThreads));
  blocks = std::min(blocks, gpu.shared_bytes_per_multiprocessor / (shared_bytes + kReservedBytes));
  if (registers > 0)
    blocks = std::min(blocks, gpu.registers_per_multiprocessor /
                                  (warps * round_up(registers * kWarpThreads, kRegistersAtOnce)));
  return blocks;
}

std::string describe(const Gpu& gpu) {
  return fmt::format(
      "{} (sm_{}), {} multiprocessors of {} threads, {} registers and {} KiB of shared memory, "
      "{} KiB for a block, second-level cache of {} KiB, {} GB/s",
      gpu.name, gpu.architecture, gpu.multiprocessors, gpu.threads_per_multiprocessor,
      gpu.registers_per_multiprocessor, gpu.shared_bytes_per_multiprocessor >> 10,
      gpu.shared_bytes_per_block >> 10, gpu.level2_bytes >> 10, gpu.bytes_per_nanosecond);
}

std::vector<std::string_view> gpu_names() {
  std::vector<std::string_view> names;
  for (const Gpu& each : named_gpus())
    names.push_back(each.name);
  return names;
}

Gpu gpu_named(std::string_view name) {
  for (const Gpu& each : named_gpus())
    if (each.name == name)
      return each;
  throw user_error("there is no GPU '{}'; there are {}", name, fmt::join(gpu_names(), ", "));
}

}  // namespace tenon
