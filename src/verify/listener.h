// listener.h — is told how far a long task is.
#pragma once

#include "ir/evaluate.h"

namespace tenon {

struct Listener {
  // Of each stretch of the task, and how many steps it has; then of every step in it, before it is made.
  std::function<void(std::string_view what, int64_t steps)> begin = nullptr;
  std::function<void(std::string_view detail)> step = nullptr;
};

inline void begin(const Listener& listener, std::string_view what, int64_t steps) {
  if (listener.begin)
    listener.begin(what, steps);
}

inline void step(const Listener& listener, std::string_view detail) {
  if (listener.step)
    listener.step(detail);
}

// Begins a stretch of the task in which the graph is evaluated, and gives the options to do that with: a step
// for every node. The listener must outlive them.
inline EvaluateOptions heard_by(const Listener& listener, std::string_view what, const Graph& graph) {
  begin(listener, what, graph.node_count());
  return {.before_node = [&listener](const Node& node) { step(listener, node.op().name); }};
}

}  // namespace tenon
