// loops.cpp — the tour: a loop nest tiled, and a rearrangement that its dependences forbid.
#include "base/units.h"
#include "cli/compare_kernels.h"
#include "cli/milliseconds.h"
#include "cli/tour/steps.h"
#include "codegen/run_kernel.h"
#include "loops/transform.h"

namespace tenon::cli {

using codegen::run_compiled;

namespace {

using loops::Kernel;

constexpr std::string_view kMatmul = R"(kernel matmul(a: f32[n,m], b: f32[m,l]) -> (c: f32[n,l]) {
  for p in 0..n {
    for q in 0..l {
      c[p,q] = 0
    }
  }
  for i in 0..n {
    for j in 0..l {
      for k in 0..m {
        c[i,j] += a[i,k] * b[k,j]
      }
    }
  }
}
)";

constexpr std::string_view kMatvec = R"(kernel matvec(a: f32[100,100], b: f32[100]) -> (c: f32[100]) {
  for i in 0..100 {
    c[i] = 0
    for j in 0..100 {
      c[i] += a[i,j] * b[j]
    }
  }
}
)";

// Compiled and run, on one core.
double seconds_of(const Kernel& kernel) {
  const std::map<std::string, int64_t> sizes = {{"n", 768}, {"m", 768}, {"l", 768}};
  const std::vector<Tensor> inputs = make_up_inputs(kernel, sizes);
  return milliseconds_of([&] { run_compiled(kernel, inputs, sizes, this_machine()); }) / 1000;
}

}  // namespace

void show_loops(Screen& screen) {
  const Kernel matmul = loops::parse_checked_kernel(kMatmul);
  screen.subheading("A matrix product:");
  screen.excerpt(loops::print(matmul));
  constexpr std::string_view kSteps = "tile(i,j,k,32,256,32); permute(k,j); vectorise(j)";
  const loops::Step last = loops::apply_steps(matmul, kSteps).back();
  screen.subheading(fmt::format("After {}:", kSteps));
  const Kernel& tiled = *last.result.kernel;
  screen.excerpt(loops::print(tiled));
  screen.excerpt(compare_kernels(matmul, tiled, {{"n", 7}, {"m", 7}, {"l", 7}}));
  screen.excerpt(fmt::format("For 768 x 768, compiled and run on one core: {} as written, {} tiled.\n",
                             format_seconds(seconds_of(matmul)), format_seconds(seconds_of(tiled))));

  const Kernel matvec = loops::parse_checked_kernel(kMatvec);
  screen.subheading("Iterations that add to one sum cannot run at once:");
  screen.excerpt(loops::print(matvec));
  const loops::Step refused = loops::apply_steps(matvec, "parallelise(j)").back();
  screen.notes(fmt::format("{} is declined: {}", refused.text, refused.result.declined));
}

}  // namespace tenon::cli
