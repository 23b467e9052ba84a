// default_context.h — how programs are compiled where nobody says otherwise: for this machine, with its cache
// and what was tuned on it.
#pragma once

#include "compiler/compile_context.h"

namespace tenon::api {

// TENON_DEVICE, else cpu.
std::string default_device();

struct ContextOptions {
  NumericsBudget numerics = NumericsBudget::Default;
  MatmulPrecision precision = MatmulPrecision::F32;
  int threads = 0;
  // cpu, cuda or cuda:N; or the architecture of a GPU, whose code can be looked at, but not run. Another, or
  // one that is not there, is a user_error.
  std::string device = default_device();
};

compiler::CompileContext default_context(const ContextOptions& options = {});

}  // namespace tenon::api
