// group_dependences.h — which groups wait for which while nodes join them, kept free of cycles.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace tenon::fusion {

// Keeps a topological order of the groups (D. J. Pearce and P. H. J. Kelly, "A Dynamic Topological Sort
// Algorithm for Directed Acyclic Graphs", 2007), so that a question looks at the groups between two of them,
// and not at all.
class GroupDependences {
 public:
  // A group that waits for these. Groups are numbered in the order in which they are added.
  void add_group(const std::set<size_t>& makers);

  // Whether the group would wait for itself if it waited for these too. It may be among them.
  bool would_close_cycle(size_t group, const std::set<size_t>& makers) const;

  // From now on the group waits for these too, of which none waits for it. It may be among them.
  void wait(size_t group, const std::set<size_t>& makers);

  // Each group after those that it waits for; of these, and otherwise, the one that was added first.
  std::vector<size_t> in_order() const;

  // How many groups were looked at so far, for those that count the work.
  int64_t visits() const { return visits_; }

 private:
  void wait_for(size_t group, size_t maker);
  std::vector<size_t> reach(size_t from, const std::vector<std::vector<size_t>>& along, size_t first,
                            size_t last, size_t wanted) const;

  std::vector<std::vector<size_t>> waits_for_, waited_for_by_;
  std::vector<size_t> position_;       // in a topological order
  mutable std::vector<int64_t> seen_;  // the number of the walk that came to a group last
  mutable int64_t walks_ = 0, visits_ = 0;
};

}  // namespace tenon::fusion
