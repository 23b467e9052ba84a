// library_functions.h — the functions that generated code may call: what code generators name, and what LLVM
// has no instructions for on some machines.
#pragma once

#include <span>
#include <string_view>

namespace tenon::runtime {

struct LibraryFunction {
  const char* name;
  void* address;
};

// By their addresses, as a static program has no symbols to look them up by.
std::span<const LibraryFunction> library_functions();

// Null where it is none of them.
void* find_library_function(std::string_view name);

}  // namespace tenon::runtime
