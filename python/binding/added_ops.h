// added_ops.h — ops that are written in Python: what their functions say is what is read, compiled and
// verified.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_added_ops(nanobind::module_& module);

}  // namespace tenon::python
