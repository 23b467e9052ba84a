// attention.cpp — the tour: attention recognised, and compiled so that its scores are never in memory.
#include "base/units.h"
#include "cli/tour/beside_unfused.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "ir/print.h"

namespace tenon::cli {

void show_attention(Screen& screen) {
  constexpr int64_t kLength = 512, kHeads = 8;
  const std::unique_ptr<Graph> graph =
      builtin::make_model("attention_any_length")->bind({{"length", kLength}});
  screen.subheading("As it is written:");
  screen.excerpt(print(*graph));
  const std::unique_ptr<Graph> optimised = graph->clone();
  optimize_model(*optimised);
  screen.subheading("As it is recognised:");
  screen.excerpt(print(*optimised));
  screen.subheading("Beside the model as it was written, a kernel for each node:");
  screen.excerpt(table_of_all(measure_beside_unfused(*optimised, *graph)));
  const double scores = sizeof(float) * kHeads * kLength * kLength;
  screen.excerpt(fmt::format("the scores, {} heads of {} x {}, would take {}: no kernel allocates them\n",
                             kHeads, kLength, kLength, format_bytes(scores)));
}

}  // namespace tenon::cli
