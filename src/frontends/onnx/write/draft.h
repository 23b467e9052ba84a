// draft.h — the ONNX model that is to be written, node by node: every name is there, no weight is computed
// yet.
#pragma once

#include <map>
#include <memory>

#include "frontends/onnx/write/constants.h"
#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

struct DraftGraph;

struct DraftNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // an empty name is one that is left out
  std::vector<NamedAttribute> attributes = {};
  std::vector<std::string> encoded = {};  // attributes too, as the bytes that they were read as
  std::vector<std::pair<std::string_view, std::unique_ptr<DraftGraph>>> graphs = {};  // attributes too
  std::vector<std::string> sources = {};  // the nodes of the user's that it stands for
};

struct DraftValue {
  std::string name;
  Type type;
};

struct DraftGraph {
  std::string name;
  std::vector<DraftNode> nodes = {};
  std::vector<DraftValue> inputs = {}, outputs = {};
};

// A weight: a constant expression of the graph, or what ONNX takes as an input and we as an attribute.
struct DraftInitializer {
  std::string name;
  Value value;
  Extents extents;  // of the value, or as a vector
  std::optional<Tensor> tensor = std::nullopt;
};

struct Draft {
  DraftGraph graph;
  std::vector<DraftInitializer> initializers = {};
  int64_t opset = 0;
  std::map<std::string, int64_t, std::less<>> other_opsets = {};  // of the domains that have other ops
  std::string newest_op = "";  // one that no older opset has; empty where the oldest we write has all
};

// In which opset a model is written: that which is asked for, or else one that is not older than wanted.
struct OpsetChoice {
  std::optional<int64_t> asked;
  int64_t wanted = 0;
};

// Of a graph that was legalised.
Draft make_draft(const Graph& graph, ConstantExpressions& constants, const OpsetChoice& choice);

int64_t count_nodes(const DraftGraph& graph);  // those of nested graphs too

}  // namespace tenon::onnx
