#include "binding/functions.h"

#include <mutex>
#include <set>

#include "base/error.h"
#include "binding/tensors.h"

namespace tenon::python {

std::shared_ptr<nb::object> kept(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* object) {
            if (!nb::is_alive())
              return;
            const nb::gil_scoped_acquire acquired;
            delete object;
          }};
}

std::string_view interned(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(text).first;
}

namespace {

Value returned_value(nb::handle object, const GraphHandle& graph) {
  if (object.is_none())
    return {};
  if (!nb::isinstance<NodeHandle>(object))
    throw user_error("a function of a rule or an op returns nodes of the graph, but this one returns a {}",
                     describe_type(object));
  const NodeHandle& handle = handle_of(object);
  if (handle.graph() != graph.get())
    throw user_error("a function of a rule or an op returns a node of another graph");
  return handle.value();
}

}  // namespace

std::vector<Value> returned_values(nb::handle result, const GraphHandle& graph) {
  std::vector<Value> values;
  if (nb::isinstance<nb::tuple>(result) || nb::isinstance<nb::list>(result))
    for (nb::handle each : result)
      values.push_back(returned_value(each, graph));
  else
    values.push_back(returned_value(result, graph));
  return values;
}

}  // namespace tenon::python
