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

// A weight where its owner holds it, whose memory stays as long as this.
class WatchedElements : public DeferredElements {
 public:
  WatchedElements() = default;
  ~WatchedElements() override { release(); }
  WatchedElements(const WatchedElements&) = delete;
  WatchedElements& operator=(const WatchedElements&) = delete;

  void hold(DLManagedTensorVersioned* tensor) {
    release();
    tensor_ = tensor;
  }
  const void* data() const {
    return tensor_ == nullptr
               ? nullptr
               : static_cast<const std::byte*>(tensor_->tensor.data) + tensor_->tensor.byte_offset;
  }
  Tensor tensor() const override {
    CHECK(tensor_ != nullptr, "a weight is read before there is one");
    return host_tensor(view_of(tensor_->tensor));
  }
  bool varies() const override { return true; }

 private:
  void release() {
    if (tensor_ == nullptr || !nb::is_alive())
      return;
    const nb::gil_scoped_acquire acquired;
    tensor_->deleter(tensor_);
    tensor_ = nullptr;
  }

  DLManagedTensorVersioned* tensor_ = nullptr;
};

// The weights of one module, which may change in place between two calls. The program of these weights keeps
// what it made of them until then.
class Weights {
 public:
  // A dtype and sizes for each, and their places among the arguments of a call.
  Weights(const std::vector<std::pair<std::string, Extents>>& types, std::vector<size_t> places)
      : places_(std::move(places)) {
    for (const auto& [name, extents] : types) {
      const std::optional<DType> dtype = parse_dtype(name);
      if (!dtype)
        throw user_error("unknown dtype {}", name);
      weights_.push_back({.dtype = *dtype, .extents = extents});
    }
  }

  // Takes those among these arguments for the weights.
  void bind(const nb::list& arguments) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      const nb::handle tensor = weight_of(arguments, i);
      const DLExchange& exchange = exchange_of(tensor);
      // Of a tensor of its own: a parameter's data may be exchanged, and the memory would go with it.
      const nb::object alias = tensor.attr("detach")();
      DLManagedTensorVersioned* held = nullptr;
      if (exchange.managed_from_object(alias.ptr(), &held) != 0)
        throw nb::python_error();
      weights_[i].elements->hold(held);
      const Tensor elements = weights_[i].elements->tensor();
      if (elements.dtype() != weights_[i].dtype || elements.extents() != weights_[i].extents)
        throw user_error("expected a weight {}, got {}", describe(weights_[i].dtype, weights_[i].extents),
                         describe(elements.dtype(), elements.extents()));
    }
    versions_ = versions(arguments);
  }

  // How those among these arguments compare: "same", "changed" in place, or "other" ones.
  const char* compare(const nb::list& arguments) const {
    bool is_same = true;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const nb::handle tensor = weight_of(arguments, i);
      DLTensor now{};
      if (exchange_of(tensor).borrow_from_object(tensor.ptr(), &now) != 0)
        throw nb::python_error();
      if (static_cast<std::byte*>(now.data) + now.byte_offset != weights_[i].elements->data())
        return "other";
      is_same = is_same && version_of(tensor) == versions_[i];
    }
    return is_same ? "same" : "changed";
  }

  std::vector<int64_t> versions(const nb::list& arguments) const {
    std::vector<int64_t> found;
    for (size_t i = 0; i < weights_.size(); ++i)
      found.push_back(version_of(weight_of(arguments, i)));
    return found;
  }
  // What was made of the weights is of these versions.
  void set_versions(std::vector<int64_t> versions) { versions_ = std::move(versions); }

  Literal literal(size_t number) const {
    const Weight& weight = weights_[number];
    return Literal::deferred(weight.dtype, weight.extents, weight.elements);
  }

 private:
  struct Weight {
    DType dtype = DType::F32;
    Extents extents = {};
    std::shared_ptr<WatchedElements> elements = std::make_shared<WatchedElements>();
  };

  static const DLExchange& exchange_of(nb::handle tensor) {
    const Library library = library_of(tensor);
    if (library.exchange == nullptr)
      throw user_error("expected a torch.Tensor for a weight, got a {}", describe_type(tensor));
    return *library.exchange;
  }
  static int64_t version_of(nb::handle tensor) {
    static PyObject* const name = PyUnicode_InternFromString("_version");
    const nb::object version = nb::steal(PyObject_GetAttr(tensor.ptr(), name));
    const long long number = version.is_valid() ? PyLong_AsLongLong(version.ptr()) : -1;
    if (number == -1 && PyErr_Occurred() != nullptr)
      throw nb::python_error();
    return number;
  }
  nb::handle weight_of(const nb::list& arguments, size_t number) const {
    PyObject* const tensor = PyList_GetItem(arguments.ptr(), static_cast<Py_ssize_t>(places_[number]));
    if (tensor == nullptr)
      throw nb::python_error();
    return tensor;
  }

  std::vector<Weight> weights_;
  std::vector<size_t> places_;
  std::vector<int64_t> versions_;
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
    try {
      nb::list arguments;
      for (const Datum& operand : operands)
        arguments.append(nb::cast(operand.tensor()));
      Data results;
      for (nb::handle each : (*held)(arguments))
        results.push_back(to_datum(each, "a result"));
      return results;
    } catch (const nb::python_error& error) {
      keep_python_error(error);  // tenon_run has no exceptions
      throw InternalError("an exception of Python's");
    }
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
      .def(nb::init<const std::vector<std::pair<std::string, Extents>>&, std::vector<size_t>>())
      .def("bind", &Weights::bind)
      .def("compare", &Weights::compare)
      .def("versions", &Weights::versions)
      .def("set_versions", &Weights::set_versions);
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
