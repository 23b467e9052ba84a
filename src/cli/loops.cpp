// loops.cpp — tenon loops: rearranges a loop nest, says whether that is legal, and checks that it is.
#include "base/mapped_file.h"
#include "cli/bindings.h"
#include "cli/commands.h"
#include "cli/compare_kernels.h"
#include "cli/options.h"
#include "cli/output.h"
#include "loops/transform.h"

namespace tenon::cli {
namespace {

using loops::Kernel;

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
  for (const auto& [name, size] : parse_bindings(dims)) {
    if (!sizes.contains(name))
      throw user_error("--dim {}={}: no size of {} is called {}", name, size, kernel.name, name);
    sizes.at(name) = size;
  }
  return sizes;
}

void rearrange(const Arguments& arguments) {
  const Kernel kernel = read_kernel(arguments.file);
  const std::map<std::string, int64_t> sizes = choose_sizes(kernel, arguments.dims);
  const std::vector<loops::Step> steps = loops::apply_steps(kernel, arguments.steps);
  write_output(loops::print(kernel));
  if (steps.empty())
    return;
  const loops::Step& last = steps.back();
  if (!last.result.kernel) {
    write_output(fmt::format("\n{} is declined: {}\n", last.text, last.result.declined));
    throw Refused();
  }
  write_output(fmt::format("\nafter {}:\n{}\n", arguments.steps, loops::print(*last.result.kernel)));
  write_output(with_context([&] { return arguments.file; },
                            [&] { return compare_kernels(kernel, *last.result.kernel, sizes); }));
}

}  // namespace

void add_loops(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("loops", "rearranges a loop nest, where its dependences allow that");
  offer_files(command->add_option("FILE", arguments->file, "the text of a kernel")->required(), {".loops"});
  command->add_option("--apply", arguments->steps, "transformations, with semicolons between them")
      ->option_text("STEPS");
  command->add_option("--dim", arguments->dims, "a size to compare results for; those not given are 7")
      ->take_all()
      ->option_text("NAME=N");
  command->footer(
      "Transformations: split(i,8) tile(i,j,4,8) permute(j,i) unroll(i,4) unroll(i) vectorise(i)\n"
      "parallelise(i) fuse(i,j) fission(i) skew(i,j,1) divide(i,N) peel(i,1) cache(BUFFER,i) "
      "shrink(BUFFER).\n"
      "Exit status 1 when one is declined.\n" +
      examples({"tenon loops docs/loops/matvec.loops",
                "tenon loops docs/loops/matvec.loops --apply \"tile(i,j,2,2); unroll(j,2)\""}));
  command->callback([arguments] { rearrange(*arguments); });
}

}  // namespace tenon::cli
