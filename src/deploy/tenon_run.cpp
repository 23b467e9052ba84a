// tenon_run.cpp — tenon-run: runs a saved program where nothing of Tenon is installed.
//
// 0 done, 2 the input is at fault, 3 our bug.
#include <tenon/tenon.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "ir/summary.h"
#include "tensor/npy.h"

namespace {

using namespace tenon;

constexpr std::string_view kUsage =
    "usage: tenon-run PROGRAM.tnp [OPTION…]\n"
    "runs a program that tenon compile has saved, and shows what comes out; without inputs, shows what it "
    "takes\n"
    "\n"
    "  --inputs FILE    an .npz with the inputs, by name or as input_0, …\n"
    "  --outputs FILE   writes the outputs to this .npz\n"
    "  --threads N      how many threads run it; 0: one for each core (default)\n"
    "  --seed N         of the model's random ops (default 0)\n"
    "  --runs N         runs it so often, and shows how long opening, the first and the median run take\n"
    "  --check          reads all weights first, to find out whether they are damaged\n"
    "  --version        prints the version\n"
    "\n"
    "TENON_TARGET names the target whose code is taken; otherwise the best is that this machine runs.\n";

struct Options {
  std::string program, inputs, outputs;
  int64_t threads = 0, seed = 0, runs = 0;
  bool checks_weights = false;
};

int64_t parse_number(std::string_view option, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw user_error("{} takes a number of 0 or more, not '{}'", option, text);
  return number;
}

Options parse_options(std::span<char* const> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == arguments.size())
        throw user_error("{} takes a value", argument);
      return arguments[++i];
    };
    if (argument == "--inputs")
      options.inputs = value();
    else if (argument == "--outputs")
      options.outputs = value();
    else if (argument == "--threads")
      options.threads = parse_number(argument, value());
    else if (argument == "--seed")
      options.seed = parse_number(argument, value());
    else if (argument == "--runs")
      options.runs = parse_number(argument, value());
    else if (argument == "--check")
      options.checks_weights = true;
    else if (argument.starts_with("-") || !options.program.empty())
      throw user_error("'{}' is not understood\n{}", argument, kUsage);
    else
      options.program = argument;
  }
  if (options.program.empty())
    throw user_error("a program is wanted\n{}", kUsage);
  if (!options.outputs.empty() && !options.outputs.ends_with(".npz"))
    throw user_error("cannot write {}: its name must end in .npz", options.outputs);
  return options;
}

void expect_ok(tenon_status status) {
  if (status == TENON_INTERNAL_ERROR)
    throw InternalError(tenon_error_message());
  if (status != TENON_OK)
    throw UserError(tenon_error_message());
}

struct FreeProgram {
  void operator()(tenon_program* program) const { tenon_free_program(program); }
};
using Program = std::unique_ptr<tenon_program, FreeProgram>;

Program open(const Options& options) {
  const tenon_open_options how = {.struct_size = sizeof how,
                                  .target = std::getenv("TENON_TARGET"),
                                  .check_weights = options.checks_weights ? 1 : 0};
  tenon_program* program = nullptr;
  expect_ok(tenon_open(options.program.c_str(), &how, &program));
  return Program(program);
}

std::string describe_inputs(const tenon_program& program) {
  std::string text;
  for (size_t i = 0; i < tenon_program_count_inputs(&program); ++i) {
    const tenon_port& port = *tenon_program_input(&program, i);
    text += fmt::format("\n  {}: {}", port.name, port.type);
  }
  return text;
}

std::vector<Tensor> read_inputs(const Options& options, const tenon_program& program) {
  const size_t count = tenon_program_count_inputs(&program);
  if (options.inputs.empty() && count > 0)
    throw user_error("{} takes these inputs, which --inputs gives:{}", options.program,
                     describe_inputs(program));
  const NamedTensors arrays = options.inputs.empty() ? NamedTensors() : read_npz(options.inputs);
  const auto find = [&](const std::string& name) {
    return std::ranges::find(arrays, name, &NamedTensors::value_type::first);
  };
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < count; ++i) {
    const tenon_port& port = *tenon_program_input(&program, i);
    auto found = find(port.name);
    if (found == arrays.end())
      found = find(fmt::format("input_{}", i));
    if (found == arrays.end())
      throw user_error("{}: there is no \"{}\" (nor input_{}) for the input of type {}", options.inputs,
                       port.name, i, port.type);
    inputs.push_back(found->second);
  }
  return inputs;
}

// An output, with room that grows with what a run asks for.
struct Output {
  Extents sizes = {};
  std::vector<std::byte> memory = {};
  DType dtype = DType::F32;
};

