#include "api/default_context.h"

#include "compiler/tuned_choices.h"

namespace tenon::api {

compiler::CompileContext default_context(NumericsBudget numerics, MatmulPrecision precision, int threads) {
  return {.target = this_machine(),
          .threads = threads,
          .numerics = numerics,
          .precision = precision,
          .cache = codegen::default_cache(),
          .tuning = compiler::tuned_choices(codegen::default_cache())};
}

}  // namespace tenon::api
