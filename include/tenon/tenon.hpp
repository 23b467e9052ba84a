// tenon.hpp — Tenon from C++: load a model, compile it for this machine, run it on memory of yours.
//
// A thin layer over tenon.h, which says more about each call: handles free themselves, and errors are
// exceptions. The inline namespace keeps these names apart from those of Tenon's own headers in src/.
#pragma once

#include <tenon/tenon.h>

#include <complex>
#include <cstddef>
#include <map>
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

inline const int64_t* strides_of(size_t rank, std::span<const int64_t> strides) {
  if (!strides.empty() && strides.size() != rank)
    throw Error(std::to_string(strides.size()) + " strides are given for " + std::to_string(rank) + " sizes",
                TENON_USER_ERROR);
  return strides.empty() ? nullptr : strides.data();
}

// The GPU of this number, as CUDA counts them.
inline tenon_device cuda(int32_t number = 0) { return {.type = TENON_DEVICE_CUDA, .index = number}; }

// The elements of an input, and its sizes and strides, which are all borrowed. Without strides it is
// contiguous. The elements are in the memory of the device.
template <class T>
tenon_tensor input(std::span<const T> elements, std::span<const int64_t> sizes,
                   std::span<const int64_t> strides = {}, tenon_device device = {}) {
  return {.struct_size = sizeof(tenon_tensor),
          .data = const_cast<T*>(elements.data()),
          .bytes = elements.size_bytes(),
          .dtype = dtype_of<T>(),
          .rank = static_cast<int32_t>(sizes.size()),
          .sizes = const_cast<int64_t*>(sizes.data()),
          .strides = strides_of(sizes.size(), strides),
          .device = device};
}

// Where the elements of an output go, and its sizes, where they are wanted. With strides, there are as many
// sizes.
template <class T>
tenon_tensor output(std::span<T> elements, std::span<int64_t> sizes = {},
                    std::span<const int64_t> strides = {}, tenon_device device = {}) {
  return {.struct_size = sizeof(tenon_tensor),
          .data = elements.data(),
          .bytes = elements.size_bytes(),
          .dtype = dtype_of<T>(),
          .rank = static_cast<int32_t>(sizes.size()),
          .sizes = sizes.data(),
          .strides = strides_of(sizes.size(), strides),
          .device = device};
}

// An input or output.
struct Port {
  std::string name;
  std::string type;                           // such as f32[batch,128]
  int32_t dtype;                              // a tenon_dtype; -1 for strings, sequences and optionals
  std::optional<std::vector<int64_t>> sizes;  // -1 where one is not fixed; none where the rank is dynamic
  std::vector<std::string> dimensions;        // 128, batch, 2*n+1; see tenon_port

  explicit Port(const tenon_port& port) : name(port.name), type(port.type), dtype(port.dtype) {
    if (port.rank >= 0) {
      sizes.emplace(port.sizes, port.sizes + port.rank);
      dimensions.assign(port.dimensions, port.dimensions + port.rank);
    }
  }
};

template <class Handle>
std::vector<Port> describe_ports(const Handle* handle, size_t count,
                                 const tenon_port* (*get)(const Handle*, size_t)) {
  std::vector<Port> ports;
  for (size_t i = 0; i < count; ++i)
    ports.emplace_back(*get(handle, i));
  return ports;
}

struct OptimizeOptions {
  tenon_numerics numerics = TENON_NUMERICS_DEFAULT;
  int64_t opset = 0;  // of an ONNX file; 0: that of the file that was read, or newer
};

class Model {
 public:
  // The path of a .onnx, .pt2, .gguf or .tenon file, or builtin:NAME.
  explicit Model(const std::string& name) {
    tenon_model* model = nullptr;
    throw_on_error(tenon_load(name.c_str(), &model));
    model_.reset(model);
  }

  // What a file of this name would hold. The bytes are copied. A model whose weights are in files of their
  // own wants the folder where these are.
  static Model from_memory(std::span<const std::byte> bytes, const std::string& name,
                           const std::optional<std::string>& folder = std::nullopt) {
    tenon_model* model = nullptr;
    throw_on_error(tenon_load_memory(bytes.data(), bytes.size(), name.c_str(),
                                     folder ? folder->c_str() : nullptr, &model));
    return Model(model);
  }

