// training.h — training steps, as Python calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_training(nanobind::module_& module);

}  // namespace tenon::python
