// write_program.h — a program as tables, to be saved.
#pragma once

#include <functional>

#include "runtime/cpu/code_image.h"
#include "runtime/program.h"

namespace tenon::runtime {

// Runs the prepare part of a program and of those of its host steps, so that what is left of it are constants
// as kernels read them.
void freeze_constants(Program& program, const std::shared_ptr<Device>& device);

struct TablesToWrite {
  const Program& program;  // with frozen constants, and code in an image
  const Imports& imports;  // of the image
  // What the kernels of its steps compute, in order, for who measures them: see report/measure.h.
  const std::vector<Dim>& operations;
  // Where the elements of a constant, as they stand in a file, lie among the weights.
  std::function<uint64_t(const Tensor& constant)> place;
};
std::string write_tables(const TablesToWrite& tables);

}  // namespace tenon::runtime
