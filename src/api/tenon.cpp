// tenon.cpp — what include/tenon/tenon.h declares: every call guarded, so that errors become statuses.
#include <tenon/tenon.h>

#include <cstring>

#include "api/default_context.h"
#include "base/error.h"
#include "compiler/compile.h"
#include "frontends/read_model.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "runtime/cpu/thread_pool.h"
#include "tensor/byte_count.h"

struct tenon_model {
  std::unique_ptr<tenon::Graph> graph;
};

namespace tenon {

using compiler::compile;
using runtime::kMostThreads;
using runtime::RunOptions;

namespace {

// An input or output, with what a run checks it against.
struct Port {
  Port(std::string_view role_, std::string name_, const Type& type_)
      : role(role_), name(std::move(name_)), type(type_) {
    if (!type.is_tensor() || type.as_tensor().dtype == DType::String)
      throw unsupported("{} {} is {}, which cannot be passed through the C interface", role, name, type);
    const Shape& shape = type.as_tensor().shape;
    if (shape.ranked())
      for (const Dim& dim : shape.dims())
        sizes.push_back(dim.constant().value_or(-1));
    if (const std::optional<Extents> extents = shape.extents())
      fixed_bytes = count_bytes(*extents);
  }

  int64_t count_bytes(const Extents& extents) const {
    return with_context([&] { return fmt::format("{} {}", role, name); },
                        [&] { return byte_count(type.as_tensor().dtype, extents); });
  }

  tenon_port describe() const {
    const auto& [dtype, shape] = type.as_tensor();
    return {.name = name.c_str(),
            .dtype = static_cast<int32_t>(dtype),
            .rank = shape.ranked() ? static_cast<int32_t>(shape.rank()) : -1,
            .sizes = sizes.data()};
  }

