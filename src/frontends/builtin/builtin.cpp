#include "frontends/builtin/builtin.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::builtin {

const Models& all_models() {
  static const Models models = [] {
    Models all;
    for (const Models* some :
         {&elementwise_models(), &linear_models(), &convolution_models(), &control_models()})
      all.insert(all.end(), some->begin(), some->end());
    std::sort(all.begin(), all.end(), [](const Model& a, const Model& b) { return a.name < b.name; });
    return all;
  }();
  return models;
}

std::unique_ptr<Graph> make_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Model& model : all_models()) {
    if (model.name == name) {
      std::unique_ptr<Graph> graph = model.make();
      graph->set_name(std::string(name));
      return graph;
    }
    names.push_back(model.name);
  }
  throw user_error("there is no built-in model {}{}\n  there are: {}", name, did_you_mean(name, names),
                   fmt::join(names, " "));
}

}  // namespace tenon::builtin
