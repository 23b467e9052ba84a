// legalise.h — a graph made of what ONNX has: other ops in their place where it lacks one.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "frontends/onnx/write/constants.h"

namespace tenon::onnx {

// Until here the standard ops of composites are used without being asked for: runtimes have them.
constexpr int64_t kUsualOpset = 23;

struct Vocabulary {
  std::optional<int64_t> opset = std::nullopt;      // that is asked for
  std::set<std::string, std::less<>> avoided = {};  // ops of ONNX that are not used where others will do
};

// Every node that is no constant expression can be spelled in the opset afterwards, or, where none is asked
// for, in some opset. What cannot is the user's fault. Nodes that were replaced stay behind unused.
void legalise(Graph& graph, ConstantExpressions& constants, const Vocabulary& vocabulary);

// The nodes of the user's, by their names, because of which that throws; the graph is of no use afterwards.
std::set<std::string> find_unwritable(Graph& graph, ConstantExpressions& constants,
                                      const Vocabulary& vocabulary);

}  // namespace tenon::onnx
