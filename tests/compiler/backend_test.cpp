// backend_test.cpp — a second backend, written against the interfaces alone: its code is the text of a
// kernel, and its device interprets that.
#include "compiler/backend.h"

#include "base/error.h"
#include "compiler/expect_compiled.h"
#include "frontends/builtin/builtin.h"
#include "loops/interpret.h"
#include "loops/parallel_regions.h"
#include "schedule/cpu/schedule_kernel.h"

namespace tenon {
namespace {

class InterpretedKernel : public runtime::LoadedKernel {
 public:
  explicit InterpretedKernel(const std::string& text) : kernel_(loops::parse_checked_kernel(text)) {}

  bool launch(const runtime::KernelStep& step, const runtime::Launch& launch,
              std::span<std::byte* const> buffers, int, runtime::Workspace&) const override {
    std::map<std::string, int64_t> sizes;
    const std::vector<std::string> symbols = kernel_.size_symbols();
    for (size_t i = 0; i < symbols.size(); ++i)
      sizes.emplace(symbols[i], launch.sizes()[i]);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < step.reads.size(); ++i)
      inputs.push_back(view(kernel_.inputs[i], buffers[i], sizes));
    const std::vector<Tensor> outputs = loops::interpret(kernel_, inputs, sizes);
    for (size_t i = 0; i < outputs.size(); ++i)
      std::ranges::copy(outputs[i].bytes(), buffers[step.reads.size() + i]);
    return true;
  }

 private:
  static Tensor view(const loops::Buffer& buffer, std::byte* memory,
                     const std::map<std::string, int64_t>& sizes) {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(size.evaluate(sizes).value());
    const auto bytes = static_cast<size_t>(element_count(extents) * info(buffer.dtype).bytes);
    return {buffer.dtype, extents, nullptr, {memory, bytes}};
  }

  loops::Kernel kernel_;
};

class InterpretingDevice : public runtime::Device {
 public:
  std::unique_ptr<runtime::LoadedKernel> load(const runtime::KernelCode& code) override {
    return std::make_unique<InterpretedKernel>(code.bytes);
  }
  std::unique_ptr<runtime::Workspace> make_workspace() const override {
    return std::make_unique<runtime::Workspace>();
  }
};

const compiler::Backend kInterpreting = {
    .name = "interpreted",
    .schedule = schedule::schedule_kernel,
    .generate = [](const loops::Kernel& kernel, const Target&,
                   const std::optional<codegen::ObjectCache>&) -> runtime::KernelCode {
      return {loops::print(kernel), loops::parallel_regions_of(kernel).size()};
    },
    .make_device = []() -> std::shared_ptr<runtime::Device> {
      return std::make_shared<InterpretingDevice>();
    }};

TEST(Backend, MayInterpretKernels) {
  compiler::CompileContext context = without_cache();
  context.backend = &kInterpreting;
  expect_as_evaluated(*read(R"(graph g(%x: f32[n,9], %w1: f32[9,7], %w2: f32[7]) {
    %0 = matmul(%x, %w1)
    %1 = add(%0, %w2)
    %2 = softmax(%1, axis=-1)
    return %2
  })"),
                      {{"n", 5}}, context);
}

// With weights that are computed first, and nested graphs.
TEST(Backend, IsThatOfThePreparePartAndOfNestedGraphs) {
  compiler::CompileContext context = without_cache();
  context.backend = &kInterpreting;
  expect_as_evaluated(*read(R"(graph g(%x: f32[3,4], %w1: f32[4], %w: f32[4,4]) {
    %1 = unsqueeze(%w1, axes=[1])
    %2 = mul(%w, %1)
    %3 = matmul(%x, %2)
    return %3
  })"),
                      {}, context);
}

TEST(Backend, OfThisCpuIsTheFirst) {
  EXPECT_EQ(compiler::default_backend().name, "cpu");
  EXPECT_EQ(&compiler::default_backend(), &compiler::backends().front());
}

}  // namespace
}  // namespace tenon
