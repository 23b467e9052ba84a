// fx_rows.h — a graph as the nodes that torch.fx would have for it, by their parts.
#pragma once

#include <string>
#include <vector>

#include "views/higher_order.h"
#include "views/torch_words.h"

namespace tenon {

// One argument of a call, or a part of one.
struct FxArgument {
  enum class Kind : uint8_t { None, Node, Constant, ShortConstant, List, Tuple, Slice };

  Kind kind = Kind::None;
  std::string node = {};                       // another node, by its name
  std::optional<Attribute> constant = {};      // a number, a string, …
  Value value = {};                            // what the node, or the short constant, stands for
  TorchSlot slot = TorchSlot::TensorOrNumber;  // what PyTorch takes here
  std::vector<FxArgument> parts = {};          // of a list or tuple; start, end and step of a slice

  static FxArgument none() { return {}; }
  static FxArgument of(Attribute constant) {
    return {.kind = Kind::Constant, .constant = std::move(constant)};
  }
  static FxArgument list(std::vector<FxArgument> parts) {
    return {.kind = Kind::List, .parts = std::move(parts)};
  }
  static FxArgument tuple(std::vector<FxArgument> parts) {
    return {.kind = Kind::Tuple, .parts = std::move(parts)};
  }
  static FxArgument slice(std::vector<FxArgument> parts) {
    return {.kind = Kind::Slice, .parts = std::move(parts)};
  }
};

struct FxRow {
  std::string opcode, name, target;
  std::vector<FxArgument> args = {};
  std::vector<std::pair<std::string, FxArgument>> kwargs = {};
  size_t users = 0;
  const Node* node = nullptr;  // that it stands for, or is a step of; null for inputs and the output
  Value result = {};           // of our graph, where it is one
};

struct FxRows {
  std::vector<FxRow> rows;
  FxArgument returned;
  std::vector<HandedGraph> nested;  // the graphs that rows get by name
};

FxRows fx_rows(const Graph& graph, Returns returns = Returns::Value);

}  // namespace tenon
