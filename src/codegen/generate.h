// generate.h — kernels as machine code in this process. llvm/ makes it; none/ stands in where Tenon is built
// without LLVM.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/object_cache.h"
#include "loops/kernel.h"
#include "runtime/cpu/cpu_device.h"
#include "target/target.h"

namespace tenon::codegen {

// What generates code, with its version: "LLVM 19.1.7".
std::string describe_generator();

// An object file with one function for each parallel region of a kernel: phase_0, phase_1, …. May run on
// several threads at once. With a cache, it comes from there where it can.
runtime::KernelCode generate_object(const loops::Kernel& kernel, const Target& target,
                                    const std::optional<ObjectCache>& cache = std::nullopt);

// The same as LLVM IR text.
std::string generate_text(const loops::Kernel& kernel, const Target& target);

// Loads object files. Several threads may load at once.
class Jit : public runtime::CodeLoader {
 public:
  Jit();
  ~Jit() override;

  std::vector<runtime::KernelFunction> load(const runtime::KernelCode& code) override;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace tenon::codegen
