// status.h — exceptions become statuses: what stands between ONNX Runtime and us.
#pragma once

#include "base/error.h"
#include "onnxruntime/api.h"

namespace tenon::onnxruntime {

inline OrtStatus* make_status(OrtErrorCode code, const char* message) noexcept {
  return Ort::GetApi().CreateStatus(code, message);
}

template <class Work>
OrtStatus* guard(Work&& work) noexcept {
  try {
    work();
    return nullptr;
  } catch (const Ort::Exception& error) {
    return make_status(error.GetOrtErrorCode(), error.what());
  } catch (const UnsupportedError& error) {
    return make_status(ORT_NOT_IMPLEMENTED, error.what());
  } catch (const UserError& error) {
    return make_status(ORT_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return make_status(ORT_FAIL, "there is not enough memory");
  } catch (const std::exception& error) {
    return make_status(ORT_RUNTIME_EXCEPTION, error.what());
  }
}

}  // namespace tenon::onnxruntime
