// added_ops.h — ops that a program which uses Tenon adds, and what ONNX files call them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/op.h"

namespace tenon {

// What an ONNX file calls an op, and the version of the domain that is written.
struct OnnxName {
  std::string_view domain = "", op_type = "";
  int64_t version = 1;
};

// Adds an op to those there are, for all that this process reads, optimises, runs and writes from then on.
// Its inputs in ONNX are its operands in order, and its attributes have the same names. To be called before
// anything else runs, and with texts that live as long as it does. As it is called where nobody catches
// errors, the first mistake is kept until command_line tells of it.
void add_op(OpDef op, const OnnxName& in_onnx = {});
// The same, but a mistake is thrown at once, and it may be called while other threads work. Returns the
// declaration that graphs refer to.
const OpDef& add_op_or_throw(OpDef op, const OnnxName& in_onnx);

namespace onnx {

struct AddedOp {
  OpDef op;
  OnnxName name;
};

// The op that a file calls so, or null; the same for one of ours.
const AddedOp* find_added_op(std::string_view domain, std::string_view op_type);
const AddedOp* find_added_op(const OpDef& op);

// Throws what is wrong with what was added.
void check_added_ops();

}  // namespace onnx
}  // namespace tenon
