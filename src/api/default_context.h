// default_context.h — how programs are compiled where nobody says otherwise: for this machine, with its cache
// and what was tuned on it.
#pragma once

#include "compiler/compile_context.h"

namespace tenon::api {

compiler::CompileContext default_context(NumericsBudget numerics = NumericsBudget::Default,
                                         MatmulPrecision precision = MatmulPrecision::F32, int threads = 0);

}  // namespace tenon::api
