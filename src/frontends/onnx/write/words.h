// words.h — our ops in ONNX's words: its name, its inputs in its order, its attributes.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// An op whose schema is not asked: all that is known is which versions of its domain have it so.
struct ForeignOp {
  std::string domain;
  int64_t version = 1;  // the oldest
  int64_t newest = std::numeric_limits<int64_t>::max();
};

struct OnnxCall {
  std::string name;
  std::vector<OnnxInput> inputs;
  std::vector<NamedAttribute> attributes;
  std::optional<ForeignOp> foreign = std::nullopt;
};

// Nothing for a node that ONNX has no op for.
std::optional<OnnxCall> call_in_onnx(const Node& node);

}  // namespace tenon::onnx
