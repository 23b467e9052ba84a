#include "compiler/control_flow.h"

#include "ops/control.h"

namespace tenon::compiler {

using runtime::ControlFlow;

runtime::ControlFlow control_flow_of(const Node& node) {
  ControlFlow control;
  if (node.is("if")) {
    control.has_condition = true;
    control.captured = node.ins("inputs").size();
    return control;
  }
  control.ends_by_count = ends_by_count(node);
  control.carried = node.ins("carried").size();
  control.captured = node.ins("captured").size();
  if (node.is("while")) {
    control.kind = ControlFlow::Kind::While;
    control.has_trip_count = node.has("trip_count");
    control.has_condition = node.has("condition");
    return control;
  }
  CHECK(node.is("scan"), "{} is no control flow that runs nested programs", node.op().name);
  control.kind = ControlFlow::Kind::Scan;
  control.scanned = node.ins("scanned").size();
  for (const auto& [name, values] : {std::pair("axes", &control.axes),
                                     {"reversed", &control.reversed},
                                     {"output_axes", &control.output_axes},
                                     {"output_reversed", &control.output_reversed}})
    *values = node.attr(name).as<Attribute::Ints>();
  return control;
}

}  // namespace tenon::compiler
