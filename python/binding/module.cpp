// module.cpp — the module tenon._tenon, over which python/tenon/ lays the names that people use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tenon/extend.hpp>

#include "base/error.h"
#include "binding/added_ops.h"
#include "binding/graph.h"
#include "binding/model.h"
#include "binding/passes.h"
#include "binding/program.h"
#include "binding/tensors.h"
#include "binding/torch_graph.h"
#include "binding/torch_rows.h"
#include "binding/training.h"
#include "ops/registry.h"

namespace tenon::python {
namespace {

// Classes of tenon/errors.py, kept as long as the process lives.
struct Errors {
  PyObject *user, *unsupported, *internal;
};

Errors& errors() {
  static Errors classes = [] {
    const nb::module_ module = nb::module_::import_("tenon.errors");
    return Errors{nb::object(module.attr("UserError")).release().ptr(),
                  nb::object(module.attr("UnsupportedError")).release().ptr(),
                  nb::object(module.attr("InternalError")).release().ptr()};
  }();
  return classes;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UnsupportedError& error) {
    PyErr_SetString(errors().unsupported, error.what());
  } catch (const UserError& error) {
    PyErr_SetString(errors().user, error.what());
  } catch (const InternalError& error) {
    PyErr_SetString(errors().internal, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    PyErr_SetString(errors().user,
                    fmt::format("{}: {}", error.path1().string(), error.code().message()).c_str());
  }
}

int run_command_line(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments)
    pointers.push_back(argument.data());
  const nb::gil_scoped_release released;
  return command_line(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

NB_MODULE(_tenon, module) {
  // Rules hold functions of Python's, which hold the modules they are in: at exit, some of these are left.
  nb::set_leak_warnings(false);
  register_ops();
  nb::register_exception_translator(translate);
  bind_array(module);
  bind_graph(module);
  bind_passes(module);
  bind_added_ops(module);
  bind_program(module);
  bind_model(module);
  bind_torch_graph(module);
  bind_torch_rows(module);
  bind_training(module);
  module.def("command_line", run_command_line);
  module.def("version", tenon_version);
}

}  // namespace tenon::python
