#include "cli/compare_kernels.h"

#include "codegen/run_kernel.h"
#include "loops/interpret.h"
#include "tensor/rounding.h"
#include "verify/compare.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {

using codegen::can_compile;
using codegen::run_compiled;
using loops::Kernel;

namespace {

// By how many rounding steps sums of some thousand elements may differ where they change their order.
constexpr double kRoundingSteps = 64;

std::optional<std::string> find_routine(const std::vector<loops::Statement>& body) {
  for (const loops::Statement& statement : body) {
    if (const auto* call = std::get_if<loops::Call>(&statement))
      return call->routine;
    if (const auto* inner = loops::body_of(statement))
      if (std::optional<std::string> routine = find_routine(*inner))
        return routine;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Tensor> make_up_inputs(const Kernel& kernel, const std::map<std::string, int64_t>& sizes) {
  const std::map<std::string, Dim> replacements(sizes.begin(), sizes.end());
  std::vector<Tensor> inputs;
  for (const loops::Buffer& buffer : kernel.inputs) {
    std::vector<Dim> dims;
    for (const Dim& size : buffer.sizes)
      dims.push_back(size.substitute(replacements));
    inputs.push_back(sample_input(Type::tensor(buffer.dtype, dims).as_tensor()));
  }
  return inputs;
}

double check_outputs(const Kernel& kernel, const std::vector<Tensor>& actual,
                     const std::vector<Tensor>& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double tolerance = kRoundingSteps * rounding_step(expected[i].dtype());
    const Comparison comparison = compare(actual[i], expected[i], tolerance);
    CHECK(comparison.agree, "{}: {}", kernel.outputs[i].name, comparison.detail);
    worst = std::max(worst, comparison.worst_error);
  }
  return worst;
}

std::string compare_kernels(const Kernel& before, const Kernel& after,
                            const std::map<std::string, int64_t>& sizes) {
  if (const std::optional<std::string> routine = find_routine(before.body))
    return fmt::format("Not compared: it calls {}.\n", *routine);
  const std::vector<Tensor> inputs = make_up_inputs(before, sizes);
  const std::vector<Tensor> expected = interpret(before, inputs, sizes);
  const double worst = check_outputs(after, interpret(after, inputs, sizes), expected);
  const bool compiled = can_compile(after);
  if (compiled)  // which rounds as the machine does, so that by how much it is off says nothing
    check_outputs(after, run_compiled(after, inputs, sizes, this_machine()), expected);
  return fmt::format("Both compute the same{}{}.\n", compiled ? ", also compiled" : "",
                     worst == 0 ? "" : fmt::format(", up to rounding: off by {:.1e} at most", worst));
}

}  // namespace tenon::cli
