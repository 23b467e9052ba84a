// external.cpp — nodes that somebody else computes: torch.compile's backend writes tenon.external for those
// that it keeps.
#include "ops/external.h"

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/families.h"

namespace tenon::torch {
namespace {

// After the named arguments come the operands, one by one.
constexpr size_t kFirstOperand = 5;

std::vector<Value> convert_external(const NodeView& n) {
  ExternalCall call{
      .name = n.text("name"), .function = n.integer("function"), .dtypes = {}, .ranks = n.integers("ranks")};
  for (const std::string& name : n.texts("dtypes")) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype)
      throw user_error("{}: {} is no dtype", n.op(), name);
    call.dtypes.push_back(*dtype);
  }
  std::vector<Value> operands;
  for (size_t i = kFirstOperand; i < n.argument_count(); ++i)
    for (Value value : n.values(i))
      operands.push_back(value);
  return external(n.graph(), call, operands, n.vector(n.sizes("sizes")));
}

}  // namespace

const Conversions& external_conversions() {
  static const Conversions conversions = {{"tenon.external", convert_external}};
  return conversions;
}

}  // namespace tenon::torch
