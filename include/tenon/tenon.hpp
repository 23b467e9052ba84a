// tenon.hpp — Tenon from C++: load a model, compile it for this machine, run it on memory of yours.
//
// A thin layer over tenon.h, which says more about each call: handles free themselves, and errors are
// exceptions. The inline namespace keeps these names apart from those of Tenon's own headers in src/.
#pragma once

#include <tenon/tenon.h>

#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {
inline namespace v0 {

class Error : public std::runtime_error {
 public:
  Error(const std::string& message, tenon_status status) : std::runtime_error(message), status_(status) {}
  // Whether what was given is at fault, or Tenon.
  tenon_status status() const { return status_; }

 private:
  tenon_status status_;
};

inline void throw_on_error(tenon_status status) {
  if (status != TENON_OK)
    throw Error(tenon_error_message(), status);
}

// Of text, and not numbers. Which of them are signed differs from machine to machine.
template <class T>
constexpr bool is_character =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

// The dtype whose elements are of this C++ type. Others, such as f16, have none: fill in a tenon_tensor.
template <class T>
constexpr tenon_dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return TENON_BOOL;
  else if constexpr (std::is_same_v<T, double>)
    return TENON_F64;
  else if constexpr (std::is_same_v<T, float>)
    return TENON_F32;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return TENON_C64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return TENON_C128;
  else {
    static_assert(std::is_integral_v<T> && !is_character<T>, "no dtype has elements of this type");
    constexpr tenon_dtype dtypes[][2] = {
        {TENON_U8, TENON_I8}, {TENON_U16, TENON_I16}, {TENON_U32, TENON_I32}, {TENON_U64, TENON_I64}};
    constexpr int row = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return dtypes[row][std::is_signed_v<T>];
  }
}

// The elements of an input, and its sizes. Both are borrowed.
template <class T>
tenon_tensor input(std::span<const T> elements, std::span<const int64_t> sizes) {
  return {.data = const_cast<T*>(elements.data()),
          .bytes = elements.size_bytes(),
          .dtype = dtype_of<T>(),
          .rank = static_cast<int32_t>(sizes.size()),
          .sizes = const_cast<int64_t*>(sizes.data())};
}

// Where the elements of an output go, and its sizes, where they are wanted.
template <class T>
tenon_tensor output(std::span<T> elements, std::span<int64_t> sizes = {}) {
  return {.data = elements.data(),
          .bytes = elements.size_bytes(),
          .dtype = dtype_of<T>(),
          .rank = static_cast<int32_t>(sizes.size()),
          .sizes = sizes.data()};
}

class Model {
 public:
  // The path of a .onnx or .tenon file, or builtin:NAME.
  explicit Model(const std::string& name) {
    tenon_model* model = nullptr;
    throw_on_error(tenon_load(name.c_str(), &model));
    model_.reset(model);
  }

  // Gives all inputs' dimensions of this name a fixed size.
  void bind(const std::string& dimension, int64_t size) {
    throw_on_error(tenon_bind(model_.get(), dimension.c_str(), size));
  }

  const tenon_model* get() const { return model_.get(); }

 private:
  struct Free {
    void operator()(tenon_model* model) const { tenon_free_model(model); }
  };
  std::unique_ptr<tenon_model, Free> model_;
};

// An input or output of a program.
struct Port {
  std::string name;
  tenon_dtype dtype;
  std::optional<std::vector<int64_t>> sizes;  // -1 where one is not fixed; none where their number is not
};

struct CompileOptions {
  tenon_numerics numerics = TENON_NUMERICS_DEFAULT;
  tenon_precision precision = TENON_PRECISION_F32;
};

struct RunOptions {
  int64_t threads = 0;  // one for each core that this process may use
  uint64_t seed = 0;    // of the model's random ops
};

// A model compiled for this machine. Several threads may run it at once.
class Program {
 public:
  Program(const Model& model, const CompileOptions& options) {
    const tenon_compile_options given{
        .size = sizeof given, .numerics = options.numerics, .precision = options.precision};
    tenon_program* program = nullptr;
    throw_on_error(tenon_compile(model.get(), &given, &program));
    program_.reset(program);
    inputs_ = describe(tenon_count_inputs(program), tenon_input);
    outputs_ = describe(tenon_count_outputs(program), tenon_output);
  }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

  // Reads the inputs, and writes the elements and sizes of the outputs; see tenon_run.
  void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
           const RunOptions& options = {}) const {
    const tenon_run_options given{.size = sizeof given, .threads = options.threads, .seed = options.seed};
    throw_on_error(
        tenon_run(program_.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), &given));
  }

 private:
  struct Free {
    void operator()(tenon_program* program) const { tenon_free_program(program); }
  };

  std::vector<Port> describe(size_t count, const tenon_port* (*get)(const tenon_program*, size_t)) const {
    std::vector<Port> ports;
    for (size_t i = 0; i < count; ++i) {
      const tenon_port& port = *get(program_.get(), i);
      ports.push_back({port.name, static_cast<tenon_dtype>(port.dtype), std::nullopt});
      if (port.rank >= 0)
        ports.back().sizes.emplace(port.sizes, port.sizes + port.rank);
    }
    return ports;
  }

  std::unique_ptr<tenon_program, Free> program_;
  std::vector<Port> inputs_, outputs_;
};

inline Program compile(const Model& model, const CompileOptions& options = {}) {
  return Program(model, options);
}

}  // namespace v0
}  // namespace tenon
