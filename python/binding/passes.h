// passes.h — rules and passes that are written in Python, as parts of a pipeline.
#pragma once

#include <nanobind/nanobind.h>

#include "passes/pipeline.h"

namespace tenon::python {

namespace nb = nanobind;

struct AddedPass {
  Pass pass;
  std::string before;  // the pass that it precedes
};

using AddedPasses = std::vector<AddedPass>;

// The portable pipeline with these in it.
std::vector<Pass> pipeline_with(const AddedPasses& added);

void bind_passes(nb::module_& module);

}  // namespace tenon::python
