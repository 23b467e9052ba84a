#include "codegen/run_kernel.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/generate.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen {

using runtime::KernelFunction;

namespace {

bool can_compile(const std::vector<loops::Statement>& body) {
  return std::all_of(body.begin(), body.end(), [](const loops::Statement& statement) {
    if (const auto* local = std::get_if<loops::Local>(&statement))
      return loops::has_code(local->buffer.dtype);
    const auto* inner = body_of(statement);
    return !std::holds_alternative<loops::Call>(statement) &&
           !std::holds_alternative<loops::Copy>(statement) && (inner == nullptr || can_compile(*inner));
  });
}

int64_t evaluated(const Dim& dim, const std::map<std::string, int64_t>& sizes) {
  const std::optional<int64_t> value = dim.evaluate(sizes);
  if (!value)
    throw user_error("size {} is unbound", dim);
  return *value;
}

}  // namespace

bool can_compile(const loops::Kernel& kernel) {
  const auto all = [](const std::vector<loops::Buffer>& buffers) {
    return std::all_of(buffers.begin(), buffers.end(),
                       [](const loops::Buffer& each) { return loops::has_code(each.dtype); });
  };
  return all(kernel.inputs) && all(kernel.outputs) && can_compile(kernel.body);
}

std::vector<Tensor> run_compiled(const loops::Kernel& kernel, const std::vector<Tensor>& inputs,
                                 const std::map<std::string, int64_t>& sizes, const Target& target) {
  const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(kernel);
  Jit jit;
  const std::vector<KernelFunction> functions = jit.load(generate_object(kernel, target));
  std::vector<std::byte*> buffers;
  for (const Tensor& input : inputs)
    buffers.push_back(const_cast<std::byte*>(input.bytes().data()));
  std::vector<Tensor> outputs;
  for (const loops::Buffer& buffer : kernel.outputs) {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(evaluated(size, sizes));
    outputs.emplace_back(buffer.dtype, extents);
    buffers.push_back(outputs.back().mutable_bytes().data());
  }
  std::vector<int64_t> numbers;
  for (const std::string& symbol : kernel.size_symbols())
    numbers.push_back(evaluated(Dim::symbol(symbol), sizes));
  for (size_t i = 0; i < regions.size(); ++i) {
    std::vector<std::byte> scratch(
        static_cast<size_t>(evaluated(loops::scratch_bytes(regions[i]), sizes) + kCacheLine));
    void* start = scratch.data();
    size_t space = scratch.size();
    auto* aligned = static_cast<std::byte*>(std::align(kCacheLine, 1, start, space));
    if (functions[i](buffers.data(), numbers.data(), aligned, 0, evaluated(regions[i].iterations, sizes)) !=
        0)
      throw user_error("what the kernel requires does not hold");
  }
  return outputs;
}

}  // namespace tenon::codegen
