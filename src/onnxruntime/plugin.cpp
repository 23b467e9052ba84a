// plugin.cpp — the two functions by which ONNX Runtime loads the plug-in, and the factory of its providers.
#include <tenon/tenon.h>

#include "onnxruntime/compatibility.h"
#include "onnxruntime/provider.h"
#include "onnxruntime/status.h"
#include "ops/registry.h"

namespace tenon::onnxruntime {
namespace {

constexpr uint32_t kNoPciVendor = 0;

struct Factory : OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = kApiVersion;
    GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return "Tenon"; };
    GetVendorId = [](const OrtEpFactory*) noexcept { return kNoPciVendor; };
    GetVersion = [](const OrtEpFactory*) noexcept { return tenon_version(); };
    GetSupportedDevices = find_processors;
    CreateEp = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                  const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** made) noexcept {
      return guard([&] { *made = make_provider(Ort::ConstSessionOptions(options), Ort::Logger(logger)); });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept { free_provider(provider); };
    // ONNX Runtime's own memory serves; these are asked for all the same.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** made) noexcept -> OrtStatus* {
      *made = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** made) noexcept -> OrtStatus* {
      *made = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory*, const OrtHardwareDevice* const*, size_t,
                                                const char* description,
                                                OrtCompiledModelCompatibility* judged) noexcept {
      return guard([&] { *judged = judge_compatibility(description); });
    };
  }

  static OrtStatus* find_processors(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                    OrtEpDevice** found, size_t room, size_t* found_count) noexcept {
    *found_count = 0;
    for (size_t i = 0; i < count && *found_count < room; ++i) {
      if (Ort::GetApi().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU)
        continue;
      OrtStatus* const status =
          Ort::GetEpApi().CreateEpDevice(self, devices[i], nullptr, nullptr, &found[*found_count]);
      if (status != nullptr)
        return status;
      ++*found_count;
    }
    return nullptr;
  }
};

}  // namespace
}  // namespace tenon::onnxruntime

extern "C" {

// ONNX Runtime of an earlier version than 1.23 has no such interface, and no status can be made to say so.
OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories,
                             size_t room, size_t* count) {
  using namespace tenon;
  *count = 0;
  const OrtApi* const api = base->GetApi(onnxruntime::kApiVersion);
  if (api == nullptr || room == 0)
    return nullptr;
  Ort::InitApi(api);
  return onnxruntime::guard([&] {
    register_ops();
    factories[0] = new onnxruntime::Factory;
    *count = 1;
  });
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<tenon::onnxruntime::Factory*>(factory);
  return nullptr;
}
}
