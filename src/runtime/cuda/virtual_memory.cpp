#include "runtime/cuda/virtual_memory.h"

#include <algorithm>

#include "runtime/cuda/resources.h"

namespace tenon::runtime::cuda {
namespace {

CUmemAllocationProp properties_of(const Context& context) {
  return {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
          .requestedHandleTypes = 0,
          .location = {CU_MEM_LOCATION_TYPE_DEVICE, context.device()},
          .win32HandleMetaData = nullptr,
          .allocFlags = {}};
}

}  // namespace

bool has_virtual_memory(const Context& context) {
  int is_supported = 0;
  context.check(driver().cuDeviceGetAttribute(
                    &is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, context.device()),
                "tell whether it has virtual memory");
  return is_supported != 0;
}

VirtualMemory::~VirtualMemory() {
  if (begin_ == 0)
    return;
  context_->free([&](const Driver& driver) {
    if (mapped_ > 0)
      driver.cuMemUnmap(begin_, static_cast<size_t>(mapped_));
    driver.cuMemAddressFree(begin_, static_cast<size_t>(range_));
  });
}

std::byte* VirtualMemory::reserve(int64_t bytes) {
  const int64_t wanted = std::max<int64_t>(bytes, 1);
  if (wanted > mapped_) {
    const CurrentContext current(*context_);
    if (begin_ == 0)
      reserve_addresses();
    if (wanted > range_)
      refuse_memory(*context_, wanted);
    map(rounded(wanted) - mapped_);
  }
  return reinterpret_cast<std::byte*>(begin_);
}

void VirtualMemory::reserve_addresses() {
  const CUmemAllocationProp properties = properties_of(*context_);
  size_t granularity = 0, free = 0, total = 0;
  context_->check(
      driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "tell in what steps memory is mapped");
  context_->check(driver().cuMemGetInfo(&free, &total), "tell how much memory it has");
  granularity_ = static_cast<int64_t>(granularity);
  range_ = rounded(static_cast<int64_t>(total));
  context_->check(driver().cuMemAddressReserve(&begin_, static_cast<size_t>(range_), 0, 0, 0),
                  "reserve addresses");
}

// Behind what is mapped.
void VirtualMemory::map(int64_t bytes) {
  const CUmemAllocationProp properties = properties_of(*context_);
  const auto size = static_cast<size_t>(bytes);
  const CUdeviceptr end = begin_ + static_cast<CUdeviceptr>(mapped_);
  CUmemGenericAllocationHandle memory = 0;
  const CUresult created = driver().cuMemCreate(&memory, size, &properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY)
    refuse_memory(*context_, mapped_ + bytes);
  context_->check(created, "allocate memory");
  const CUresult mapped = driver().cuMemMap(end, size, 0, memory, 0);
  driver().cuMemRelease(memory);  // it lives as long as it is mapped
  context_->check(mapped, "map memory");
  const CUmemAccessDesc access{.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUresult opened = driver().cuMemSetAccess(end, size, &access, 1);
  if (opened != CUDA_SUCCESS)
    driver().cuMemUnmap(end, size);
  context_->check(opened, "open memory to kernels");
  mapped_ += bytes;
}

}  // namespace tenon::runtime::cuda
