// passes.cpp — the tour: a wasteful model shrinks, pass by pass.
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "ir/print.h"
#include "passes/pipeline.h"

namespace tenon::cli {

void show_passes(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("unoptimized");
  screen.subheading("Before:");
  screen.excerpt(print(*graph));
  screen.subheading("What the passes do:");
  const int64_t before = count_nodes(*graph);
  screen.excerpt(fmt::format("{:<22} {} nodes\n", "as written", before));
  Journal journal;
  size_t told = 0;  // applications
  const auto after_pass = [&](const Pass& pass, const Graph& now) {
    std::string rewrites;
    for (; told < journal.applications().size(); ++told) {
      const Application& application = journal.applications()[told];
      rewrites += fmt::format(", {}. {} of {}", application.number, application.rule,
                              fmt::join(application.nodes, " and "));
    }
    screen.excerpt(fmt::format("{:<22} {} nodes{}\n", pass.name, count_nodes(now), rewrites));
  };
  optimize(*graph, journal, {.after_pass = after_pass});
  screen.excerpt(fmt::format("{} nodes became {}\n", before, count_nodes(*graph)));
  screen.subheading("After:");
  screen.excerpt(print(*graph));
}

}  // namespace tenon::cli