  std::string_view role;
  std::string name;
  Type type;
  Extents sizes = {};  // -1 where one is not fixed
  std::optional<int64_t> fixed_bytes = {};
};

// --- errors ---

thread_local std::string error_text;
thread_local const char* error_message = "";  // error_text, or what is always there

tenon_status fail(tenon_status status, const std::exception& error) noexcept {
  try {
    error_text = error.what();
    error_message = error_text.c_str();
  } catch (const std::bad_alloc&) {
    error_message = "there is not enough memory to say what went wrong";
  }
  return status;
}

template <class Work>
tenon_status guard(Work&& work) noexcept {
  try {
    work();
    return TENON_OK;
  } catch (const UserError& error) {
    return fail(TENON_USER_ERROR, error);
  } catch (const std::bad_alloc&) {
    error_message = "there is not enough memory";
    return TENON_USER_ERROR;
  } catch (const std::exception& error) {
    return fail(TENON_INTERNAL_ERROR, error);
  } catch (...) {
    error_message = "something that is no error was thrown";
    return TENON_INTERNAL_ERROR;
  }
}

template <class T>
T& given(T* argument, std::string_view name) {
  if (argument == nullptr)
    throw user_error("{} is NULL", name);
  return *argument;
}

// What a function gives that returns no status: nothing, or none, where it fails.
template <class T, class Find>
T found_in(const tenon_program* program, Find&& find) noexcept {
  T found{};
  guard([&] { found = find(given(program, "program")); });
  return found;
}

// --- options ---

constexpr size_t kMostOptionBytes = 4096;  // more is not the size of any options, but memory never set

// Those of a caller that knows fewer fields, or more, as long as it does not use them.
template <class Options>
Options read_options(const Options* caller) {
  Options options{};
  if (caller == nullptr)
    return options;
  if (caller->size < sizeof caller->size || caller->size > kMostOptionBytes)
    throw user_error("the size of the options is {}: it should be what sizeof says", caller->size);
  std::memcpy(&options, caller, std::min(caller->size, sizeof options));
  const char* bytes = reinterpret_cast<const char*>(caller);
  for (size_t i = sizeof options; i < caller->size; ++i)
    if (bytes[i] != 0)
      throw user_error("the options are those of a later version than {}", TENON_VERSION);
  return options;
}

NumericsBudget budget_of(const tenon_compile_options& options) {
  switch (options.numerics) {
    case TENON_NUMERICS_DEFAULT:
      return NumericsBudget::Default;
    case TENON_NUMERICS_STRICT:
      return NumericsBudget::Strict;
    case TENON_NUMERICS_FAST:
      return NumericsBudget::Fast;
    default:
      throw user_error("numerics cannot be {}", options.numerics);
  }
}

MatmulPrecision precision_of(const tenon_compile_options& options) {
  switch (options.precision) {
    case TENON_PRECISION_F32:
      return MatmulPrecision::F32;
    case TENON_PRECISION_BF16:
      return MatmulPrecision::BF16;
    default:
      throw user_error("precision cannot be {}", options.precision);
  }
}

RunOptions run_options(const tenon_run_options* caller) {
  const tenon_run_options options = read_options(caller);
  if (options.threads < 0 || options.threads > kMostThreads)
    throw user_error("a program runs with 1 to {} threads, not with {}", kMostThreads, options.threads);
  const int threads = options.threads == 0 ? this_machine().cores : static_cast<int>(options.threads);
  return {.seed = options.seed, .threads = std::min(threads, kMostThreads)};
}

// --- tensors of the caller's ---

Extents extents_of(const tenon_tensor& tensor) { return {tensor.sizes, tensor.sizes + tensor.rank}; }

void check_memory(const Port& port, const tenon_tensor& tensor, int64_t bytes) {
  if (tensor.bytes < static_cast<uint64_t>(bytes))
    throw user_error("{} {} takes {} bytes, but {} are given", port.role, port.name, bytes, tensor.bytes);
  if (bytes == 0)
    return;
  if (tensor.data == nullptr)
    throw user_error("{} {} has no data", port.role, port.name);
  const DType dtype = port.type.as_tensor().dtype;
  const int alignment = info(dtype).bytes / (kind(dtype) == DTypeKind::Complex ? 2 : 1);
  if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(alignment) != 0)
    throw user_error("the data of {} {} must be aligned to {} bytes", port.role, port.name, alignment);
}

void check_dtype(const Port& port, const tenon_tensor& tensor) {
  const DType dtype = port.type.as_tensor().dtype;
  if (tensor.dtype == static_cast<int32_t>(dtype))
    return;
  const char* const name = tenon_dtype_name(tensor.dtype);
  throw user_error("{} {} must be {}, but is {}", port.role, port.name, port.type,
                   name == nullptr ? "of no dtype" : name);
}

bool fits_sizes(const Port& port, const tenon_tensor& tensor) {
  if (std::any_of(tensor.sizes, tensor.sizes + tensor.rank, [](int64_t size) { return size < 0; }))
    return false;
  if (!port.type.as_tensor().shape.ranked())
    return true;
  if (tensor.rank != static_cast<int32_t>(port.sizes.size()))
    return false;
  for (size_t i = 0; i < port.sizes.size(); ++i)
    if (port.sizes[i] >= 0 && port.sizes[i] != tensor.sizes[i])
      return false;
  return true;
}

void check_input(const Port& port, const tenon_tensor& tensor) {
  check_dtype(port, tensor);
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.sizes == nullptr))
    throw user_error("input {} has no sizes", port.name);
  if (!fits_sizes(port, tensor))
    throw user_error("input {} must be {}, but is {}", port.name, port.type,
                     describe(port.type.as_tensor().dtype, extents_of(tensor)));
  check_memory(port, tensor, port.fixed_bytes ? *port.fixed_bytes : port.count_bytes(extents_of(tensor)));
}

void write_sizes(const Port& port, const Extents& extents, tenon_tensor& tensor) {
  const auto rank = static_cast<int32_t>(extents.size());
  if (tensor.sizes != nullptr) {
    if (tensor.rank < rank)
      throw user_error("output {} has {} dimensions, but there is room for {} sizes", port.name, rank,
                       tensor.rank);
    std::copy(extents.begin(), extents.end(), tensor.sizes);
  }
  tensor.rank = rank;
}

}  // namespace
}  // namespace tenon

