#include "ops/memory.h"

#include "ir/evaluate.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

Data eval(const Call& c) { return {c.datum("x")}; }

void lower(LowerContext& c) {
  c.define([&](const Index& at) { return c.stored(c.node().in("x"), at); });
}

// What is known of the elements stays known.
std::optional<std::vector<Dim>> content(const Node& n) { return n.in("x").known_dims(); }

Types infer_device(const Node& n) {
  if (const std::string& device = n.attr("device"); device != "cpu" && device != "cuda")
    throw user_error("to_device: device must be cpu or cuda, but is {}", device);
  return same_as_x(n);
}

OpDef movement(std::string_view name, std::string_view doc, InferFunction infer) {
  return {.name = name,
          .doc = doc,
          .category = Category::Memory,
          .operands = {{"x", "any"}},
          .results = {{"y", "any"}},
          .traits = {.takes_unranked = true},
          .infer = infer,
          .content = content,
          .eval = eval,
          .lower = lower,
          .grad = [](const GradContext& n) -> std::vector<Operand> {
            return {{"x", n.dy()}};
          }};
}

Family make_ops() {
  OpDef to_device = movement("to_device", "x in the memory of a device", infer_device);
  to_device.attributes = {{"device", AttributeKind::String, "cpu or cuda"}};
  return {movement("copy", "x in memory of its own", same_as_x), to_device};
}

}  // namespace

const Family& memory_ops() {
  static const Family ops = make_ops();
  return ops;
}

Value copy(Value x) { return x.graph().create("copy", {{"x", x}})->result(); }
Value to_device(Value x, std::string_view device) {
  return x.graph().create("to_device", {{"x", x}}, {{"device", device}})->result();
}

}  // namespace tenon
