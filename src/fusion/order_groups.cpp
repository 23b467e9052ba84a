#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "fusion/cost.h"
#include "fusion/fuse.h"

namespace tenon::fusion {

using lowering::BufferId;
using lowering::Group;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kTypicalSize = 64;  // of a dynamic dimension

int64_t typical_bytes(const loops::Buffer& buffer) {
  std::map<std::string, int64_t> sizes;
  const Dim bytes = size_of(buffer);
  for (const std::string& symbol : bytes.symbols())
    sizes.emplace(symbol, kTypicalSize);
  return bytes.evaluate(sizes).value_or(0);
}

// Which memory the groups allocate and free in sequence.
class Schedule {
 public:
  explicit Schedule(const KernelGraph& graph) : makes_(graph.groups.size()), reads_(graph.groups.size()) {
    const std::vector<KernelNode>& nodes = graph.nodes;
    const std::vector<Group>& groups = graph.groups;
    for (const KernelNode& node : nodes)
      if (node.kind == KernelNode::Kind::Alias)
        views_.emplace(node.results.front(), node.operands.front());
    for (const Group& group : groups)
      is_loop_.push_back(nodes[group.nodes.front()].loop);
    std::map<BufferId, size_t> maker;
    for (size_t i = 0; i < groups.size(); ++i)
      for (size_t node : groups[i].nodes)
        for (BufferId buffer : nodes[node].writes)
          maker.emplace(buffer, i);
    for (size_t i = 0; i < groups.size(); ++i) {
      for (size_t node : groups[i].nodes) {
        for (BufferId buffer : nodes[node].reads)
          if (const auto it = maker.find(root(buffer)); it != maker.end() && it->second != i)
            reads_[i].insert(root(buffer));
      }
    }
    for (const std::set<BufferId>& all : reads_)
      for (BufferId id : all) {
        const KernelBuffer& buffer = graph.buffers[id];
        ++readers_[id];
        bytes_.emplace(id, buffer.host_type ? 0 : typical_bytes(buffer.elements));
      }
    for (const auto& [buffer, bytes] : bytes_)
      makes_[maker.at(buffer)].insert(buffer);
    waits_for_.resize(groups.size());
    for (size_t i = 0; i < groups.size(); ++i)
      for (size_t node : groups[i].nodes)
        for (const std::set<BufferId>* needed : {&nodes[node].reads, &nodes[node].after})
          for (BufferId needed_buffer : *needed)
            for (BufferId buffer : {needed_buffer, root(needed_buffer)})
              if (const auto it = maker.find(buffer); it != maker.end() && it->second != i)
                waits_for_[i].insert(it->second);
  }

  // Greedily the ready group after which the least memory is in use; the first of equals.
  std::vector<size_t> greedy() const {
    std::vector<std::vector<size_t>> waiting(makes_.size());  // for each group
    std::vector<size_t> missing(makes_.size());               // how many it waits for
    std::map<BufferId, std::vector<size_t>> readers;
    for (size_t i = 0; i < makes_.size(); ++i) {
      missing[i] = waits_for_[i].size();
      for (size_t maker : waits_for_[i])
        waiting[maker].push_back(i);
      for (BufferId buffer : reads_[i])
        readers[buffer].push_back(i);
    }
    std::map<BufferId, int64_t> left = readers_;
    std::set<std::pair<int64_t, size_t>> ready;                  // growth, group
    std::vector<std::optional<int64_t>> growths(makes_.size());  // of those that are ready
    const auto make_ready = [&](size_t group) {
      growths[group] = growth(group, left);
      ready.emplace(*growths[group], group);
    };
    for (size_t i = 0; i < makes_.size(); ++i)
      if (missing[i] == 0)
        make_ready(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
      const size_t next = ready.begin()->second;
      ready.erase(ready.begin());
      growths[next].reset();
      order.push_back(next);
      for (BufferId buffer : reads_[next])
        if (--left[buffer] == 1)  // the one that is left frees it
          for (size_t reader : readers[buffer])
            if (growths[reader]) {
              ready.erase({*growths[reader], reader});
              make_ready(reader);
            }
      for (size_t group : waiting[next])
        if (--missing[group] == 0)
          make_ready(group);
    }
    CHECK(order.size() == makes_.size(), "{} groups wait for each other", makes_.size() - order.size());
    return order;
  }

