// views.h — a graph as other tools would show it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon {

struct View {
  std::string_view name;
  std::string_view doc;
  std::string (*render)(const Graph&);
};

// tenon, fx, fx-code, torchscript, onnx, hlo, relay, cpp, dot, deps.
const std::vector<View>& all_views();

}  // namespace tenon
