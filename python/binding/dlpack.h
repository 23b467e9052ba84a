// dlpack.h — the structs of DLPack 1.3, by which Python's libraries show each other their tensors.
//
// A library's tensor type may carry a table of functions, __dlpack_c_exchange_api__, that do this without a
// call of Python's.
#pragma once

#include <cstdint>

namespace tenon::python {

struct DLVersion {
  uint32_t major, minor;
};

enum : int32_t { kDLCpu = 1, kDLCuda = 2, kDLCudaHost = 3, kDLCudaManaged = 13 };

struct DLDevice {
  int32_t type, index;
};

enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8E4M3Fn = 10,
  kDLFloat8E4M3Fnuz = 11,
  kDLFloat8E5M2 = 12,
  kDLFloat8E5M2Fnuz = 13,
  kDLFloat8E8M0 = 14,
  kDLFloat4E2M1 = 17,
};

struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t* sizes;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  DLVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;  // 1: read-only; 2: copied; 4: elements narrower than a byte take one each
  DLTensor tensor;
};

constexpr uint64_t kDLReadOnly = 1, kDLPadded = 4;

struct DLExchangeHeader {
  DLVersion version;
  DLExchangeHeader* previous;
};

// All return 0, or -1 with a Python error set; the allocator calls `set_error` instead.
struct DLExchange {
  DLExchangeHeader header;
  int (*allocate)(DLTensor* prototype, DLManagedTensorVersioned** made, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, DLManagedTensorVersioned** made);
  int (*object_from_managed)(DLManagedTensorVersioned* tensor, void** object);
  int (*borrow_from_object)(void* object, DLTensor* tensor);
  int (*current_stream)(int32_t device_type, int32_t device, void** stream);
};

}  // namespace tenon::python
