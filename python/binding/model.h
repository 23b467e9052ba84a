#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_model(nanobind::module_& module);

}  // namespace tenon::python
