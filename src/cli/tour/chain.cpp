// chain.cpp — the tour: a chain of elementwise ops fused, the bytes that saves, and its place under the
// roofline.
#include <algorithm>

#include "cli/tour/beside_unfused.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "report/measure.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

constexpr double kGiga = 1e9;

// What the machine allows, and what is made of it.
std::string roofline_text(const Measurement& measurement) {
  const MeasuredStep& whole = measurement.whole;
  const Ceilings& ceilings = measurement.ceilings;
  const double bytes = whole.bytes.value_or(0), operations = whole.flops.value_or(0);
  const double bandwidth = ceilings.bandwidth_for(bytes), intensity = operations / bytes;
  const double needed = ceilings.flops_per_second / bandwidth;
  const auto line = [](std::string_view title, double number, const std::string& rest) {
    return fmt::format("{:<36} {:8.1f} {}\n", title, number, rest);
  };
  return line("this machine computes at most", ceilings.flops_per_second / kGiga, "GFLOP/s") +
         line("and moves what is needed here at", bandwidth / kGiga, "GB/s") +
         line("fused, operations per byte", intensity,
              fmt::format("({} {:.1f}: bound by {})", intensity < needed ? "below" : "from", needed,
                          intensity < needed ? "memory" : "computing")) +
         line("measured", bytes / whole.median / kGiga,
              fmt::format("GB/s, {:.1f} GFLOP/s: {:.0f} % of what the roofline allows",
                          operations / whole.median / kGiga, 100 * whole.ceiling()));
}

}  // namespace

void show_chain(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("chain5_any_size")->bind({{"rows", 4096}});
  screen.subheading("sigmoid(relu(2x + 1) / 2), with x: f32[4096,1024]:");
  screen.excerpt(table_of_all(measure_beside_unfused(*graph, *graph)));
  screen.subheading("On this machine's roofline, which was measured just now:");
  const ExplainedProgram fused = compile_model_explained(*graph);
  screen.excerpt(roofline_text(measure(*fused.program, fused.fusion, sample_inputs(*graph),
                                       {.threads = this_machine().cores, .seconds = 0.5})));
}

}  // namespace tenon::cli
