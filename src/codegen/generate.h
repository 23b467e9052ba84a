// generate.h — kernels as machine code in this process. llvm/ makes it; none/ stands in where Tenon is built
// without LLVM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/object_cache.h"
#include "loops/kernel.h"
#include "runtime/cpu/kernel_function.h"
#include "target/target.h"

namespace tenon::codegen {

// What generates code, with its version: "LLVM 19.1.7".
std::string describe_generator();

// An object file with one function for each parallel region of a kernel: phase_0, phase_1, …. May run on
// several threads at once. With a cache, it comes from there where it can.
std::string generate_object(const loops::Kernel& kernel, const Target& target,
                            const std::optional<ObjectCache>& cache = std::nullopt);

// The same as LLVM IR text.
std::string generate_text(const loops::Kernel& kernel, const Target& target);

// Machine code that lives as long as this.
class Jit {
 public:
  Jit();
  ~Jit();

  // The functions that an object file holds, one for each region. Throws InternalError on one that cannot be
  // loaded.
  std::vector<runtime::KernelFunction> load(const std::string& object, size_t regions);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace tenon::codegen
