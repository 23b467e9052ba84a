// table.h — the table of ONNX's words, and what it asks of a node.
#pragma once

#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

// What ONNX calls a value of an attribute; nothing for one that goes without saying.
struct Said {
  Attribute ours;
  std::optional<Attribute> theirs;
};

// An attribute of ours; one whose `theirs` is empty goes without saying.
struct OnnxAttribute {
  std::string_view ours, theirs;
  std::vector<Said> values = {};  // those that ONNX calls otherwise
};

struct OnnxWord {
  std::string_view op;    // ours
  std::string_view name;  // theirs
  std::vector<OnnxAttribute> attributes = {};
  // In their order, where it is not that of our operands; attributes of ours may stand here too, and an
  // empty name is an input left out.
  std::vector<std::string_view> inputs = {};
  bool (*is_for)(const Node&) = nullptr;                     // the word is for nodes of this kind only
  void (*add_attributes)(const Node&, OnnxCall&) = nullptr;  // those that are computed
};

// A name of an input: the tensor whose shape our operand `shape` is.
inline constexpr std::string_view kLike = "like";

// Of several words for an op, the first that can tell all of a node counts.
const std::vector<OnnxWord>& all_onnx_words();

}  // namespace tenon::onnx