  std::vector<Port> inputs() const {
    return describe_ports(get(), tenon_model_count_inputs(get()), tenon_model_input);
  }
  std::vector<Port> outputs() const {
    return describe_ports(get(), tenon_model_count_outputs(get()), tenon_model_output);
  }
  // The names of dimensions that inputs have.
  std::vector<std::string> dimensions() const {
    std::vector<std::string> names;
    while (const char* name = tenon_model_dimension(get(), names.size()))
      names.emplace_back(name);
    return names;
  }

  // Gives all inputs' dimensions of this name a fixed size.
  void bind(const std::string& dimension, int64_t size) {
    throw_on_error(tenon_bind(model_.get(), dimension.c_str(), size));
  }

  // Writes it optimised, as the path ends in .onnx or .tenon; see tenon_optimize.
  void optimize(const std::string& path, const OptimizeOptions& options = {}) const {
    const tenon_optimize_options given{
        .struct_size = sizeof given, .numerics = options.numerics, .opset = options.opset};
    throw_on_error(tenon_optimize(model_.get(), &given, path.c_str()));
  }

  const tenon_model* get() const { return model_.get(); }

 private:
  struct Free {
    void operator()(tenon_model* model) const { tenon_free_model(model); }
  };
  explicit Model(tenon_model* model) : model_(model) {}

  std::unique_ptr<tenon_model, Free> model_;
};

struct CompileOptions {
  tenon_numerics numerics = TENON_NUMERICS_DEFAULT;
  tenon_precision precision = TENON_PRECISION_F32;
  int64_t threads = 0;  // that will run it; 0: one for each core that this process may use
  // That keeps generated code from one start to the next; empty: none; nothing: the user's.
  std::optional<std::string> cache_folder = std::nullopt;
  std::map<std::string, int64_t> dimensions = {};  // bound for this program alone
  tenon_device device = {};                        // that runs it: the CPU, or cuda(N)
};

struct RunOptions {
  int64_t threads = 0;     // one for each core that this process may use
  uint64_t seed = 0;       // of the model's random ops
  void* stream = nullptr;  // a CUstream that the run goes to, on a GPU: see tenon_run_options
};

// A model compiled for this machine. Several threads may run it at once.
class Program {
 public:
  Program(const Model& model, const CompileOptions& options) {
    std::vector<tenon_dimension> dimensions;
    for (const auto& [name, size] : options.dimensions)
      dimensions.push_back({name.c_str(), size});
    const tenon_compile_options given{
        .struct_size = sizeof given,
        .numerics = options.numerics,
        .precision = options.precision,
        .threads = options.threads,
        .cache_folder = options.cache_folder ? options.cache_folder->c_str() : nullptr,
        .dimensions = dimensions.data(),
        .dimension_count = dimensions.size(),
        .device = options.device,
        .on_progress = nullptr,
        .on_remark = nullptr,
        .user_data = nullptr};
    tenon_program* program = nullptr;
    throw_on_error(tenon_compile(model.get(), &given, &program));
    program_.reset(program);
    inputs_ = describe_ports(get(), tenon_program_count_inputs(program), tenon_program_input);
    outputs_ = describe_ports(get(), tenon_program_count_outputs(program), tenon_program_output);
  }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

  // Reads the inputs, and writes the elements and sizes of the outputs; see tenon_run.
  void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
           const RunOptions& options = {}) const {
    const tenon_run_options given{.struct_size = sizeof given,
                                  .threads = options.threads,
                                  .seed = options.seed,
                                  .stream = options.stream};
    throw_on_error(
        tenon_run(program_.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), &given));
  }

  // Waits for runs in streams of the caller's that have not ended; see tenon_synchronize.
  void synchronize() const { throw_on_error(tenon_synchronize(program_.get())); }

  const tenon_program* get() const { return program_.get(); }

 private:
  struct Free {
    void operator()(tenon_program* program) const { tenon_free_program(program); }
  };

  std::unique_ptr<tenon_program, Free> program_;
  std::vector<Port> inputs_, outputs_;
};

inline Program compile(const Model& model, const CompileOptions& options = {}) {
  return Program(model, options);
}

}  // namespace v0
}  // namespace tenon
