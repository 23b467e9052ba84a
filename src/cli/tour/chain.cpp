// chain.cpp — the tour: a chain of elementwise ops fused, and the bytes that saves.
#include "cli/tour/beside_unfused.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"

namespace tenon::cli {

void show_chain(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("chain5_any_size")->bind({{"rows", 4096}});
  screen.subheading("sigmoid(relu(2x + 1) / 2), with x: f32[4096,1024]:");
  const std::vector<Contender> contenders = measure_beside_unfused(*graph, *graph);
  ContenderTable table(contenders);
  table.add("", [](const Contender& each) { return each.name; });
  table.add_need("kernels", [](const Needs& needs) { return fmt::format("{}", needs.kernels); });
  table.add_bytes_moved();
  table.add_memory();
  table.add_times();
  table.add_speed_ups();
  screen.excerpt(table.text());
}

}  // namespace tenon::cli
