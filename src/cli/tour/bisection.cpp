// bisection.cpp — the tour: a rule that is wrong on purpose, and how it is found out.
#include <algorithm>

#include "api/default_context.h"
#include "base/units.h"
#include "cli/culprit.h"
#include "cli/milliseconds.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "ir/print.h"
#include "rewrite/apply.h"

namespace tenon::cli {

namespace {

void forget_scales(Graph& graph, Journal& journal) {
  const Pattern x = any("x"), c = constant("c");
  static const Rule rule = {.name = "forget-the-scale",
                            .match = x * c,
                            .replace = x,
                            .when = {is_one_number(c)},
                            .numerics = Numerics::BitExact,
                            .fires = "",
                            .stays = ""};
  apply_rules(graph, {rule}, journal);
}

// The pipeline with the wrong rule in its midst.
std::vector<Pass> wrong_pipeline() {
  std::vector<Pass> passes = portable_pipeline();
  const auto place = std::find_if(passes.begin(), passes.end(),
                                  [](const Pass& pass) { return pass.name == "recognise-functions"; });
  passes.insert(place, {"wrong-on-purpose", "forgets scales", forget_scales,
                        "behind normalise, which makes products of quotients"});
  return passes;
}

}  // namespace

void show_bisection(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("mha_causal");
  BisectOptions options;
  options.verify.pipeline = wrong_pipeline();

  Journal journal;
  const std::unique_ptr<Graph> broken = graph->clone();
  optimize(*broken, journal, {.pipeline = options.verify.pipeline});
  screen.subheading("Causal attention of four heads, optimised with the wrong rule:");
  screen.excerpt(fmt::format("{} nodes became {}, by {} rewrites\n", count_nodes(*graph),
                             count_nodes(*broken), journal.count()));

  std::optional<Culprit> culprit;
  const double milliseconds = milliseconds_of([&] { culprit = bisect(*graph, options); });
  screen.subheading(fmt::format("What bisection finds, in {}:", format_seconds(milliseconds / 1000)));
  CHECK(culprit, "a rule that is wrong on purpose was not found");
  screen.notes(describe_culprit(*culprit));
  if (culprit->model) {
    screen.subheading("The smallest model that shows it:");
    screen.excerpt(print(*culprit->model));
  }
  screen.subheading("With Tenon's own rules alone:");
  const std::optional<Culprit> own = bisect(*graph, {.context = api::default_context()});
  screen.notes(own ? describe_culprit(*own) : std::string(kNoCulprit));
}

}  // namespace tenon::cli
