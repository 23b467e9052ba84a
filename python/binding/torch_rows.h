// torch_rows.h — a graph as the calls of PyTorch that compute the same.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_torch_rows(nanobind::module_& module);

}  // namespace tenon::python
