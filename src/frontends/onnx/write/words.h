// words.h — our ops in ONNX's words: its name, its inputs in its order, its attributes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/signatures.h"
#include "ir/graph.h"

namespace tenon::onnx {

// A value, or a constant that is an attribute of ours; neither where ONNX leaves the input out.
struct OnnxInput {
  Value value;
  std::optional<Attribute> constant = std::nullopt;
  bool flat = false;  // the value is a constant expression, and ONNX wants it as a vector
};

struct NamedAttribute {
  std::string_view name;
  Attribute value;
};

struct OnnxCall {
  std::string name;
  std::vector<OnnxInput> inputs;
  std::vector<NamedAttribute> attributes;
  std::vector<std::string> encoded = {};  // attributes as the bytes that they were read as
  std::optional<OpsetRange> opsets = {};  // that have it so, where its schema is not asked
};

// Nothing for a node that ONNX has no op for.
std::optional<OnnxCall> call_in_onnx(const Node& node);

}  // namespace tenon::onnx
