#include "runtime/cuda/driver.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "runtime/cuda/cuda_library.h"

namespace tenon::runtime::cuda {
namespace {

// After these, every call of the process that uses the context fails with the same error.
constexpr std::array kContextIsLost = {
    4,    // CUDA_ERROR_DEINITIALIZED
    214,  // CUDA_ERROR_ECC_UNCORRECTABLE
    220,  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    226,  // CUDA_ERROR_CONTAINED
    700,  // CUDA_ERROR_ILLEGAL_ADDRESS
    702,  // CUDA_ERROR_LAUNCH_TIMEOUT
    709,  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    710,  // CUDA_ERROR_ASSERT
    714,  // CUDA_ERROR_HARDWARE_STACK_ERROR
    715,  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    716,  // CUDA_ERROR_MISALIGNED_ADDRESS
    717,  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    718,  // CUDA_ERROR_INVALID_PC
    719,  // CUDA_ERROR_LAUNCH_FAILED
    721,  // CUDA_ERROR_TENSOR_MEMORY_LEAK
};

// The machine, its driver, or a program that was compiled for another device.
constexpr std::array kMachineIsAtFault = {
    CUDA_ERROR_OUT_OF_MEMORY,
    46,   // CUDA_ERROR_DEVICE_UNAVAILABLE
    100,  // CUDA_ERROR_NO_DEVICE
    101,  // CUDA_ERROR_INVALID_DEVICE
    102,  // CUDA_ERROR_DEVICE_NOT_LICENSED
    209,  // CUDA_ERROR_NO_BINARY_FOR_GPU
    802,  // CUDA_ERROR_SYSTEM_NOT_READY
    803,  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    804,  // CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
    805,  // CUDA_ERROR_MPS_CONNECTION_FAILED
    806,  // CUDA_ERROR_MPS_RPC_FAILURE
    807,  // CUDA_ERROR_MPS_SERVER_NOT_READY
    808,  // CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
    809,  // CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
};

bool is_among(CUresult result, const auto& results) {
  return std::ranges::find(results, result) != results.end();
}

Driver find_functions(const SharedLibrary& cuda) {
  Driver driver;
  cuda.find("cuInit", driver.cuInit);
  cuda.find("cuGetErrorName", driver.cuGetErrorName);
  cuda.find("cuGetErrorString", driver.cuGetErrorString);
  cuda.find("cuDeviceGetCount", driver.cuDeviceGetCount);
  cuda.find("cuDeviceGet", driver.cuDeviceGet);
  cuda.find("cuDeviceGetName", driver.cuDeviceGetName);
  cuda.find("cuDeviceGetAttribute", driver.cuDeviceGetAttribute);
  cuda.find("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain);
  cuda.find("cuCtxGetCurrent", driver.cuCtxGetCurrent);
  cuda.find("cuCtxSetCurrent", driver.cuCtxSetCurrent);
  cuda.find("cuModuleLoadData", driver.cuModuleLoadData);
  cuda.find("cuModuleUnload", driver.cuModuleUnload);
  cuda.find("cuModuleGetFunction", driver.cuModuleGetFunction);
  cuda.find("cuFuncGetAttribute", driver.cuFuncGetAttribute);
  cuda.find("cuFuncSetAttribute", driver.cuFuncSetAttribute);
  cuda.find("cuOccupancyMaxActiveBlocksPerMultiprocessor",
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor);
  cuda.find("cuOccupancyMaxActiveClusters", driver.cuOccupancyMaxActiveClusters);
  cuda.find("cuLaunchKernel", driver.cuLaunchKernel);
  cuda.find("cuMemAlloc_v2", driver.cuMemAlloc);
  cuda.find("cuMemFree_v2", driver.cuMemFree);
  cuda.find("cuMemGetInfo_v2", driver.cuMemGetInfo);
  cuda.find("cuPointerGetAttributes", driver.cuPointerGetAttributes);
  cuda.find("cuMemHostAlloc", driver.cuMemHostAlloc);
  cuda.find("cuMemFreeHost", driver.cuMemFreeHost);
  cuda.find("cuMemHostGetDevicePointer_v2", driver.cuMemHostGetDevicePointer);
  cuda.find("cuMemcpyHtoDAsync_v2", driver.cuMemcpyHtoDAsync);
  cuda.find("cuMemcpyDtoHAsync_v2", driver.cuMemcpyDtoHAsync);
  cuda.find("cuMemcpyDtoDAsync_v2", driver.cuMemcpyDtoDAsync);
  cuda.find("cuMemGetAllocationGranularity", driver.cuMemGetAllocationGranularity);
  cuda.find("cuMemAddressReserve", driver.cuMemAddressReserve);
  cuda.find("cuMemAddressFree", driver.cuMemAddressFree);
  cuda.find("cuMemCreate", driver.cuMemCreate);
  cuda.find("cuMemRelease", driver.cuMemRelease);
  cuda.find("cuMemMap", driver.cuMemMap);
  cuda.find("cuMemUnmap", driver.cuMemUnmap);
  cuda.find("cuMemSetAccess", driver.cuMemSetAccess);
  cuda.find("cuMemPoolCreate", driver.cuMemPoolCreate);
  cuda.find("cuMemPoolDestroy", driver.cuMemPoolDestroy);
  cuda.find("cuMemPoolSetAttribute", driver.cuMemPoolSetAttribute);
  cuda.find("cuMemAllocFromPoolAsync", driver.cuMemAllocFromPoolAsync);
  cuda.find("cuMemFreeAsync", driver.cuMemFreeAsync);
  cuda.find("cuStreamCreate", driver.cuStreamCreate);
  cuda.find("cuStreamDestroy_v2", driver.cuStreamDestroy);
  cuda.find("cuStreamSynchronize", driver.cuStreamSynchronize);
  cuda.find("cuStreamWaitEvent", driver.cuStreamWaitEvent);
  cuda.find("cuStreamGetCtx", driver.cuStreamGetCtx);
  cuda.find("cuEventCreate", driver.cuEventCreate);
  cuda.find("cuEventDestroy_v2", driver.cuEventDestroy);
  cuda.find("cuEventRecord", driver.cuEventRecord);
  cuda.find("cuEventQuery", driver.cuEventQuery);
  cuda.find("cuEventSynchronize", driver.cuEventSynchronize);
  cuda.find("cuEventElapsedTime", driver.cuEventElapsedTime);
  cuda.find("cuGraphCreate", driver.cuGraphCreate);
  cuda.find("cuGraphDestroy", driver.cuGraphDestroy);
  cuda.find("cuGraphAddKernelNode_v2", driver.cuGraphAddKernelNode);
  cuda.find("cuGraphInstantiateWithFlags", driver.cuGraphInstantiate);
  cuda.find("cuGraphExecDestroy", driver.cuGraphExecDestroy);
  cuda.find("cuGraphExecKernelNodeSetParams_v2", driver.cuGraphExecKernelNodeSetParams);
  cuda.find("cuGraphLaunch", driver.cuGraphLaunch);
  return driver;
}

std::string describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", result);
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    return name;
  return fmt::format("{} ({})", text, name);
}

SharedLibrary open_driver() {
  try {
    return open_cuda_library({"libcuda.so.1"});
  } catch (const UserError& error) {
    throw user_error("{}\n  hint: it comes with NVIDIA's driver", error.what());
  }
}

// Of a driver that is there.
struct Loaded {
  SharedLibrary library = open_driver();
  Driver functions = find_functions(library);
  CUresult initialised = functions.cuInit(0);
};

const Loaded& loaded() {
  // It stays for good: what is freed when the process ends may still call it.
  static const Loaded& driver = *new Loaded();
  return driver;
}

}  // namespace

const Driver& driver() {
  const Loaded& driver = loaded();
  if (driver.initialised != CUDA_SUCCESS)
    throw user_error("the CUDA driver cannot be used: {}", describe(driver.functions, driver.initialised));
  return driver.functions;
}

int count_devices() {
  int count = 0;
  check_result(driver().cuDeviceGetCount(&count), "cuda", "count the devices");
  return count;
}

CUdevice find_device(int number) {
  const int count = count_devices();
  const std::string name = fmt::format("cuda:{}", number);
  if (number < 0 || number >= count)
    throw user_error("there is no {}: this machine has {}", name,
                     format_count(static_cast<uint64_t>(count), "CUDA device"));
  CUdevice device = 0;
  check_result(driver().cuDeviceGet(&device, number), name, "find the device");
  return device;
}

std::string describe_result(CUresult result) { return describe(loaded().functions, result); }

void check_result(CUresult result, std::string_view device, std::string_view doing) {
  if (result == CUDA_SUCCESS) [[likely]]
    return;
  const std::string message = fmt::format("{}: cannot {}: {}", device, doing, describe_result(result));
  if (is_among(result, kContextIsLost))
    throw DeviceError(message);
  if (is_among(result, kMachineIsAtFault))
    throw UserError(message);
  throw InternalError(message);
}

}  // namespace tenon::runtime::cuda
