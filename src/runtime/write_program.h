// write_program.h — a program as tables, to be saved.
#pragma once

#include <functional>

#include "runtime/cpu/code_image.h"
#include "runtime/program.h"
#include "runtime/stored_layout.h"

namespace tenon::runtime {

// A constant as kernels read it.
struct Frozen {
  StoredConstant stored;  // what it was packed from
  Tensor windows;         // before they were transformed, where they were
};
using StoredConstants = std::map<const std::byte*, Frozen>;  // by their elements

// Runs the prepare part of a program and of those of its host steps, so that what is left of it are constants
// as kernels read them.
StoredConstants freeze_constants(Program& program, const std::shared_ptr<Device>& device);

// Where the elements of a constant are among the weights, as they stand in a file: in its own layout, or in
// that of another that it is made of.
struct WeightPlace {
  uint64_t offset = 0;
  struct Other {
    TensorShape shape;
    StoredConstant stored;
    Packing packing;                           // of the constant itself
    std::optional<FilePart> corrections = {};  // see needs_corrections
  };
  std::optional<Other> other = {};
};

struct TablesToWrite {
  const Program& program;  // with frozen constants, and code in an image
  const Imports& imports;  // of the image
  // What the kernels of its steps compute, in order, for who measures them: see report/measure.h.
  const std::vector<Dim>& operations;
  std::function<WeightPlace(const Tensor& constant)> place;
};
std::string write_tables(const TablesToWrite& tables);

}  // namespace tenon::runtime
