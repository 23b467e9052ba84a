// coverage.h — which of PyTorch's ops are read.
#pragma once

#include <string>
#include <vector>

namespace tenon::torch {

struct Coverage {
  std::string op;  // add.Tensor; add where all overloads are meant
  bool core;       // of the Core ATen operator set, to which torch.export decomposes programs on request
  bool read;
};

// The ops of the Core ATen set, then the others that are read, both by name.
std::vector<Coverage> coverage();

}  // namespace tenon::torch
