// recognition.cpp — the tour: GELU found by what nine nodes compute.
#include "cli/compile_model.h"
#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "ir/print.h"
#include "passes/pipeline.h"

namespace tenon::cli {

void show_recognition(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("gelu_approx");
  screen.subheading("0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), as an exporter writes it:");
  screen.excerpt(print(*graph));
  const int64_t before = count_nodes(*graph);
  optimize_model(*graph);
  screen.subheading("After the passes:");
  screen.excerpt(print(*graph));
  screen.excerpt(fmt::format("{} nodes became {}\n", before, count_nodes(*graph)));
}

}  // namespace tenon::cli
