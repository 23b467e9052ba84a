// custom.h — ops that are not ours: those that a program added; and others, whose nodes are kept as they are
// where the file declares what they give.
#pragma once

#include <functional>

#include "frontends/onnx/added_ops.h"
#include "frontends/onnx/node_view.h"
#include "frontends/onnx/signatures.h"

namespace tenon::onnx {

using FindFunction = std::function<const FunctionProto*(const NodeProto&)>;

// Everything of a model that can neither be read nor kept, at once.
void refuse_unknown_ops(const ModelProto& model, const FindFunction& find_function);

// Whether a declared type is one that we have. Of a value that a node makes it is only a hint, so any other
// is as good as none.
bool says_something(const TypeProto& type);

// The node as an op `custom`; `types` are those of the outputs that are named, `opsets` the versions of its
// domain that have it as it stands there.
std::vector<Value> keep_custom(const NodeView& n, const Types& types,
                               std::optional<OpsetRange> opsets = std::nullopt);

// The node as the op that was added for it.
std::vector<Value> convert_added(const AddedOp& added, const NodeView& n);

}  // namespace tenon::onnx
