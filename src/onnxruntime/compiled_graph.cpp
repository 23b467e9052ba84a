#include "onnxruntime/compiled_graph.h"

#include <algorithm>

#include "onnxruntime/values.h"
#include "tensor/packing.h"

namespace tenon::onnxruntime {
namespace {

size_t find_name(const std::vector<Ort::ConstValueInfo>& values, const std::string& name) {
  const auto found =
      std::ranges::find_if(values, [&](const Ort::ConstValueInfo& value) { return value.GetName() == name; });
  if (found == values.end())
    throw user_error("the program has a \"{}\", but the node that stands for it does not", name);
  return static_cast<size_t>(found - values.begin());
}

// Whether its elements lie in ONNX Runtime's memory as they do in ours.
bool is_shared(DType dtype) {
  return dtype != DType::String && packed_size(dtype, 8) == static_cast<uint64_t>(8 * info(dtype).bytes);
}

}  // namespace

CompiledGraph::CompiledGraph(std::shared_ptr<const runtime::Executor> program, const Ort::ConstNode& node,
                             int threads)
    : program_(std::move(program)), threads_(threads) {
  const std::vector<Ort::ConstValueInfo> inputs = node.GetInputs(), outputs = node.GetOutputs();
  for (const InputPort& input : program_->program().inputs)
    inputs_.push_back(find_name(inputs, input.name));
  for (const std::string& name : program_->program().output_names)
    outputs_.push_back(find_name(outputs, name));
}

void CompiledGraph::run(const Ort::KernelContext& call) const {
  Data inputs;
  inputs.reserve(inputs_.size());
  for (const size_t input : inputs_)
    inputs.emplace_back(view_of(call.GetInput(input)));
  const runtime::RunOptions options{.seed = runs_++, .threads = threads_};
  if (const std::optional<std::vector<Extents>> sizes = program_->output_extents(inputs)) {
    run_into(call, inputs, *sizes, options);
    return;
  }
  const Data results = program_->run(inputs, options);
  for (size_t i = 0; i < outputs_.size(); ++i)
    copy_to(results[i].tensor(), call.GetOutput(outputs_[i], results[i].tensor().extents()));
}

// Outputs are computed where ONNX Runtime wants them.
void CompiledGraph::run_into(const Ort::KernelContext& call, const Data& inputs,
                             const std::vector<Extents>& sizes, const runtime::RunOptions& options) const {
  const runtime::Program& program = program_->program();
  const auto dtype = [&](size_t i) { return program.slots[program.outputs[i]].type.as_tensor().dtype; };
  std::vector<void*> destinations;
  std::vector<std::pair<size_t, Tensor>> copied;  // outputs whose elements lie otherwise there
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Ort::UnownedValue output = call.GetOutput(outputs_[i], sizes[i]);
    if (is_shared(dtype(i))) {
      destinations.push_back(output.GetTensorMutableRawData());
    } else {
      copied.emplace_back(i, Tensor(dtype(i), sizes[i]));
      destinations.push_back(copied.back().second.mutable_bytes().data());
    }
  }
  program_->run_into(inputs, destinations, options);
  for (const auto& [i, tensor] : copied)
    copy_to(tensor, call.GetOutput(outputs_[i], sizes[i]));
}

}  // namespace tenon::onnxruntime
