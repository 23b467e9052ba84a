// not_a_tensor.h — what Type::as_tensor throws. It does not know for what a tensor is wanted: who knows the
// op adds it.
#pragma once

#include "base/error.h"

namespace tenon {

class NotATensor : public UserError {
 public:
  using UserError::UserError;
};

// Runs `work` for an op of this name.
template <class Work>
decltype(auto) naming_op(std::string_view op, Work&& work) {
  try {
    return work();
  } catch (const NotATensor& error) {
    throw user_error("{}: {}", op, error.what());
  }
}

}  // namespace tenon