struct tenon_program {
  std::unique_ptr<tenon::runtime::Program> program;
  std::vector<tenon::Port> inputs, outputs;
  std::vector<tenon_port> input_ports, output_ports;

  explicit tenon_program(std::unique_ptr<tenon::runtime::Program> compiled) : program(std::move(compiled)) {
    const tenon::Graph& graph = program->graph();
    for (tenon::Value input : graph.inputs())
      inputs.emplace_back("input", input.name(), input.type());
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      outputs.emplace_back("output", graph.output_names()[i], graph.outputs()[i].type());
    for (const tenon::Port& port : inputs)
      input_ports.push_back(port.describe());
    for (const tenon::Port& port : outputs)
      output_ports.push_back(port.describe());
  }

  void run(std::span<const tenon_tensor> from, std::span<tenon_tensor> to,
           const tenon::RunOptions& options) const {
    check_counts(from.size(), to.size());
    for (size_t i = 0; i < from.size(); ++i)
      tenon::check_input(inputs[i], from[i]);
    for (size_t i = 0; i < to.size(); ++i)
      tenon::check_dtype(outputs[i], to[i]);
    if (program->has_fixed_sizes())
      run_fixed(from, to, options);
    else
      run_any(from, to, options);
  }

 private:
  void check_counts(size_t from, size_t to) const {
    if (from != inputs.size())
      throw tenon::user_error("the program takes {} inputs, but {} were given", inputs.size(), from);
    if (to != outputs.size())
      throw tenon::user_error("the program has {} outputs, but {} were given", outputs.size(), to);
  }

  // Sizes first, so that all are known where one output has too little room.
  void prepare_outputs(std::span<tenon_tensor> to, const std::vector<tenon::Extents>& extents) const {
    for (size_t i = 0; i < to.size(); ++i)
      tenon::write_sizes(outputs[i], extents[i], to[i]);
    for (size_t i = 0; i < to.size(); ++i)
      tenon::check_memory(outputs[i], to[i], outputs[i].count_bytes(extents[i]));
  }

  void run_fixed(std::span<const tenon_tensor> from, std::span<tenon_tensor> to,
                 const tenon::RunOptions& options) const {
    // Kept from call to call, so that nothing is allocated.
    thread_local std::vector<const void*> sources;
    thread_local std::vector<void*> results;
    sources.clear();
    results.clear();
    for (const tenon_tensor& tensor : from)
      sources.push_back(tensor.data);
    for (size_t i = 0; i < to.size(); ++i) {
      tenon::write_sizes(outputs[i], outputs[i].sizes, to[i]);
      results.push_back(to[i].data);
    }
    for (size_t i = 0; i < to.size(); ++i)
      tenon::check_memory(outputs[i], to[i], *outputs[i].fixed_bytes);
    program->run_into(sources, results, options);
  }

  void run_any(std::span<const tenon_tensor> from, std::span<tenon_tensor> to,
               const tenon::RunOptions& options) const {
    tenon::Data data;
    for (size_t i = 0; i < from.size(); ++i)
      data.emplace_back(view(inputs[i], from[i]));
    if (const std::optional<std::vector<tenon::Extents>> extents = program->output_extents(data)) {
      prepare_outputs(to, *extents);
      std::vector<void*> results;
      for (const tenon_tensor& tensor : to)
        results.push_back(tensor.data);
      return program->run_into(data, results, options);
    }
    const tenon::Data results = program->run(data, options);
    std::vector<tenon::Extents> extents;
    for (const tenon::Datum& result : results)
      extents.push_back(result.tensor().extents());
    prepare_outputs(to, extents);
    for (size_t i = 0; i < to.size(); ++i)
      if (const std::span<const std::byte> bytes = results[i].tensor().bytes(); !bytes.empty())
        std::memcpy(to[i].data, bytes.data(), bytes.size());
  }

