// users.h — how many nodes use each value of a graph.
#pragma once

#include <unordered_map>

#include "ir/graph.h"

namespace tenon {

// A node that uses a value twice counts once, and returning a value is a use. All are counted in one walk:
// asking each value for its users would list those of a value that all nodes use again and again.
class UserCounts {
 public:
  explicit UserCounts(const Graph& graph);
  size_t of(Value value) const;

 private:
  struct Count {
    const Node* last = nullptr;  // the last user that was counted
    size_t users = 0;
  };
  std::unordered_map<const ValueData*, Count> counts_;
};

}  // namespace tenon
