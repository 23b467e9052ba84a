#include "frontends/onnx/added_ops.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/registry.h"

namespace tenon {
namespace {

struct AddedOps {
  std::shared_mutex mutex;
  std::deque<onnx::AddedOp> ops;  // which stay where they are
  std::optional<UserError> mistake;
};

AddedOps& added() {
  static AddedOps all;
  return all;
}

void check(const OpDef& op, const OnnxName& name) {
  if (op.name.empty())
    throw user_error("an op that is added needs a name");
  if (find_op(op.name) != nullptr)
    throw user_error("there is an op \"{}\" already", op.name);
  if (op.infer == nullptr || op.eval == nullptr)
    throw user_error(
        "the op \"{}\" that is added needs a function infer, for its types, and eval, for its elements",
        op.name);
  if (!op.regions.empty())
    throw user_error("the op \"{}\" that is added cannot have nested graphs", op.name);
  if (name.domain.empty() != name.op_type.empty())
    throw user_error("the op \"{}\" that is added needs both a domain and a name in ONNX, or neither",
                     op.name);
  if (!name.op_type.empty() && (onnx::find_conversion(name.domain, name.op_type) != nullptr ||
                                onnx::find_added_op(name.domain, name.op_type) != nullptr))
    throw user_error("the op \"{}\" that is added cannot be {}.{} in ONNX, which is read already", op.name,
                     name.domain, name.op_type);
}

}  // namespace

const OpDef& add_op_or_throw(OpDef op, const OnnxName& in_onnx) {
  register_ops();
  check(op, in_onnx);
  const std::lock_guard lock(added().mutex);
  added().ops.push_back({std::move(op), in_onnx});
  register_op(added().ops.back().op);
  return added().ops.back().op;
}

void add_op(OpDef op, const OnnxName& in_onnx) {
  try {
    add_op_or_throw(std::move(op), in_onnx);
  } catch (const UserError& error) {
    if (!added().mistake)
      added().mistake = error;
  }
}

namespace onnx {

const AddedOp* find_added_op(std::string_view domain, std::string_view op_type) {
  const std::shared_lock lock(added().mutex);
  const auto it = std::ranges::find_if(
      added().ops, [&](const AddedOp& op) { return op.name.op_type == op_type && op.name.domain == domain; });
  return it == added().ops.end() || op_type.empty() ? nullptr : &*it;
}

const AddedOp* find_added_op(const OpDef& op) {
  const std::shared_lock lock(added().mutex);
  const auto it = std::ranges::find(added().ops, &op, [](const AddedOp& each) { return &each.op; });
  return it == added().ops.end() ? nullptr : &*it;
}

void check_added_ops() {
  if (added().mistake)
    throw *added().mistake;
}

}  // namespace onnx
}  // namespace tenon
