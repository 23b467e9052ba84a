// c_interface.h — models written in a test, compiled and run through the C interface.
#pragma once

#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"

namespace tenon {

struct FreeHandle {
  void operator()(tenon_model* model) const { tenon_free_model(model); }
  void operator()(tenon_program* program) const { tenon_free_program(program); }
};
using ModelHandle = std::unique_ptr<tenon_model, FreeHandle>;
using ProgramHandle = std::unique_ptr<tenon_program, FreeHandle>;

inline ModelHandle load_text(const std::string& text) {
  const TemporaryFolder folder;
  tenon_model* model = nullptr;
  EXPECT_EQ(tenon_load(folder.write("model.tenon", text).c_str(), &model), TENON_OK) << tenon_error_message();
  return ModelHandle(model);
}

inline ProgramHandle compile_text(const std::string& text) {
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_compile(load_text(text).get(), nullptr, &program), TENON_OK) << tenon_error_message();
  return ProgramHandle(program);
}

// Elements with sizes that hold together.
template <class T>
struct Array {
  std::vector<T> elements;
  std::vector<int64_t> sizes;

  tenon_tensor tensor(tenon_dtype dtype) {
    return {.struct_size = sizeof(tenon_tensor),
            .data = elements.data(),
            .bytes = elements.size() * sizeof(T),
            .dtype = dtype,
            .rank = static_cast<int32_t>(sizes.size()),
            .sizes = sizes.data(),
            .strides = nullptr,
            .device = {}};
  }
};

inline tenon_status run(const ProgramHandle& program, std::vector<tenon_tensor> inputs,
                        std::vector<tenon_tensor>& outputs) {
  return tenon_run(program.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), nullptr);
}

}  // namespace tenon
