// program.h — a compiled graph as data: steps over slots, the code of its kernels, and how its constants are
// made of the weights. An Executor runs it.
#pragma once

#include "ir/fit.h"
#include "ir/size_condition.h"
#include "lowering/kernel_graph.h"
#include "runtime/step.h"
#include "target/target.h"
#include "tensor/literal.h"

namespace tenon::runtime {

// A constant of the model, or a result of one of the programs that compute weights from weights.
struct Weight {
  std::string name;
  Literal literal;                     // whose elements such a program computes where there is one
  std::optional<size_t> program = {};  // in Prepare
  size_t output = 0;                   // of that
};

// Makes the elements of one slot: weights joined along a dimension, packed into words, and laid out.
struct PrepareStep {
  size_t slot;
  std::vector<size_t> weights;
  size_t dim = 0;
  std::optional<size_t> vnni_dim = {};  // as in KernelBuffer
  lowering::Layout layout = {};
};

// What runs once for each set of weights.
struct Prepare {
  std::vector<Weight> weights;
  std::vector<std::shared_ptr<Program>> programs;  // without inputs
  std::vector<PrepareStep> steps;
};

struct Program {
  std::string name;
  Target target;
  std::vector<InputPort> inputs;
  std::vector<std::string> output_names;
  std::vector<size_t> outputs;  // slots
  // For each output, the inputs in whose memory it may be computed, by their numbers. Empty where the
  // program was read from a file.
  std::vector<std::vector<size_t>> overwritable;
  std::vector<Slot> slots;
  std::vector<Step> steps;
  Prepare prepare;
  std::vector<KernelCode> code;
  std::shared_ptr<SizeCheck> size_checks;  // null where all sizes are known
};

// Whether some steps are no kernels: only those take calls of the random generator.
bool has_host_steps(const Program& program);

}  // namespace tenon::runtime
