// decode.cpp — how long a step of an LLM decoder takes, whose cache of keys and values grows by a token each
// step.
//
//   bench_decode MODEL.onnx [--steps N] [--prompt N] [--threads N] [--outputs FILE]
//
// The model is compiled once. The first step takes all tokens of the prompt, and each later one a single
// token; what a step gives as present… the next takes as past…, in the order of the inputs and outputs. FILE
// gets all outputs of every step, which bench/decode.py compares with ONNX Runtime's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <tenon/tenon.hpp>

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

struct Options {
  std::string model, outputs;
  int64_t steps = 64, prompt = 8, threads = 0;
};

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&] { return std::string(i + 1 < count ? words[++i] : "0"); };
    if (word == "--steps")
      options.steps = std::stoll(next());
    else if (word == "--prompt")
      options.prompt = std::stoll(next());
    else if (word == "--threads")
      options.threads = std::stoll(next());
    else if (word == "--outputs")
      options.outputs = next();
    else
      options.model = word;
  }
  if (options.model.empty() || options.steps < 1 || options.prompt < 1)
    throw std::invalid_argument("bench_decode MODEL [--steps N] [--prompt N] [--threads N] [--outputs FILE]");
  return options;
}

int64_t bytes_of(int32_t dtype) {
  switch (dtype) {
    case TENON_F32:
      return 4;
    case TENON_F16:
    case TENON_BF16:
      return 2;
    case TENON_I64:
      return 8;
    default:
      throw std::invalid_argument(std::string("an input or output is ") + tenon_dtype_name(dtype));
  }
}

// An input or output: its memory, which is kept from step to step, and its sizes.
struct Array {
  int32_t dtype = TENON_F32;
  std::vector<std::byte> memory = {};
  std::vector<int64_t> sizes = {};

  int64_t count() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  tenon_tensor tensor() {
    return {.struct_size = sizeof(tenon_tensor),
            .data = memory.data(),
            .bytes = memory.size(),
            .dtype = dtype,
            .rank = static_cast<int32_t>(sizes.size()),
            .sizes = sizes.data(),
            .strides = nullptr,
            .device = {}};
  }
};

// The dimensions that are not fixed are the batch, which is 1, and last the tokens.
Array make_array(const tenon::Port& port, int64_t tokens, int64_t most_tokens) {
  if (!port.sizes)
    throw std::invalid_argument(port.name + " has no rank");
  Array array{.dtype = port.dtype, .sizes = *port.sizes};
  std::replace(array.sizes.begin(), array.sizes.end(), int64_t{-1}, int64_t{1});
  for (size_t i = array.sizes.size(); i-- > 0;)
    if ((*port.sizes)[i] == -1) {
      array.sizes[i] = most_tokens;
      array.memory.resize(static_cast<size_t>(array.count() * bytes_of(array.dtype)));
      array.sizes[i] = tokens;
      return array;
    }
  array.memory.resize(static_cast<size_t>(array.count() * bytes_of(array.dtype)));
  return array;
}

bool is_past(const tenon::Port& port) { return port.name.starts_with("past"); }
bool is_present(const tenon::Port& port) { return port.name.starts_with("present"); }

class Decoder {
 public:
  Decoder(const Options& options, const tenon::Program& program) : options_(options), program_(program) {
    const int64_t most = options.prompt + options.steps;
    for (const tenon::Port& port : program.inputs())
      inputs_.push_back(make_array(port, 0, most));
    for (const tenon::Port& port : program.program().outputs)
      outputs_.push_back(make_array(port, most, most));
    if (std::count_if(program.inputs().begin(), program.inputs().end(), is_past) !=
        std::count_if(program.program().outputs.begin(), program.program().outputs.end(), is_present))
      throw std::invalid_argument("the model has not as many outputs present… as inputs past…");
  }

  // Runs it for the next tokens; how long that took.
  Milliseconds step(int64_t tokens) {
    feed_back();
    fill_inputs(tokens);
    std::vector<tenon_tensor> inputs, outputs;
    for (Array& array : inputs_)
      inputs.push_back(array.tensor());
    for (Array& array : outputs_)
      outputs.push_back(array.tensor());
    const auto start = std::chrono::steady_clock::now();
    program_.run(inputs, outputs, {.threads = options_.threads});
    past_ += tokens;
    return std::chrono::steady_clock::now() - start;
  }

  void write_outputs(std::ostream& to) const {
    for (const Array& array : outputs_)
      to.write(reinterpret_cast<const char*>(array.memory.data()), array.count() * bytes_of(array.dtype));
  }

 private:
  // A mask covers what was as well as what is new; positions go on; the others are tokens, made up by a rule.
  void fill_inputs(int64_t tokens) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const tenon::Port& port = program_.inputs()[i];
      if (is_past(port))
        continue;
      const bool is_mask = port.name.find("mask") != std::string::npos;
      const bool is_position = port.name.find("position") != std::string::npos;
      inputs_[i].sizes = {1, is_mask ? past_ + tokens : tokens};
      auto* elements = reinterpret_cast<int64_t*>(inputs_[i].memory.data());
      for (int64_t k = 0; k < inputs_[i].count(); ++k)
        elements[k] = is_mask ? 1 : is_position ? past_ + k : (past_ + k) * 7919 % 1000;
    }
  }

  void feed_back() {
    if (past_ == 0)
      return;
    size_t output = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_past(program_.inputs()[i]))
        continue;
      while (!is_present(program_.program().outputs[output]))
        ++output;
      std::swap(inputs_[i], outputs_[output++]);
    }
  }

  const Options& options_;
  const tenon::Program& program_;
  std::vector<Array> inputs_, outputs_;
  int64_t past_ = 0;
};

void decode(const Options& options) {
  const tenon::Model model(options.model);
  const auto start = std::chrono::steady_clock::now();
  const tenon::Program program = tenon::compile(model);
  const Milliseconds compiling = std::chrono::steady_clock::now() - start;
  Decoder decoder(options, program);
  std::ofstream file;
  if (!options.outputs.empty())
    file.open(options.outputs, std::ios::binary);
  std::vector<double> times;
  double prompt_time = 0;
  for (int64_t i = 0; i <= options.steps; ++i) {
    const Milliseconds time = decoder.step(i == 0 ? options.prompt : 1);
    if (i == 0)
      prompt_time = time.count();
    else
      times.push_back(time.count());
    if (file.is_open())
      decoder.write_outputs(file);
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "compiled once, in %.0f ms; %lld tokens of prompt in %.2f ms; %lld steps: median %.2f ms, "
      "p95 %.2f ms, min %.2f ms\n",
      compiling.count(), static_cast<long long>(options.prompt), prompt_time,
      static_cast<long long>(options.steps), times[times.size() / 2], times[times.size() * 95 / 100],
      times.front());
}

}  // namespace

int main(int count, char** words) {
  try {
    decode(read_options(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