class Runner {
 public:
  Runner(const Options& options, const tenon_program& program, const std::vector<Tensor>& inputs)
      : options_(options), program_(program), outputs_(tenon_program_count_outputs(&program)) {
    for (const Tensor& tensor : inputs) {
      if (tensor.dtype() == DType::String)
        throw user_error("{}: strings cannot be passed to a saved program", options.inputs);
      inputs_.push_back({.struct_size = sizeof(tenon_tensor),
                         .data = const_cast<std::byte*>(tensor.bytes().data()),
                         .bytes = tensor.bytes().size(),
                         .dtype = static_cast<int32_t>(tensor.dtype()),
                         .rank = static_cast<int32_t>(tensor.rank()),
                         .sizes = const_cast<int64_t*>(tensor.extents().data()),
                         .strides = nullptr,
                         .device = {}});
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      describe(*tenon_program_output(&program, i), outputs_[i]);
  }

  void run() {
    tenon_status status = try_run();
    // Sizes that are known only now are written, and the memory made for them.
    for (int attempt = 0; status == TENON_USER_ERROR && make_room() && attempt < 2; ++attempt)
      status = try_run();
    expect_ok(status);
  }

  NamedTensors results() const {
    NamedTensors results;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      const auto bytes = std::make_shared<std::vector<std::byte>>(output.memory);
      results.emplace_back(tenon_program_output(&program_, i)->name,
                           Tensor(output.dtype, sizes_of(i), bytes, std::span(*bytes).first(bytes_of(i))));
    }
    return results;
  }

 private:
  static void describe(const tenon_port& port, Output& output) {
    constexpr size_t kMostAxes = 1024;  // of any tensor
    output.dtype = static_cast<DType>(port.dtype);
    output.sizes.resize(port.rank < 0 ? kMostAxes : static_cast<size_t>(port.rank));
    const Extents known(port.sizes, port.sizes + std::max(port.rank, 0));
    if (port.rank >= 0 && std::ranges::none_of(known, [](int64_t size) { return size < 0; }))
      output.memory.resize(static_cast<size_t>(element_count(known) * info(output.dtype).bytes));
  }

  Extents sizes_of(size_t i) const {
    return {outputs_[i].sizes.begin(), outputs_[i].sizes.begin() + ranks_[i]};
  }
  size_t bytes_of(size_t i) const {
    return static_cast<size_t>(element_count(sizes_of(i)) * info(outputs_[i].dtype).bytes);
  }

  tenon_status try_run() {
    std::vector<tenon_tensor> outputs;
    for (Output& output : outputs_)
      outputs.push_back({.struct_size = sizeof(tenon_tensor),
                         .data = output.memory.data(),
                         .bytes = output.memory.size(),
                         .dtype = static_cast<int32_t>(output.dtype),
                         .rank = static_cast<int32_t>(output.sizes.size()),
                         .sizes = output.sizes.data(),
                         .strides = nullptr,
                         .device = {}});
    const tenon_run_options how = {.struct_size = sizeof how,
                                   .threads = options_.threads,
                                   .seed = static_cast<uint64_t>(options_.seed),
                                   .stream = nullptr};
    for (Output& output : outputs_)
      std::ranges::fill(output.sizes, -1);
    const tenon_status status =
        tenon_run(&program_, inputs_.data(), inputs_.size(), outputs.data(), outputs.size(), &how);
    ranks_.clear();
    for (const tenon_tensor& output : outputs)
      ranks_.push_back(output.rank);
    return status;
  }

  // Whether some output needs more than it has, which it has then.
  bool make_room() {
    bool has_grown = false;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Extents sizes = sizes_of(i);
      if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }) ||
          bytes_of(i) <= outputs_[i].memory.size())
        continue;
      outputs_[i].memory.resize(bytes_of(i));
      has_grown = true;
    }
    return has_grown;
  }

  const Options& options_;
  const tenon_program& program_;
  std::vector<tenon_tensor> inputs_;
  std::vector<Output> outputs_;
  std::vector<int32_t> ranks_;
};

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(const Options& options) {
  Program program;
  const double opening = seconds_of([&] { program = open(options); });
  const std::vector<Tensor> inputs = read_inputs(options, *program);
  Runner runner(options, *program, inputs);
  const double first = seconds_of([&] { runner.run(); });
  std::vector<double> more;
  for (int64_t i = 1; i < options.runs; ++i)
    more.push_back(seconds_of([&] { runner.run(); }));
  const NamedTensors results = runner.results();
  if (!options.outputs.empty())
    write_npz(options.outputs, results);
  for (const auto& [name, tensor] : results)
    std::fputs(fmt::format("{}: {}\n", name, summary(tensor)).c_str(), stdout);
  if (options.runs == 0)
    return;
  std::fputs(fmt::format("open {}, first run {}\n", format_seconds(opening), format_seconds(first)).c_str(),
             stdout);
  if (more.empty())
    return;
  const auto middle = more.begin() + std::ssize(more) / 2;
  std::ranges::nth_element(more, middle);
  std::fputs(fmt::format("median of {} more runs {}\n", more.size(), format_seconds(*middle)).c_str(),
             stdout);
}

int run_program(std::span<char* const> arguments) {
  if (arguments.size() == 1 &&
      (std::string_view(arguments[0]) == "--help" || std::string_view(arguments[0]) == "-h")) {
    std::fputs(std::string(kUsage).c_str(), stdout);
    return 0;
  }
  if (arguments.size() == 1 && std::string_view(arguments[0]) == "--version") {
    std::fputs(fmt::format("tenon-run {}\n", tenon_version()).c_str(), stdout);
    return 0;
  }
  run(parse_options(arguments));
  return std::fflush(stdout) == 0 ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(std::span(argv, static_cast<size_t>(argc)).subspan(1));
  } catch (const UserError& error) {
    std::fprintf(stderr, "tenon-run: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tenon-run: there is not enough memory for this\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon-run: internal error: %s\n", error.what());
    return 3;
  }
}
