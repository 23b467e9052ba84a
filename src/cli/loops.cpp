// loops.cpp — tenon loops: rearranges a loop nest, says whether that is legal, and checks that it is.
#include "base/mapped_file.h"
#include "cli/bindings.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "compiler/run_kernel.h"
#include "loops/interpret.h"
#include "loops/transform.h"
#include "tensor/rounding.h"
#include "verify/compare.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

using loops::Kernel;

// By how many rounding steps sums of some thousand elements may differ where they change their order.
constexpr double kRoundingSteps = 64;

struct Arguments {
  std::string file, steps;
  std::vector<std::string> dims;
};

Kernel read_kernel(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return with_context(
      [&] { return path; },
      [&] {
        return loops::parse_checked_kernel({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
}

// Sizes that nothing binds are 7, which no tile divides.
std::map<std::string, int64_t> choose_sizes(const Kernel& kernel, const std::vector<std::string>& dims) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& symbol : kernel.size_symbols())
    sizes.emplace(symbol, 7);
  for (const std::string& dim : dims) {
    const auto [name, size] = parse_binding(dim);
    if (!sizes.contains(name))
      throw user_error("--dim {}: no size of {} is called {}", dim, kernel.name, name);
    sizes.at(name) = size;
  }
  return sizes;
}

// Made-up inputs.
std::vector<Tensor> make_inputs(const Kernel& kernel, const std::map<std::string, int64_t>& sizes) {
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

// How far results are from what they should be; further than rounding explains is our bug.
double worst_error(const Kernel& kernel, const std::vector<Tensor>& actual,
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

void compare_results(const Kernel& before, const Kernel& after, const std::map<std::string, int64_t>& sizes,
                     const std::string& path) {
  if (const std::optional<std::string> routine = find_routine(before.body))
    return write_output(fmt::format("Not compared: it calls {}.\n", *routine));
  const std::vector<Tensor> inputs = make_inputs(before, sizes);
  const std::vector<Tensor> expected =
      with_context([&] { return path; }, [&] { return interpret(before, inputs, sizes); });
  const double worst = worst_error(after, interpret(after, inputs, sizes), expected);
  const bool compiled = can_compile(after);
  if (compiled)  // which rounds as the machine does, so that by how much it is off says nothing
    worst_error(after, run_compiled(after, inputs, sizes), expected);
  write_output(fmt::format("Both compute the same{}{}.\n", compiled ? ", also compiled" : "",
                           worst == 0 ? "" : fmt::format(", up to rounding: off by {:.1e} at most", worst)));
}

void rearrange(const Arguments& arguments) {
  const Kernel kernel = read_kernel(arguments.file);
  const std::map<std::string, int64_t> sizes = choose_sizes(kernel, arguments.dims);
  write_output(loops::print(kernel));
  const std::vector<loops::Step> steps = loops::apply_steps(kernel, arguments.steps);
  if (steps.empty())
    return;
  const loops::Step& last = steps.back();
  if (!last.result.kernel) {
    write_output(fmt::format("\n{} is declined: {}\n", last.text, last.result.declined));
    throw Refused();
  }
  write_output(fmt::format("\nafter {}:\n{}\n", arguments.steps, loops::print(*last.result.kernel)));
  compare_results(kernel, *last.result.kernel, sizes, arguments.file);
}

}  // namespace

void add_loops(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("loops", "rearranges a loop nest, where its dependences allow that");
  command->add_option("FILE", arguments->file, "the text of a kernel")->required();
  command->add_option("--apply", arguments->steps, "transformations, with semicolons between them");
  command->add_option("--dim", arguments->dims, "a size to compare results for: NAME=N; else 7")->take_all();
  command->footer(
      "Transformations: split(i,8) tile(i,j,4,8) permute(j,i) unroll(i,4) unroll(i) vectorise(i)\n"
      "parallelise(i) fuse(i,j) fission(i) skew(i,j,1) divide(i,N) peel(i,1) cache(BUFFER,i) "
      "shrink(BUFFER).\n"
      "Exit status 1 when one is declined.\n"
      "Example: tenon loops matvec.loops --apply \"tile(i,j,2,2); unroll(j,2)\"");
  command->callback([arguments] { rearrange(*arguments); });
}

}  // namespace tenon::cli
