// sized_struct.h — structs of callers that were compiled with another version of tenon.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "api/status.h"

namespace tenon::api {

constexpr size_t kMostStructBytes = 4096;  // more is not the size of any struct, but memory never set

// The size of a struct whose caller knows at least `least` bytes of it. It may be more than the `known` ones,
// as long as the rest is 0. `what` names it in errors.
template <class What>
size_t checked_size(const void* caller, size_t least, size_t known, What&& what) {
  size_t size;
  std::memcpy(&size, caller, sizeof size);
  if (size < least || size > kMostStructBytes)
    throw user_error("{}: struct_size is {}, but must be what sizeof says, which is {} in version {}", what(),
                     size, known, tenon_version());
  const char* const bytes = static_cast<const char*>(caller);
  for (size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      throw user_error("{}: a field that version {} does not have is not 0", what(), tenon_version());
  return size;
}

// Of options, every field may be left out, and they all may be.
template <class Options>
Options read_options(const Options* caller) {
  Options options{};
  if (caller != nullptr) {
    const size_t size = checked_size(caller, sizeof options.struct_size, sizeof options,
                                     [] { return std::string_view("options"); });
    std::memcpy(&options, caller, std::min(size, sizeof options));
  }
  return options;
}

// The tensors of a call, which lie as far apart as their caller's version has them.
template <class Tensor>  // tenon_tensor, constant or not
class SizedTensors {
 public:
  SizedTensors(Tensor* first, size_t count, std::string_view role) : first_(first), count_(count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t size = checked_size(&(*this)[i], sizeof(Tensor), sizeof(Tensor),
                                       [&] { return fmt::format("{} {}", role, i); });
      if (i == 0)
        step_ = size;
      else if (size != step_)
        throw user_error("{} {}: struct_size is {}, but that of {} 0 is {}", role, i, size, role, step_);
    }
  }

  size_t size() const { return count_; }
  Tensor& operator[](size_t number) const {
    using Bytes = std::conditional_t<std::is_const_v<Tensor>, const char, char>;
    return *reinterpret_cast<Tensor*>(reinterpret_cast<Bytes*>(first_) + number * step_);
  }

 private:
  Tensor* first_;
  size_t count_;
  size_t step_ = sizeof(Tensor);
};
using Inputs = SizedTensors<const tenon_tensor>;
using Outputs = SizedTensors<tenon_tensor>;

}  // namespace tenon::api
