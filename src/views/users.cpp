#include "views/users.h"

namespace tenon {

UserCounts::UserCounts(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next())
    for (Value operand : node->operands())
      if (Count& count = counts_[operand.data()]; count.last != node) {
        count.last = node;
        ++count.users;
      }
}

size_t UserCounts::of(Value value) const {
  const auto it = counts_.find(value.data());
  return it == counts_.end() ? 0 : it->second.users;
}

}  // namespace tenon
