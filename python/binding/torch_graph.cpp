#include "binding/torch_graph.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/program.h"
#include "binding/tensors.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/import.h"
#include "ops/external.h"

namespace tenon::python {
namespace {

// A weight where its owner holds it.
class WatchedElements : public DeferredElements {
 public:
  void set(Tensor tensor) { tensor_ = std::move(tensor); }
  Tensor tensor() const override {
    CHECK(tensor_, "a weight is read before there is one");
    return *tensor_;
  }
  bool varies() const override { return true; }

 private:
  std::optional<Tensor> tensor_;
};

// Weights of modules, which their owners may change or exchange between two calls. Programs keep what they
// made of them until then.
class Weights {
 public:
  // A dtype and sizes for each.
  explicit Weights(const std::vector<std::pair<std::string, Extents>>& types) {
    for (const auto& [name, extents] : types) {
      const std::optional<DType> dtype = parse_dtype(name);
      if (!dtype)
        throw user_error("{} is no dtype", name);
      weights_.push_back({.dtype = *dtype, .extents = extents});
    }
  }

  // Whether some of them, which stand at these places of the arguments, are not what they were when this was
  // last asked: other tensors, or changed in place. From now on these are the weights.
  bool changed(const nb::list& arguments, const std::vector<size_t>& places) {
    bool any = false;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const nb::handle tensor = arguments[places[i]];
      const Library library = library_of(tensor);
      DLTensor now{};
      if (library.exchange == nullptr || library.exchange->borrow_from_object(tensor.ptr(), &now) != 0)
        throw nb::python_error();
      const bool is_same = static_cast<std::byte*>(now.data) + now.byte_offset == weights_[i].data &&
                           version_of(tensor) == weights_[i].version;
      if (!is_same)
        look_at(weights_[i], tensor);
      any |= !is_same;
    }
    return any;
  }

  Literal literal(size_t number) const {
    const Weight& weight = weights_[number];
    return Literal::deferred(weight.dtype, weight.extents, weight.elements);
  }

 private:
  struct Weight {
    DType dtype = DType::F32;
    Extents extents = {};
    std::shared_ptr<WatchedElements> elements = std::make_shared<WatchedElements>();
    const void* data = nullptr;
    int64_t version = 0;
  };

  static int64_t version_of(nb::handle tensor) { return nb::cast<int64_t>(tensor.attr("_version")); }

  static void look_at(Weight& weight, nb::handle tensor) {
    Argument argument;
    if (!argument.borrow(tensor))
      throw user_error("a weight is a {}, and no tensor", describe_type(tensor));
    Tensor elements = argument.on_host();
    if (elements.dtype() != weight.dtype || elements.extents() != weight.extents)
      throw user_error("a weight is {}, but {} was expected", describe(elements.dtype(), elements.extents()),
                       describe(weight.dtype, weight.extents));
    weight.elements->set(std::move(elements));
    weight.data = argument.tensor().data;
    weight.version = version_of(tensor);
  }

  std::vector<Weight> weights_;
};

// A function of Python's that computes a node: of the operands, as tenon.Arrays that live as long as the
// call, to a list of tensors.
std::shared_ptr<ExternalHandle> external_of(nb::object function) {
  // Let go of where the interpreter still is, and with it.
  const auto held = std::shared_ptr<nb::object>(new nb::object(std::move(function)), [](nb::object* object) {
    if (!nb::is_alive())
      return;
    const nb::gil_scoped_acquire acquired;
    delete object;
  });
  return std::make_shared<ExternalHandle>([held](std::span<const Datum> operands) {
    const nb::gil_scoped_acquire acquired;
    nb::list arguments;
    for (const Datum& operand : operands)
      arguments.append(nb::cast(operand.tensor()));
    Data results;
    for (nb::handle each : (*held)(arguments))
      results.push_back(to_datum(each, "a result"));
    return results;
  });
}

struct ReadProgram {
  std::shared_ptr<Graph> graph;  // null where nodes were refused
  std::vector<std::pair<std::string, std::string>> refused;
};

// `names` are those of the weights, in their order.
ReadProgram read_program(const std::string& json, const std::vector<std::string>& names,
                         const Weights& weights, const std::map<std::string, nb::object>& constants) {
  const torch::WeightSource source = {.weight =
                                          [&](const std::string& name) {
                                            const auto it = std::ranges::find(names, name);
                                            CHECK(it != names.end(), "there is no weight {}", name);
                                            return weights.literal(static_cast<size_t>(it - names.begin()));
                                          },
                                      .constant = [&](const std::string& name) -> Literal {
                                        return to_datum(constants.at(name), name).tensor();
                                      }};
  std::vector<torch::RefusedNode> refused;
  ReadProgram result{.graph = torch::read_program(json, source, refused), .refused = {}};
  for (torch::RefusedNode& each : refused)
    result.refused.emplace_back(std::move(each.name), std::move(each.reason));
  return result;
}

}  // namespace

void bind_torch_graph(nb::module_& module) {
  nb::class_<Weights>(module, "Weights")
      .def(nb::init<const std::vector<std::pair<std::string, Extents>>&>())
      .def("changed", &Weights::changed);
  nb::class_<ExternalHandle>(module, "External").def_prop_ro("number", &ExternalHandle::number);
  module.def("external", external_of);
  nb::class_<ReadProgram>(module, "ReadProgram")
      .def_ro("graph", &ReadProgram::graph)
      .def_ro("refused", &ReadProgram::refused);
  module.def("read_program", read_program);
  module.def("reads_torch_op",
             [](const std::string& op) { return torch::find_conversion(op).conversion != nullptr; });
}

}  // namespace tenon::python
