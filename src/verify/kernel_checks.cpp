#include "verify/kernel_checks.h"

#include "base/error.h"
#include "codegen/run_kernel.h"
#include "loops/interpret.h"
#include "verify/rewrite_checks.h"
#include "verify/sample_inputs.h"

namespace tenon {

using loops::Kernel;

namespace {

using Sizes = std::map<std::string, int64_t>;

// Of dynamic sizes; all others are known.
constexpr int64_t kDynamicSize = 3;

Sizes sizes_of(const Kernel& kernel) {
  Sizes sizes;
  for (const std::string& symbol : kernel.size_symbols())
    sizes.emplace(symbol, kDynamicSize);
  return sizes;
}

std::vector<Tensor> make_inputs(const Kernel& kernel, const Sizes& sizes, int64_t integers) {
  const std::map<std::string, Dim> replacements(sizes.begin(), sizes.end());
  std::vector<Tensor> inputs;
  for (const loops::Buffer& buffer : kernel.inputs) {
    std::vector<Dim> dims;
    for (const Dim& size : buffer.sizes)
      dims.push_back(size.substitute(replacements));
    inputs.push_back(sample_input(Type::tensor(buffer.dtype, dims).as_tensor(), integers));
  }
  return inputs;
}

struct Interpreted {
  Sizes sizes;
  std::vector<Tensor> inputs, outputs;
};

// Nothing where the kernel cannot be interpreted. Integers may be indices, of which 0 is never outside.
std::optional<Interpreted> interpret_on_samples(const Kernel& kernel) {
  const Sizes sizes = sizes_of(kernel);
  for (const int64_t integers : {kIntegers, int64_t{1}}) {
    try {
      std::vector<Tensor> inputs = make_inputs(kernel, sizes, integers);
      std::vector<Tensor> outputs = loops::interpret(kernel, inputs, sizes);
      return Interpreted{sizes, std::move(inputs), std::move(outputs)};
    } catch (const UserError&) {
      continue;
    }
  }
  return std::nullopt;
}

bool have_the_same_buffers(const Kernel& one, const Kernel& other) {
  const auto are_alike = [](const loops::Buffer& a, const loops::Buffer& b) {
    return a.dtype == b.dtype && a.sizes == b.sizes;
  };
  return std::ranges::equal(one.inputs, other.inputs, are_alike) &&
         std::ranges::equal(one.outputs, other.outputs, are_alike);
}

// The first output that differs.
Check compare_outputs(const Kernel& kernel, const std::vector<Tensor>& actual,
                      const std::vector<Tensor>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    Check check = compare_by_class(actual[i], expected[i], Numerics::Reassociates, tolerance);
    if (check.verdict == Verdict::Failed) {
      check.detail = kernel.outputs[i].name + ": " + check.detail;
      return check;
    }
  }
  return {};
}

std::optional<std::vector<Tensor>> run_code(const Kernel& kernel, const std::vector<Tensor>& inputs,
                                            const Sizes& sizes, const Target& target) {
  if (!codegen::can_compile(kernel))
    return std::nullopt;
  return codegen::run_compiled(kernel, inputs, sizes, target);
}

// What is wrong with the schedule. One that can no longer be interpreted is wrong.
Check check_schedule(const Kernel& unscheduled, const Kernel& scheduled, double tolerance) {
  const std::optional<Interpreted> expected = interpret_on_samples(unscheduled);
  if (!expected)
    return {};
  try {
    return compare_outputs(scheduled, loops::interpret(scheduled, expected->inputs, expected->sizes),
                           expected->outputs, tolerance);
  } catch (const UserError& error) {
    return {.verdict = Verdict::Failed, .detail = error.what()};
  }
}

Check check_code(const Kernel& scheduled, const Target& target, const KernelChecksOptions& options) {
  const std::optional<Interpreted> expected = interpret_on_samples(scheduled);
  if (!expected)
    return {};
  const auto actual = options.run_code ? options.run_code(scheduled, expected->inputs, expected->sizes)
                                       : run_code(scheduled, expected->inputs, expected->sizes, target);
  return actual ? compare_outputs(scheduled, *actual, expected->outputs, options.tolerance) : Check{};
}

}  // namespace

std::string_view name(KernelFault fault) {
  return fault == KernelFault::Schedule ? "schedule" : "code generation";
}

std::optional<WrongKernel> find_wrong_kernel(const std::vector<Kernel>& unscheduled,
                                             const std::vector<Kernel>& scheduled, const Target& target,
                                             const KernelChecksOptions& options) {
  CHECK(unscheduled.size() == scheduled.size(), "{} nests for {} kernels", unscheduled.size(),
        scheduled.size());
  for (size_t i = 0; i < scheduled.size(); ++i) {
    if (options.before_kernel)
      options.before_kernel(i);
    if (loops::calls_routines(unscheduled[i].body) || loops::calls_routines(scheduled[i].body))
      continue;
    if (have_the_same_buffers(unscheduled[i], scheduled[i]))
      if (const Check check = check_schedule(unscheduled[i], scheduled[i], options.tolerance);
          check.verdict == Verdict::Failed)
        return WrongKernel{i, KernelFault::Schedule, check.error, check.detail};
    if (const Check check = check_code(scheduled[i], target, options); check.verdict == Verdict::Failed)
      return WrongKernel{i, KernelFault::CodeGeneration, check.error, check.detail};
  }
  return std::nullopt;
}

}  // namespace tenon
