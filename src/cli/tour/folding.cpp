// folding.cpp — the tour: batch normalisations folded into convolutions, verified and measured.
#include <algorithm>
#include <set>

#include "cli/tour/beside_unfused.h"
#include "cli/tour/steps.h"
#include "cli/verification.h"
#include "frontends/builtin/builtin.h"

namespace tenon::cli {

using compiler::Needs;

namespace {

// The ops that what flows in goes through; those of weights alone are computed when the model is compiled.
std::string ops_of(const Graph& graph) {
  const std::vector<Value> inputs = graph.inputs();
  std::set<Value> flowing(inputs.begin(), inputs.end());
  std::vector<std::string_view> names;
  for (const Node* node : graph.nodes()) {
    const std::vector<Value> operands = node->operands();
    if (std::none_of(operands.begin(), operands.end(), [&](Value each) { return flowing.contains(each); }))
      continue;
    names.push_back(node->op().name);
    flowing.insert(node->result());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

void show_folding(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("multi_conv_bn");
  screen.subheading("relu(bn(conv(x))), twice; every pass that changes it, checked (errors are relative):");
  screen.excerpt(lines_with(verification_table(verify_pipeline(*graph)), {"pass  ", " ok "}));

  const std::unique_ptr<Graph> folded = graph->clone();
  optimize_model(*folded);
  screen.subheading("What is left of it:");
  screen.excerpt(fmt::format("before   {}\nafter    {}\n", ops_of(*graph), ops_of(*folded)));
  screen.subheading("Folded and fused, beside the model as it was written, a kernel for each node:");
  const std::vector<Contender> contenders = measure_beside_unfused(*folded, *graph);
  ContenderTable table(contenders);
  table.add("", [](const Contender& each) { return each.name; });
  table.add_times();
  table.add_speed_ups();
  table.add_need("kernels", [](const Needs& needs) { return fmt::format("{}", needs.kernels); });
  screen.excerpt(table.text());
  const int64_t before = count_held_numbers(*graph), after = count_held_numbers(*folded);
  screen.excerpt(fmt::format("parameters: {} became {}, {} saved\n", before, after, before - after));
}

}  // namespace tenon::cli