  // The same order, but with each loop followed by the loops independent of it, and preceded by what these
  // need.
  std::vector<size_t> with_loops_together(std::vector<size_t> order) const {
    for (size_t first = 0; first < order.size(); ++first) {
      if (!is_loop_[order[first]])
        continue;
      std::set<size_t> loops = {order[first]}, later = loops;  // later: loops, and what needs them
      for (size_t i = first + 1; i < order.size(); ++i) {
        const std::set<size_t>& waits = waits_for_[order[i]];
        const bool needs_loops =
            std::any_of(waits.begin(), waits.end(), [&](size_t group) { return later.contains(group); });
        if (!needs_loops && is_loop_[order[i]])
          loops.insert(order[i]);
        if (needs_loops || is_loop_[order[i]])
          later.insert(order[i]);
      }
      std::set<size_t> needed;  // by the loops
      for (size_t i = order.size(); i-- > first + 1;)
        for (size_t group : waits_for_[order[i]])
          if (loops.contains(order[i]) || needed.contains(order[i]))
            needed.insert(group);
      const auto begin = order.begin() + static_cast<int64_t>(first);
      const auto others =
          std::stable_partition(begin, order.end(), [&](size_t group) { return needed.contains(group); });
      std::stable_partition(others, order.end(), [&](size_t group) { return loops.contains(group); });
      first = static_cast<size_t>(others - order.begin()) + loops.size() - 1;
    }
    return order;
  }

  int64_t peak(const std::vector<size_t>& order) const {
    std::map<BufferId, int64_t> left = readers_;
    int64_t taken = 0, most = 0;
    for (size_t group : order) {
      for (BufferId buffer : makes_[group])
        taken += bytes_.at(buffer);
      most = std::max(most, taken);
      for (BufferId buffer : reads_[group])
        if (--left[buffer] == 0)
          taken -= bytes_.at(buffer);
    }
    return most;
  }

 private:
  // The buffer whose memory this one is.
  BufferId root(BufferId buffer) const {
    for (auto it = views_.find(buffer); it != views_.end(); it = views_.find(buffer))
      buffer = it->second;
    return buffer;
  }

  int64_t growth(size_t group, const std::map<BufferId, int64_t>& left) const {
    int64_t bytes = 0;
    for (BufferId buffer : makes_[group])
      bytes += bytes_.at(buffer);
    for (BufferId buffer : reads_[group])
      bytes -= left.at(buffer) == 1 ? bytes_.at(buffer) : 0;
    return bytes;
  }

  std::map<BufferId, BufferId> views_;             // buffers that are others under another shape
  std::vector<std::set<BufferId>> makes_, reads_;  // by group: buffers that go from one to another
  std::vector<std::set<size_t>> waits_for_;
  std::vector<bool> is_loop_;
  std::map<BufferId, int64_t> readers_, bytes_;  // by buffer
};

}  // namespace

void order_groups(KernelGraph& graph) {
  const Schedule schedule(graph);
  std::vector<size_t> order(graph.groups.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::vector<size_t> other = schedule.greedy(); schedule.peak(other) < schedule.peak(order))
    order = std::move(other);
  // They may run concurrently, unless that takes memory which they would share in sequence.
  if (std::vector<size_t> together = schedule.with_loops_together(order);
      schedule.peak(together) <= schedule.peak(order))
    order = std::move(together);
  std::vector<Group> ordered;
  for (size_t group : order)
    ordered.push_back(std::move(graph.groups[group]));
  graph.groups = std::move(ordered);
}

}  // namespace tenon::fusion
