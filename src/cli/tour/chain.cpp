// chain.cpp — the tour: a chain of elementwise ops fused, the bytes that saves, and its place under the
// roofline.
#include <algorithm>

#include "cli/tour/beside_unfused.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "report/ceilings.h"

namespace tenon::cli {

using compiler::FusedKernel;

namespace {

constexpr double kGiga = 1e9;

// What the machine allows, and what is made of it.
std::string roofline_text(const Ceilings& ceilings, double bytes, double operations, double seconds) {
  const double bandwidth = ceilings.bandwidth_for(bytes), intensity = operations / bytes;
  const double needed = ceilings.flops_per_second / bandwidth;
  const double at_least = std::max(operations / ceilings.flops_per_second, bytes / bandwidth);
  const auto line = [](std::string_view title, double number, const std::string& rest) {
    return fmt::format("{:<36} {:8.1f} {}\n", title, number, rest);
  };
  return line("this machine computes at most", ceilings.flops_per_second / kGiga, "GFLOP/s") +
         line("and moves what is needed here at", bandwidth / kGiga, "GB/s") +
         line("fused, operations per byte", intensity,
              fmt::format("({} {:.1f}: bound by {})", intensity < needed ? "below" : "from", needed,
                          intensity < needed ? "memory" : "computing")) +
         line("in that median, it moves", bytes / seconds / kGiga,
              fmt::format("GB/s, {:.1f} GFLOP/s: {:.0f} % of the roofline", operations / seconds / kGiga,
                          100 * at_least / seconds));
}

}  // namespace

void show_chain(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("chain5_any_size")->bind({{"rows", 4096}});
  screen.subheading("sigmoid(relu(2x + 1) / 2), with x: f32[4096,1024]:");
  const std::vector<Contender> contenders = measure_beside_unfused(*graph, *graph);
  screen.excerpt(table_of_all(contenders));
  screen.subheading("On this machine's roofline, which was measured just now:");
  CeilingMeter meter(this_machine(), this_machine().cores);
  meter.measure();
  double bytes = 0, operations = 0;
  for (const FusedKernel& kernel : fusion_of(*graph, api::default_context()).after) {
    bytes += static_cast<double>(*kernel.cost.bytes.evaluate({}));
    operations += static_cast<double>(*kernel.cost.operations.evaluate({}));
  }
  screen.excerpt(roofline_text(meter.ceilings(), bytes, operations, contenders.front().median() / 1000));
}

}  // namespace tenon::cli
