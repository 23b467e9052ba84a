// interpret_scheduled.h — runs a scheduled graph without code: the interpreter of loops runs each kernel as
// it would be handed to the code generator, so that schedules for any target are tested on every host.
#pragma once

#include "compiler/compile.h"
#include "ir/evaluate.h"
#include "ir/fit.h"
#include "loops/interpret.h"

namespace tenon {

class InterpretedGraph {
 public:
  InterpretedGraph(const Graph& graph, const compiler::CompileContext& context)
      : scheduled_(schedule_graph(graph, context)), program_(*scheduled_.program), context_(context) {}

  // About how many elements the kernels compute, without those of nested graphs.
  int64_t work(const Data& inputs) const {
    const Bindings bindings = bind_inputs(program_.name, program_.inputs, inputs);
    int64_t sum = 0;
    for (const runtime::Step& step : program_.steps)
      if (const auto* kernel = std::get_if<runtime::KernelStep>(&step))
        sum += kernel->work.evaluate(bindings).value_or(0);
    return sum;
  }

  // What a kernel does wrong is an error that shows it.
  Data run(const Data& inputs, RandomGenerator& random) {
    bindings_ = bind_inputs(program_.name, program_.inputs, inputs);
    data_.assign(program_.slots.size(), Datum());
    for (size_t i = 0; i < data_.size(); ++i) {
      const runtime::Slot& slot = program_.slots[i];
      if (slot.home == runtime::Home::Input && !slot.alias)
        data_[i] = inputs[static_cast<size_t>(slot.number)];
      else if (slot.home == runtime::Home::Constant && !slot.alias)
        data_[i] = scheduled_.constants[i];
    }
    size_t kernel = 0;
    for (const runtime::Step& step : program_.steps) {
      if (const auto* each = std::get_if<runtime::KernelStep>(&step))
        run_kernel(scheduled_.kernels[kernel++], *each);
      else if (const auto* alias = std::get_if<runtime::AliasStep>(&step))
        data_[alias->to] = as_slot(alias->to, data_[alias->from].tensor());
      else if (const auto* host = std::get_if<runtime::HostStep>(&step))
        run_on_host(*host, random);  // copies to and from a device change nothing
    }
    Data outputs;
    for (size_t slot : program_.outputs)
      outputs.push_back(data_[slot]);
    return outputs;
  }

 private:
  static Tensor view(const Tensor& tensor, DType dtype, const std::vector<Dim>& dims, const Bindings& sizes) {
    Extents extents;
    for (const Dim& dim : dims)
      extents.push_back(*dim.evaluate(sizes));
    return {dtype, extents, std::make_shared<Tensor>(tensor), tensor.bytes()};
  }
  Tensor as_slot(size_t slot, const Tensor& tensor) const {
    const TensorType& type = program_.slots[slot].type.as_tensor();
    return view(tensor, type.dtype, type.shape.dims(), bindings_);
  }

  void run_kernel(const loops::Kernel& kernel, const runtime::KernelStep& step) {
    const std::vector<std::string> symbols = kernel.size_symbols();
    Bindings sizes;
    for (size_t i = 0; i < symbols.size(); ++i)
      sizes.emplace(symbols[i], *step.sizes[i].evaluate(bindings_));
    std::vector<Tensor> inputs;  // whose dimensions the kernel may have merged
    for (size_t i = 0; i < step.reads.size(); ++i)
      inputs.push_back(
          view(data_[step.reads[i]].tensor(), kernel.inputs[i].dtype, kernel.inputs[i].sizes, sizes));
    const std::vector<Tensor> outputs =
        with_context([&] { return print(kernel); }, [&] { return interpret(kernel, inputs, sizes); });
    for (size_t i = 0; i < outputs.size(); ++i)
      data_[step.writes[i]] = as_slot(step.writes[i], outputs[i]);
  }

  void run_on_host(const runtime::HostStep& step, RandomGenerator& random) {
    Data operands;
    for (size_t slot : step.reads)
      operands.push_back(data_[slot]);
    const Call::RunRegion run_region = [&](std::string_view region, const Data& inputs) {
      return InterpretedGraph(step.call->node().region(region), context_).run(inputs, random);
    };
    Data results =
        step.call->eval(operands, random, step.call->node().regions().empty() ? nullptr : &run_region);
    for (size_t i = 0; i < results.size(); ++i) {
      const Type& type = program_.slots[step.writes[i]].type;
      if (!fits(results[i], type, bindings_) && !resize_empty(results[i], type, bindings_))
        throw user_error("{}: result {} should be {}", step.call->node().describe(), i, type);
      data_[step.writes[i]] = std::move(results[i]);
    }
  }

  compiler::ScheduledGraph scheduled_;
  const runtime::Program& program_;
  compiler::CompileContext context_;
  Bindings bindings_;
  Data data_;  // of the slots
};

}  // namespace tenon
