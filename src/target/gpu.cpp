#include "target/gpu.h"

#include <fmt/ranges.h>

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
       .bytes_per_nanosecond = 2039},
      {.name = "sm_89",  // as L40S
       .architecture = 89,
       .multiprocessors = 142,
       .threads_per_multiprocessor = 1536,
       .registers_per_multiprocessor = 65536,
       .shared_bytes_per_block = 99 << 10,
       .shared_bytes_per_multiprocessor = 100 << 10,
       .level2_bytes = 96 << 20,
       .bytes_per_nanosecond = 864},
      {.name = "sm_90",  // as H200
       .architecture = 90,
       .multiprocessors = 132,
       .threads_per_multiprocessor = 2048,
       .registers_per_multiprocessor = 65536,
       .shared_bytes_per_block = 227 << 10,
       .shared_bytes_per_multiprocessor = 228 << 10,
       .level2_bytes = 50 << 20,
       .bytes_per_nanosecond = 4800},
  };
  return gpus;
}

}  // namespace

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
