// notations.cpp — the tour: one model in five notations.
#include <algorithm>

#include "cli/tour/steps.h"
#include "frontends/builtin/builtin.h"
#include "views/views.h"

namespace tenon::cli {

void show_notations(Screen& screen) {
  const std::unique_ptr<Graph> graph = builtin::make_model("tiny");
  for (const std::string_view form : {"fx", "torchscript", "onnx", "hlo", "relay"}) {
    const auto view = std::find_if(all_views().begin(), all_views().end(),
                                   [&](const View& each) { return each.name == form; });
    screen.subheading(view->doc);
    screen.excerpt(view->render(*graph));
  }
}

}  // namespace tenon::cli
