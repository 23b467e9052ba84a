// training.cpp — training steps, as python/tenon/training.py repeats them.
#include "binding/training.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "autodiff/gradient.h"
#include "binding/tensors.h"
#include "cli/training_arguments.h"
#include "frontends/read_model.h"

namespace tenon::python {
namespace {

using GraphPointer = std::shared_ptr<Graph>;

struct Step {
  TrainingStep step;
  std::optional<int64_t> classes;
  int64_t parts = 1;  // that a batch is split into
};

// The options are spelt as those of tenon train-step; `fixed` are weights that are frozen besides, where the
// model has them. Where the step only describes one, it does not split
// batches, which takes sizes that are known with each batch alone.
Step make_step(const Graph& model, const std::vector<std::string>& options,
               const std::vector<std::string>& fixed, bool describes) {
  const nb::gil_scoped_release released;
  const auto [arguments, steps] = cli::parse_step_arguments(options);
  const Loss loss = loss_of(arguments);
  TrainingOptions how = options_of(arguments);
  for (const Node* weight : trained_parameters(model)) {
    const auto name = weight->attr("name").as<std::string>();
    if (std::ranges::count(fixed, name) > 0)
      how.frozen.push_back(name);
  }
  const int64_t parts = how.parts;
  if (describes)
    how.parts = 1;
  TrainingStep step = training_step(model, loss, optimizer_of(arguments, steps), how);
  return {.step = std::move(step), .classes = class_count(model, loss), .parts = parts};
}

// (name, weight, whether it is that, input, output, what it begins with) of each.
nb::list state_of(const Step& step) {
  nb::list list;
  for (size_t i = 0; i < step.step.state.size(); ++i) {
    const auto& [name, weight, input, output, initial] = step.step.state[i];
    list.append(nb::make_tuple(name, weight, i < count_parameters(step.step), input, output,
                               to_library({}, initial.tensor())));
  }
  return list;
}

GraphPointer load_to_train(const std::string& path) {
  const nb::gil_scoped_release released;
  return read_model(path, {.gives_statistics = true});
}

GraphPointer replace_weights(const Graph& model, const std::map<std::string, nb::object>& weights) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, object] : weights)
    tensors.emplace(name, to_datum(object, fmt::format("the weight {}", name)).tensor());
  const nb::gil_scoped_release released;
  return with_weights(model, tensors);
}

}  // namespace

void bind_training(nb::module_& module) {
  nb::class_<Step>(module, "TrainingStep")
      .def_prop_ro("graph", [](const Step& step) -> GraphPointer { return step.step.graph->clone(); })
      .def_prop_ro("state", state_of)
      .def_prop_ro("target", [](const Step& step) { return step.step.target; })
      .def_ro("classes", &Step::classes)
      .def_ro("parts", &Step::parts)
      .def_prop_ro("text", [](const Step& step) { return cli::describe(step.step); });
  module.def("training_step", make_step, nb::arg("model"), nb::arg("options"), nb::arg("fixed"),
             nb::arg("describes") = false);
  module.def("load_to_train", load_to_train);
  module.def("replace_weights", replace_weights);
}

}  // namespace tenon::python
