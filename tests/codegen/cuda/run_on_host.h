// run_on_host.h — runs emitted CUDA text on the host, by shim.h: many kernels are compiled together, as the
// compiler's start takes longer than any of them.
#pragma once

#include "codegen/cuda/emit.h"
#include "tensor/tensor.h"

namespace tenon::codegen::cuda {

// For the inputs of the kernel; the same each time.
std::vector<Tensor> random_inputs(const loops::Kernel& kernel, const std::map<std::string, int64_t>& sizes);
// The tolerance is relative; 0: the same bits.
void expect_close(const Tensor& got, const Tensor& want, double tolerance);

class HostKernels {
 public:
  ~HostKernels();

  // A number for `run`. `text` is what was emitted for the kernel, unless something else is to run.
  size_t add(loops::Kernel kernel);
  size_t add(loops::Kernel kernel, CudaText text);
  // Afterwards no kernel can be added.
  void compile();

  struct Result {
    std::vector<Tensor> outputs;
    bool failed = false;       // what the kernel requires did not hold
    bool is_deadlock = false;  // some threads wait at a barrier that others do not come to
  };
  enum class Order { Ascending, Descending };  // of blocks and threads
  enum class Copies { Early, Late };           // those to shared memory: at once, or when they are waited for
  Result run(size_t number, const std::vector<Tensor>& inputs, std::map<std::string, int64_t> sizes,
             Order order, Copies copies = Copies::Late) const;

 private:
  struct Added {
    loops::Kernel kernel;
    CudaText text;
  };
  std::string source() const;

  std::vector<Added> added_;
  void* library_ = nullptr;
};

}  // namespace tenon::codegen::cuda
