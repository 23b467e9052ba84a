#include "codegen/run_kernel.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "loops/parallel_regions.h"
#include "runtime/cpu/thread_pool.h"

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

int64_t padded(int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

bool can_compile(const loops::Kernel& kernel) {
  const auto all = [](const std::vector<loops::Buffer>& buffers) {
    return std::all_of(buffers.begin(), buffers.end(),
                       [](const loops::Buffer& each) { return loops::has_code(each.dtype); });
  };
  return all(kernel.inputs) && all(kernel.outputs) && can_compile(kernel.body);
}

LoadedKernel::LoadedKernel(const loops::Kernel& kernel, std::vector<Tensor> inputs,
                           const std::map<std::string, int64_t>& sizes, const Target& target)
    : inputs_(std::move(inputs)) {
  const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(kernel);
  const std::vector<KernelFunction> functions = jit_.load(generate_object(kernel, target));
  for (size_t i = 0; i < regions.size(); ++i)
    parts_.push_back({.function = functions[i],
                      .iterations = evaluated(regions[i].iterations, sizes),
                      .scratch_bytes = padded(evaluated(loops::scratch_bytes(regions[i]), sizes))});
  for (const Tensor& input : inputs_)
    buffers_.push_back(const_cast<std::byte*>(input.bytes().data()));
  for (const loops::Buffer& buffer : kernel.outputs) {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(evaluated(size, sizes));
    outputs_.emplace_back(buffer.dtype, extents);
    buffers_.push_back(outputs_.back().mutable_bytes().data());
  }
  for (const std::string& symbol : kernel.size_symbols())
    sizes_.push_back(evaluated(Dim::symbol(symbol), sizes));
}

// Several tasks for each thread, so that none waits long for the last.
void LoadedKernel::run(int threads) {
  runtime::ThreadPool& pool = runtime::shared_pool(threads);
  std::atomic<bool> failed = false;
  for (const Part& part : parts_) {
    const int64_t tasks = threads == 1 ? 1 : std::min<int64_t>(part.iterations, 8 * threads);
    scratch_.resize(
        std::max(scratch_.size(), static_cast<size_t>(part.scratch_bytes * threads + kCacheLine)));
    void* aligned = scratch_.data();
    size_t space = scratch_.size();
    auto* scratch = static_cast<std::byte*>(std::align(kCacheLine, 1, aligned, space));
    pool.run(tasks, [&](int64_t task, int worker) {
      if (part.function(buffers_.data(), sizes_.data(), scratch + worker * part.scratch_bytes,
                        part.iterations * task / tasks, part.iterations * (task + 1) / tasks) != 0)
        failed = true;
    });
  }
  if (failed)
    throw user_error("what the kernel requires does not hold");
}

std::vector<Tensor> run_compiled(const loops::Kernel& kernel, const std::vector<Tensor>& inputs,
                                 const std::map<std::string, int64_t>& sizes, const Target& target) {
  LoadedKernel loaded(kernel, inputs, sizes, target);
  loaded.run(1);
  return loaded.outputs();
}

}  // namespace tenon::codegen