  static tenon::Tensor view(const tenon::Port& port, const tenon_tensor& tensor) {
    const tenon::Extents extents = tenon::extents_of(tensor);
    const tenon::DType dtype = port.type.as_tensor().dtype;
    const auto bytes = static_cast<size_t>(tenon::byte_count(dtype, extents));
    // Nobody owns it: the caller keeps it as long as the run lasts.
    return {dtype, extents, nullptr, {static_cast<const std::byte*>(tensor.data), bytes}};
  }
};

using namespace tenon;

const char* tenon_version(void) { return TENON_VERSION; }

const char* tenon_error_message(void) { return error_message; }

const char* tenon_dtype_name(int32_t dtype) {
  static_assert(static_cast<int>(DType::F4E2M1) == TENON_F4E2M1 && static_cast<int>(DType::I2) == TENON_I2 &&
                static_cast<int>(DType::U2) == TENON_U2 && static_cast<int>(DType::Bool) == TENON_BOOL &&
                static_cast<int>(DType::C128) == TENON_C128);
  const bool is_known =
      dtype >= TENON_F64 && dtype <= TENON_C128 && static_cast<DType>(dtype) != DType::String;
  return is_known ? name(static_cast<DType>(dtype)).data() : nullptr;
}

tenon_status tenon_load(const char* model_name, tenon_model** model) {
  return guard([&] {
    register_ops();
    tenon_model*& made = given(model, "model");  // first, lest what is made is lost
    made = new tenon_model{read_model(&given(model_name, "model_name"))};
  });
}

tenon_status tenon_bind(tenon_model* model, const char* dimension, int64_t size) {
  return guard([&] {
    std::unique_ptr<Graph>& graph = given(model, "model").graph;
    const std::string symbol = &given(dimension, "dimension");
    std::set<std::string> symbols;
    for (Value input : graph->inputs())
      symbols.merge(symbols_of(input.type()));
    if (!symbols.contains(symbol))
      throw user_error("no input has a dimension {}", symbol);
    if (size < 0)
      throw user_error("the dimension {} cannot be {}", symbol, size);
    graph = graph->bind({{symbol, Dim(size)}});
  });
}

void tenon_free_model(tenon_model* model) { delete model; }

tenon_status tenon_compile(const tenon_model* model, const tenon_compile_options* options,
                           tenon_program** program) {
  return guard([&] {
    const std::unique_ptr<Graph> graph = given(model, "model").graph->clone();
    tenon_program*& made = given(program, "program");  // first, lest what is made is lost
    const tenon_compile_options asked = read_options(options);
    const NumericsBudget numerics = budget_of(asked);
    Journal journal(numerics);
    optimize(*graph, journal);
    made = new tenon_program(compile(*graph, api::default_context(numerics, precision_of(asked))));
  });
}

void tenon_free_program(tenon_program* program) { delete program; }

size_t tenon_count_inputs(const tenon_program* program) {
  return found_in<size_t>(program, [](const tenon_program& each) { return each.inputs.size(); });
}
size_t tenon_count_outputs(const tenon_program* program) {
  return found_in<size_t>(program, [](const tenon_program& each) { return each.outputs.size(); });
}

const tenon_port* tenon_input(const tenon_program* program, size_t number) {
  return found_in<const tenon_port*>(program, [&](const tenon_program& each) {
    return number < each.input_ports.size() ? &each.input_ports[number] : nullptr;
  });
}

const tenon_port* tenon_output(const tenon_program* program, size_t number) {
  return found_in<const tenon_port*>(program, [&](const tenon_program& each) {
    return number < each.output_ports.size() ? &each.output_ports[number] : nullptr;
  });
}

tenon_status tenon_run(const tenon_program* program, const tenon_tensor* inputs, size_t input_count,
                       tenon_tensor* outputs, size_t output_count, const tenon_run_options* options) {
  return guard([&] {
    if (input_count > 0)
      given(inputs, "inputs");
    if (output_count > 0)
      given(outputs, "outputs");
    given(program, "program").run({inputs, input_count}, {outputs, output_count}, run_options(options));
  });
}
