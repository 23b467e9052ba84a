// run_kernel.h — one kernel, compiled for this machine and run: what `tenon loops` shows, and tests compare.
#pragma once

#include "codegen/generate.h"
#include "loops/kernel.h"
#include "target/target.h"
#include "tensor/tensor.h"

namespace tenon::codegen {

// Whether code can be generated for it: it calls no routine, and has dtypes that machines compute with.
bool can_compile(const loops::Kernel& kernel);

// A kernel with its code, inputs in their order, and memory for its outputs. `sizes` says what all sizes of
// the kernel are.
class LoadedKernel {
 public:
  LoadedKernel(const loops::Kernel& kernel, std::vector<Tensor> inputs,
               const std::map<std::string, int64_t>& sizes, const Target& target);

  // Parallel loops are shared out among so many threads. What the kernel does wrong is the user's fault where
  // it is noticed; an index outside its buffer is not.
  void run(int threads);
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  // A parallel region, and memory for each thread in it.
  struct Part {
    runtime::KernelFunction function;
    int64_t iterations;
    int64_t scratch_bytes;  // of each thread
  };

  Jit jit_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::byte*> buffers_;
  std::vector<int64_t> sizes_;
  std::vector<Part> parts_;
  std::vector<std::byte> scratch_;
};

// The outputs of one run, on this thread alone.
std::vector<Tensor> run_compiled(const loops::Kernel& kernel, const std::vector<Tensor>& inputs,
                                 const std::map<std::string, int64_t>& sizes, const Target& target);

}  // namespace tenon::codegen
