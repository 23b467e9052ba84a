#include "cli/tour/beside_unfused.h"

#include "target/target.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {

using compiler::Needs;

std::vector<Contender> measure_beside_unfused(const Graph& fused, const Graph& unfused) {
  constexpr double kSeconds = 1;
  std::vector<Contender> contenders;
  contenders.push_back({.name = "tenon"});
  contenders.push_back({.name = "node by node"});
  contenders[0].compile(fused, 0, api::default_context());
  compiler::CompileContext by_node = api::default_context();
  by_node.fuse = false;
  contenders[1].compile(unfused, 0, by_node);
  measure(contenders, sample_inputs(fused), kSeconds, {.threads = this_machine().cores});
  return contenders;
}

std::string table_of_all(const std::vector<Contender>& contenders) {
  ContenderTable table(contenders);
  table.add("", [](const Contender& each) { return each.name; });
  table.add_need("kernels", [](const Needs& needs) { return fmt::format("{}", needs.kernels); });
  table.add_bytes_moved();
  table.add_memory();
  table.add_times();
  table.add_speed_ups();
  return table.text();
}

}  // namespace tenon::cli
