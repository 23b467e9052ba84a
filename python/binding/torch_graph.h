// torch_graph.h — what torch.compile's backend needs beside models: graphs that are in no archive, nodes that
// PyTorch computes, and weights that are watched.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_torch_graph(nanobind::module_& module);

}  // namespace tenon::python
