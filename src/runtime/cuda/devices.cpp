#include "runtime/cuda/devices.h"

#include <array>
#include <cmath>

#include "runtime/cuda/driver.h"

namespace tenon::runtime {
namespace {

using cuda::driver;

// Memory sends two bits a clock and wire.
double bytes_per_nanosecond(double kilohertz, double wires) { return 2 * kilohertz * 1e3 * wires / 8 * 1e-9; }

}  // namespace

Gpu gpu_numbered(int number) {
  const std::string name = fmt::format("cuda:{}", number);
  const auto check = [&](cuda::CUresult result) { cuda::check_result(result, name, "tell what it is"); };
  const cuda::CUdevice device = cuda::find_device(number);
  const auto attribute = [&](cuda::CUdevice_attribute which) {
    int value = 0;
    check(driver().cuDeviceGetAttribute(&value, which, device));
    return value;
  };
  std::array<char, 256> model = {};
  check(driver().cuDeviceGetName(model.data(), static_cast<int>(model.size()), device));
  return {
      .name = model.data(),
      .architecture = 10 * attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                      attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
      .multiprocessors = attribute(cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      .threads_per_multiprocessor = attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
      .registers_per_multiprocessor = attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
      .shared_bytes_per_block = attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
      .shared_bytes_per_multiprocessor =
          attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
      .level2_bytes = attribute(cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
      .bytes_per_nanosecond =
          std::round(bytes_per_nanosecond(attribute(cuda::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
                                          attribute(cuda::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH))),
      .cycles_per_nanosecond = attribute(cuda::CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e-6,
  };
}

std::vector<Gpu> list_gpus() {
  std::vector<Gpu> gpus;
  const int count = cuda::count_devices();
  if (count == 0)
    throw user_error("the CUDA driver finds no device");
  for (int i = 0; i < count; ++i)
    gpus.push_back(gpu_numbered(i));
  return gpus;
}

}  // namespace tenon::runtime
