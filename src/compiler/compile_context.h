// compile_context.h — what compiling depends on besides the graph. Nothing is read from the environment: who
// calls says it.
#pragma once

#include "codegen/object_cache.h"
#include "compiler/backend.h"
#include "lowering/contraction_choice.h"
#include "passes/target_pipeline.h"

namespace tenon::compiler {

constexpr int kNoDevice = -1;  // of a program that is looked at, and not run

struct CompileContext {
  Target target;
  const Backend* backend = &default_backend();
  int device = 0;  // that runs the program, among those of the backend
  int threads =
      0;  // that will run the program, for which it is partitioned; 0: as many as the target has cores
  NumericsBudget numerics = NumericsBudget::Default;
  MatmulPrecision precision = MatmulPrecision::F32;
  std::optional<codegen::ObjectCache> cache = std::nullopt;
  lowering::ContractionChoices tuning = {};  // for contractions, overriding the cost model
  bool fuse = true;
  std::set<std::string> disabled = {};  // passes of the target pipeline that are left out
  std::vector<Pass> added_passes = {};  // that run in the target pipeline, before remove-dead
  // Told, one call at a time, of each kernel before code is generated for it, and how many there are.
  std::function<void(int64_t kernels)> before_kernel = nullptr;
};

}  // namespace tenon::compiler
