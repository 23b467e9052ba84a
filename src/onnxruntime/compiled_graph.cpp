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
  find_fixed_ports();
}

void CompiledGraph::find_fixed_ports() {
  if (!program_->has_fixed_sizes())
    return;
  const runtime::Program& program = program_->program();
  const auto port_of = [](const Type& type) {
    return FixedPort{type.as_tensor().dtype, *type.as_tensor().shape.extents()};
  };
  for (const InputPort& input : program.inputs)
    fixed_inputs_.push_back(port_of(input.type));
  for (const size_t slot : program.outputs)
    fixed_outputs_.push_back(port_of(program.slots[slot].type));
  const auto is_port_shared = [](const FixedPort& port) { return is_shared(port.dtype); };
  is_fixed_ = std::ranges::all_of(fixed_inputs_, is_port_shared) &&
              std::ranges::all_of(fixed_outputs_, is_port_shared);
}

bool CompiledGraph::run_fixed(const Ort::KernelContext& call, const runtime::RunOptions& options) const {
  std::vector<const void*> inputs(inputs_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Ort::ConstValue value = call.GetInput(inputs_[i]);
    const Ort::TensorTypeAndShapeInfo type = value.GetTensorTypeAndShapeInfo();
    if (dtype_of(type.GetElementType()) != fixed_inputs_[i].dtype ||
        type.GetShape() != fixed_inputs_[i].extents)
      return false;
    inputs[i] = value.GetTensorRawData();
  }
  std::vector<void*> outputs(outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = call.GetOutput(outputs_[i], fixed_outputs_[i].extents).GetTensorMutableRawData();
  program_->run_into(inputs, outputs, options);
  return true;
}

void CompiledGraph::run(const Ort::KernelContext& call) const {
  const runtime::RunOptions options{.seed = runs_++, .threads = threads_};
  if (is_fixed_ && run_fixed(call, options))
    return;
  Data inputs;
  inputs.reserve(inputs_.size());
  for (const size_t input : inputs_)
    inputs.emplace_back(view_of(call.GetInput(input)));
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
