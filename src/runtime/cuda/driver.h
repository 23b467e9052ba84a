// driver.h — the CUDA driver API: the functions of libcuda that Tenon calls, loaded when they are first
// needed. Types and functions are named as in NVIDIA's cuda.h, which is not needed to build this; a function
// is the version of it that cuda.h of CUDA 12 and 13 stands for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon::runtime::cuda {

using CUresult = int;  // an enum there
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
inline const CUstream CU_STREAM_PER_THREAD = reinterpret_cast<CUstream>(2);
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUmemGenericAllocationHandle = unsigned long long;

constexpr CUresult CUDA_SUCCESS = 0;
constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
constexpr CUresult CUDA_ERROR_INVALID_HANDLE = 400;
constexpr CUresult CUDA_ERROR_NOT_READY = 600;

constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
constexpr int CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2;
constexpr int CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;
constexpr unsigned CU_MEMORYTYPE_DEVICE = 2;
constexpr unsigned CU_MEMORYTYPE_UNIFIED = 4;
constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
constexpr unsigned CU_MEMHOSTALLOC_DEVICEMAP = 2;
constexpr int CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1;
constexpr int CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3;
constexpr int CU_FUNC_ATTRIBUTE_NUM_REGS = 4;
constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
constexpr int CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14;

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // in kHz
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,        // in kHz
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,  // in bits
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

constexpr int CU_MEM_LOCATION_TYPE_DEVICE = 1;
constexpr int CU_MEM_ALLOCATION_TYPE_PINNED = 1;
constexpr int CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1;
constexpr int CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3;
constexpr int CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;

struct CUmemLocation {
  int type;
  int id;  // of the device
};

struct CUmemAllocationProp {
  int type;
  int requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  unsigned char allocFlags[8];
};

struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};

struct CUmemPoolProps {
  int allocType;
  int handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  unsigned char others[64];
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  void* kern;     // in place of func
  CUcontext ctx;  // of kern
};

constexpr int CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4;

struct CUlaunchAttribute {
  int id;
  struct alignas(8) Value {
    struct {
      unsigned x, y, z;
    } clusterDim;
    unsigned char others[52];
  } value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuGetErrorName)(CUresult, const char** name);
  CUresult (*cuGetErrorString)(CUresult, const char** text);

  CUresult (*cuDeviceGetCount)(int* count);
  CUresult (*cuDeviceGet)(CUdevice*, int number);
  CUresult (*cuDeviceGetName)(char* name, int bytes, CUdevice);
  CUresult (*cuDeviceGetAttribute)(int* value, CUdevice_attribute, CUdevice);

  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*cuCtxGetCurrent)(CUcontext*);
  CUresult (*cuCtxSetCurrent)(CUcontext);

  CUresult (*cuModuleLoadData)(CUmodule*, const void* image);
  CUresult (*cuModuleUnload)(CUmodule);
  CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char* name);
  CUresult (*cuFuncGetAttribute)(int* value, int attribute, CUfunction);
  CUresult (*cuFuncSetAttribute)(CUfunction, int attribute, int value);
  CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CUfunction, int threads,
                                                          size_t shared_bytes);
  CUresult (*cuOccupancyMaxActiveClusters)(int* clusters, CUfunction, const CUlaunchConfig*);
  CUresult (*cuLaunchKernel)(CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream,
                             void** parameters, void** extra);

  CUresult (*cuMemAlloc)(CUdeviceptr*, size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr);
  CUresult (*cuMemGetInfo)(size_t* free, size_t* total);
  CUresult (*cuPointerGetAttributes)(unsigned count, const int* attributes, void** values, CUdeviceptr);
  CUresult (*cuMemHostAlloc)(void**, size_t bytes, unsigned flags);
  CUresult (*cuMemFreeHost)(void*);
  CUresult (*cuMemHostGetDevicePointer)(CUdeviceptr*, void* host, unsigned flags);
  CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, size_t bytes, CUstream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, size_t bytes, CUstream);
  CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream);

  CUresult (*cuMemGetAllocationGranularity)(size_t*, const CUmemAllocationProp*, int option);
  CUresult (*cuMemAddressReserve)(CUdeviceptr*, size_t bytes, size_t alignment, CUdeviceptr,
                                  unsigned long long flags);
  CUresult (*cuMemAddressFree)(CUdeviceptr, size_t bytes);
  CUresult (*cuMemCreate)(CUmemGenericAllocationHandle*, size_t bytes, const CUmemAllocationProp*,
                          unsigned long long flags);
  CUresult (*cuMemRelease)(CUmemGenericAllocationHandle);
  CUresult (*cuMemMap)(CUdeviceptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle,
                       unsigned long long flags);
  CUresult (*cuMemUnmap)(CUdeviceptr, size_t bytes);
  CUresult (*cuMemSetAccess)(CUdeviceptr, size_t bytes, const CUmemAccessDesc*, size_t count);

  CUresult (*cuMemPoolCreate)(CUmemoryPool*, const CUmemPoolProps*);
  CUresult (*cuMemPoolDestroy)(CUmemoryPool);
  CUresult (*cuMemPoolSetAttribute)(CUmemoryPool, int attribute, void* value);
  CUresult (*cuMemAllocFromPoolAsync)(CUdeviceptr*, size_t bytes, CUmemoryPool, CUstream);
  CUresult (*cuMemFreeAsync)(CUdeviceptr, CUstream);

  CUresult (*cuStreamCreate)(CUstream*, unsigned flags);
  CUresult (*cuStreamDestroy)(CUstream);
  CUresult (*cuStreamSynchronize)(CUstream);
  CUresult (*cuStreamWaitEvent)(CUstream, CUevent, unsigned flags);
  CUresult (*cuStreamGetCtx)(CUstream, CUcontext*);
  CUresult (*cuEventCreate)(CUevent*, unsigned flags);
  CUresult (*cuEventDestroy)(CUevent);
  CUresult (*cuEventRecord)(CUevent, CUstream);
  CUresult (*cuEventQuery)(CUevent);
  CUresult (*cuEventSynchronize)(CUevent);
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent from, CUevent to);

  CUresult (*cuGraphCreate)(CUgraph*, unsigned flags);
  CUresult (*cuGraphDestroy)(CUgraph);
  CUresult (*cuGraphAddKernelNode)(CUgraphNode*, CUgraph, const CUgraphNode* after, size_t count,
                                   const CUDA_KERNEL_NODE_PARAMS*);
  CUresult (*cuGraphInstantiate)(CUgraphExec*, CUgraph, unsigned long long flags);
  CUresult (*cuGraphExecDestroy)(CUgraphExec);
  CUresult (*cuGraphExecKernelNodeSetParams)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*);
  CUresult (*cuGraphLaunch)(CUgraphExec, CUstream);
};

// Loaded and initialised on first use. That there is no driver, or none that works, is a user_error.
const Driver& driver();

int count_devices();
// The device that CUDA gives this number; a user_error where there is none.
CUdevice find_device(int number);

// What failed on a device took with it all that this process has there, for good: a kernel that read where
// nothing is, an assertion, a device that is gone. Other devices go on.
class DeviceError : public InternalError {
 public:
  using InternalError::InternalError;
};

// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
std::string describe_result(CUresult result);

// Throws what a result other than CUDA_SUCCESS means: a DeviceError; a UserError where the machine, or what
// is asked of it, is at fault; an InternalError. `device` is "cuda:0", and `doing` goes on after "cannot".
void check_result(CUresult result, std::string_view device, std::string_view doing);

}  // namespace tenon::runtime::cuda
