// loops.cpp — tenon loops: rearranges a loop nest, says whether that is legal, and checks that it is.
#include <algorithm>

#include "base/mapped_file.h"
#include "cli/bindings.h"
#include "cli/commands.h"
#include "cli/compare_kernels.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/time_kernels.h"
#include "codegen/run_kernel.h"
#include "loops/bounds.h"
#include "loops/interpret.h"
#include "loops/order.h"
#include "loops/parse_kernels.h"
#include "loops/polyhedra.h"
#include "loops/transform.h"

namespace tenon::cli {
namespace {

using loops::Kernel;

struct Arguments {
  std::string file, steps, kernel;
  std::vector<std::string> dims;
  bool show = false, time = false;
  int threads = 1;
};

std::vector<Kernel> read_kernels(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return with_context(
      [&] { return path; },
      [&] {
        return loops::parse_kernels({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
}

// The one that was asked for, or all.
std::vector<Kernel> choose_kernels(std::vector<Kernel> kernels, const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels)
    names.push_back(kernel.name);
  if (!arguments.kernel.empty()) {
    const auto chosen = std::ranges::find(kernels, arguments.kernel, &Kernel::name);
    if (chosen == kernels.end())
      throw user_error("{} has no kernel {}; it has {}", arguments.file, arguments.kernel,
                       fmt::join(names, ", "));
    return {std::move(*chosen)};
  }
  if (kernels.size() > 1 && !arguments.steps.empty())
    throw user_error("{} has several kernels: {}\n  hint: say which with --kernel", arguments.file,
                     fmt::join(names, ", "));
  return kernels;
}

// What --dim says must be a size of one of them.
std::map<std::string, int64_t> parse_sizes(const std::vector<Kernel>& kernels,
                                           const std::vector<std::string>& dims) {
  const std::map<std::string, int64_t> sizes = parse_bindings(dims);
  for (const auto& [name, size] : sizes)
    if (std::ranges::none_of(kernels, [&](const Kernel& kernel) {
          const std::vector<std::string> symbols = kernel.size_symbols();
          return std::ranges::find(symbols, name) != symbols.end();
        }))
      throw user_error("--dim {}={}: no size of {} is called {}", name, size,
                       kernels.size() == 1 ? kernels.front().name : "a kernel", name);
  return sizes;
}

// Sizes that nothing binds are 7, which no tile divides.
std::map<std::string, int64_t> sizes_of(const Kernel& kernel, const std::map<std::string, int64_t>& given) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& symbol : kernel.size_symbols()) {
    const auto size = given.find(symbol);
    sizes.emplace(symbol, size == given.end() ? 7 : size->second);
  }
  return sizes;
}

// Code that is compiled reads and writes wherever it is told, so that nests are interpreted first where it is
// not known that they stay in their buffers.
void check_compilable(const Kernel& kernel, const std::map<std::string, int64_t>& sizes) {
  if (!codegen::can_compile(kernel))
    throw user_error("--time: kernel {} cannot be compiled for the processor", kernel.name);
  if (!loops::stays_in_bounds(kernel, sizes))
    interpret(kernel, make_up_inputs(kernel, sizes), sizes);
}

void show_kernel(const Kernel& kernel, const std::map<std::string, int64_t>& sizes,
                 const Arguments& arguments) {
  write_output(loops::print(kernel));
  if (arguments.show)
    write_output("\n" + loops::show_polyhedra(kernel));
  if (arguments.time)
    check_compilable(kernel, sizes);
  if (arguments.time && arguments.steps.empty())
    write_output("\n" + time_kernels({{"as written", &kernel}}, sizes, arguments.threads));
}

void show_last(const std::vector<loops::Step>& steps, const Kernel& before,
               const std::map<std::string, int64_t>& sizes, const Arguments& arguments) {
  const loops::Step& last = steps.back();
  if (!last.result.kernel) {
    write_output(fmt::format("\n{} is declined: {}\n", last.text, last.result.declined));
    throw Refused();
  }
  const Kernel& after = *last.result.kernel;
  write_output(fmt::format("\nafter {}:\n{}\n", arguments.steps, loops::print(after)));
  if (arguments.show)
    write_output(loops::show_schedule(before, after) + "\n");
  if (arguments.time)
    write_output("Both compute the same, compiled.\n\n" +
                 time_kernels({{"before", &before}, {"after", &after}}, sizes, arguments.threads));
  else
    write_output(compare_kernels(before, after, sizes));
}

void run_loops(const Arguments& arguments) {
  std::vector<Kernel> kernels = choose_kernels(read_kernels(arguments.file), arguments);
  const std::map<std::string, int64_t> given = parse_sizes(kernels, arguments.dims);
  for (Kernel& kernel : kernels) {
    kernel = loops::stamp(std::move(kernel));
    const std::map<std::string, int64_t> sizes = sizes_of(kernel, given);
    const std::vector<loops::Step> steps = loops::apply_steps(kernel, arguments.steps);
    if (&kernel != &kernels.front())
      write_output("\n");
    with_context([&] { return arguments.file; },
                 [&] {
                   show_kernel(kernel, sizes, arguments);
                   if (!steps.empty())
                     show_last(steps, kernel, sizes, arguments);
                 });
  }
}

}  // namespace

void add_loops(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("loops", "rearranges a loop nest, where its dependences allow that");
  offer_files(command->add_option("FILE", arguments->file, "the text of a kernel")->required(), {".loops"});
  command->add_option("--apply", arguments->steps, "transformations, with semicolons between them")
      ->option_text("STEPS");
  command->add_option("--kernel", arguments->kernel, "of a file with several, this one alone")
      ->option_text("NAME");
  command->add_flag("--show", arguments->show,
                    "the polyhedral model: domains, schedules and dependences of the statements");
  CLI::Option* time = command->add_flag(
      "--time", arguments->time, "compiles the nests and times them in turn, instead of interpreting them");
  command
      ->add_option("--dim", arguments->dims, "a size to compare results or times for; those not given are 7")
      ->take_all()
      ->option_text("NAME=N");
  add_threads(*command, arguments->threads)->needs(time);
  command->footer(
      "Transformations: split(i,8) tile(i,j,4,8) permute(j,i) unroll(i,4) unroll(i) vectorise(i)\n"
      "parallelise(i) fuse(i,j) fission(i) skew(i,j,1) divide(i,N) peel(i,1) cache(BUFFER,i) "
      "shrink(BUFFER).\n"
      "Exit status 1 when one is declined.\n" +
      examples({"tenon loops docs/loops/matvec.loops",
                "tenon loops docs/loops/matvec.loops --apply \"tile(i,j,2,2); unroll(j,2)\"",
                "tenon loops docs/loops/stencil.loops --apply \"skew(t,i,1)\" --show",
                "tenon loops docs/loops/matmul.loops --apply \"permute(k,j); vectorise(j)\" --time --dim "
                "n=256 m=256 l=256"}));
  command->callback([arguments] { run_loops(*arguments); });
}

}  // namespace tenon::cli
