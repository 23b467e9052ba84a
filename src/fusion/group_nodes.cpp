#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "fusion/fused_attention.h"
#include "fusion/group_dependences.h"
#include "fusion/permute_axes.h"
#include "loops/contraction.h"
#include "target/cluster.h"

namespace tenon::fusion {

using loops::Axis;
using loops::Definition;
using loops::Product;
using loops::Scalar;
using lowering::BufferId;
using lowering::BufferTable;
using lowering::Group;
using lowering::KernelNode;
using lowering::Pattern;
using lowering::Stage;

namespace {

constexpr int64_t kMostStages = 32;                // in one kernel
constexpr int kMostSiblings = 8;                   // considered: of more readers of a buffer, the latest
constexpr int64_t kLargestRow = 256 << 10;         // in bytes: rows are kept in cache between their stages
constexpr int64_t kLargestRowOfBlock = 128 << 10;  // or in what a thread block of a GPU has, or a cluster
constexpr int64_t kLargestSingleRow = 64 << 10;    // in elements, where there are fewer rows

std::vector<Dim> sizes_of(const std::vector<Axis>& axes) {
  std::vector<Dim> sizes;
  for (const Axis& axis : axes)
    sizes.push_back(axis.size);
  return sizes;
}

bool starts_with(const std::vector<Dim>& sizes, const std::vector<Dim>& prefix) {
  return sizes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), sizes.begin());
}

Dim product(const std::vector<Dim>& sizes, size_t from) {
  Dim result = 1;
  for (size_t i = from; i < sizes.size(); ++i)
    result = result * sizes[i];
  return result;
}

// Calls f for every load of the stage.
template <class F>
void for_each_load(const Stage& stage, F&& f) {
  for (const Scalar& value : stage.definition.values)
    loops::for_each_load(value, f);
}

bool mentions(const Scalar& index, const Axis& axis) { return loops::mentions(index, axis.variable); }

bool mentions(const Scalar& load, const std::vector<Axis>& axes) {
  return std::any_of(load.operands().begin(), load.operands().end(), [&](const Scalar& index) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return mentions(index, axis); });
  });
}

// Whether a load is contiguous along an axis, or does not depend on it.
bool runs_through_memory(const Scalar& load, const Axis& axis) {
  for (size_t i = 0; i < load.operands().size(); ++i)
    if (mentions(load.operands()[i], axis) &&
        (i + 1 != load.operands().size() || load.operands()[i].kind() != Scalar::Kind::Index))
      return false;
  return true;
}

// Whether a reduction is along rows: contiguous along the last reduced axis, and along no kept axis.
bool goes_along_rows(const Definition& definition) {
  bool along = true, across = !definition.axes.empty(), any_across = false;
  for (const Scalar& value : definition.values)
    loops::for_each_load(value, [&](const Scalar& load) {
      if (!mentions(load, definition.reduced) || load.operands().empty())
        return;
      along = along && runs_through_memory(load, definition.reduced.back()) &&
              mentions(load.operands().back(), definition.reduced.back());
      if (definition.axes.empty())
        return;
      across = across && runs_through_memory(load, definition.axes.back());
      any_across |= mentions(load.operands().back(), definition.axes.back());
    });
  return along && !(across && any_across);
}

// Whether a reduction is a contraction whose operands are both reused: for every row of one, all rows of the
// other. Then tiles of rows and columns share loads, even where the sum is along contiguous memory, as in q
// kᵀ.
bool shares_factors(const Definition& definition) {
  constexpr int64_t kLeastRows = 16, kLeastColumns = 8;  // that pay for packing the columns
  const std::optional<Product> product = loops::match_product(definition.values.front());
  if (definition.values.size() != 1 || definition.axes.empty() || !product || !product->multiplies())
    return false;
  const Axis& column = definition.axes.back();
  if (column.size.constant().value_or(0) < kLeastColumns)
    return false;
  for (size_t i = 0; i < 2; ++i) {
    const Scalar &one = product->operand(i), &other = product->operand(1 - i);
    if (!mentions(one, column) || mentions(other, column))
      continue;
    return std::any_of(definition.axes.begin(), definition.axes.end(), [&](const Axis& row) {
      return row.size.constant().value_or(0) >= kLeastRows && mentions(other, row) && !mentions(one, row);
    });
  }
  return false;
}

// In bytes, of what the stages of a row exchange.
int64_t largest_row(const Target& target) { return target.gpu ? kLargestRowOfBlock : kLargestRow; }

// The same in words of registers, where a cluster of thread blocks has them.
int64_t most_words_of_row(const Target& target) {
  return target.gpu && has_clusters(*target.gpu) ? kLargestRowOfBlock / 4 * kPortableBlocksOfCluster : 0;
}

class Grouper {
 public:
  Grouper(std::span<const KernelNode> nodes, const BufferTable& buffers, const std::set<BufferId>& kept,
          const Target& target, NumericsBudget numerics)
      : nodes_(nodes),
        buffers_(buffers),
        largest_row_(largest_row(target)),
        most_words_(most_words_of_row(target)) {
    const FoundAttention found = find_fused_attention(nodes, buffers, kept, target, numerics);
    for (const FusedAttention& attention : found.fused) {
      for (size_t node : attention.nodes)
        first_of_attention_.emplace(node, attention.nodes.front());
      attention_.emplace(attention.nodes.front(), attention);
    }
    for (const FusedAttention& attention : found.declined)
      for (size_t node : attention.nodes)
        obstacles_to_attention_.emplace(node, attention);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const size_t joined = nodes[i].stage ? find_group(i) : groups_.size();
      if (joined < groups_.size())
        join(i, joined);
      else
        start(i);
      for (BufferId buffer : nodes[i].writes)
        makers_[buffer] = group_of_[i];
      if (nodes[i].stage)
        for (BufferId buffer : nodes[i].reads)
          readers_[buffer].insert(group_of_[i]);
    }
  }

  Grouping run() {
    std::vector<Missed> missed = find_missed();
    return {ordered_groups(), std::move(missed)};
  }

 private:
  std::vector<Group> ordered_groups() {
    std::vector<Group> ordered;
    for (size_t group : dependences_.in_order())
      ordered.push_back(std::move(groups_[group]));
    return ordered;
  }

  std::vector<Missed> find_missed() const {
    std::vector<Missed> missed;
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (BufferId buffer : reads_by_name(i))
        if (const auto maker = makers_.find(buffer); maker != makers_.end() &&
                                                     maker->second != group_of_[i] && nodes_[i].stage &&
                                                     is_kernel(maker->second)) {
          const auto obstacle = obstacles_.find({i, maker->second});
          missed.push_back({buffer, i,
                            is_within_declined_attention(i, buffer) ? obstacles_to_attention_.at(i).obstacle
                            : obstacle == obstacles_.end()          ? "it was fused into another kernel"
                                                                    : obstacle->second});
        }
    return missed;
  }

  // Whether the buffer goes from one stage of attention to another, which could have been one kernel.
  bool is_within_declined_attention(size_t reader, BufferId buffer) const {
    const auto attention = obstacles_to_attention_.find(reader);
    return attention != obstacles_to_attention_.end() &&
           std::ranges::any_of(attention->second.nodes,
                               [&](size_t node) { return nodes_[node].writes.contains(buffer); });
  }

  std::vector<BufferId> reads_by_name(size_t node) const {
    std::vector<BufferId> reads(nodes_[node].reads.begin(), nodes_[node].reads.end());
    std::ranges::sort(reads, {}, [&](BufferId id) { return buffers_[id].name(); });
    return reads;
  }

  bool is_kernel(size_t group) const { return nodes_[groups_[group].nodes.front()].stage.has_value(); }

  const Definition& definition(size_t node) const { return nodes_[node].stage->definition; }

  void start(size_t node) {
    Group group{.nodes = {node}};
    if (nodes_[node].stage && definition(node).reduces()) {
      group.pattern = goes_along_rows(definition(node)) && !shares_factors(definition(node))
                          ? Pattern::Rows
                          : Pattern::Contract;
      group.rows = static_cast<int64_t>(definition(node).axes.size());
    }
    if (const auto attention = attention_.find(node); attention != attention_.end()) {
      group.pattern = Pattern::FusedAttention;
      group.rows = attention->second.rows;
    }
    groups_.push_back(std::move(group));
    loads_of_first_.push_back(nodes_[node].stage ? loads_by_iteration(definition(node))
                                                 : std::vector<Scalar>());
    dependences_.add_group(makers_for(node));
    group_of_.push_back(groups_.size() - 1);
    // The epilogue of a contraction reads its sums, however large their expression.
    const bool goes_on = nodes_[node].stage && groups_.back().pattern != Pattern::Contract;
    parts_.push_back(goes_on ? parts_within(node, groups_.size() - 1) : 0);
  }

  void join(size_t node, size_t group) {
    if (definition(node).reduces() && groups_[group].pattern == Pattern::Map) {
      groups_[group].pattern = Pattern::Rows;
      groups_[group].rows = static_cast<int64_t>(definition(node).axes.size());
    }
    if (groups_[group].pattern == Pattern::FusedAttention)
      add_result_of_attention(node, group);
    // The second product of attention is stored, however large its expression.
    const bool goes_on = groups_[group].pattern != Pattern::FusedAttention || !definition(node).reduces();
    parts_.push_back(goes_on ? parts_within(node, group) : 0);
    groups_[group].nodes.push_back(node);
    group_of_.push_back(group);
    dependences_.wait(group, makers_for(node));
  }

  // What an epilogue may read: the second product and earlier epilogue stages.
  void add_result_of_attention(size_t node, size_t group) {
    std::map<std::string, Definition>& results = results_of_attention_[group];
    const std::string& name = definition(node).results.front().name;
    if (!first_of_attention_.contains(node))
      results.emplace(name, *permuted_like(results, definition(node)));
    else if (attention_.at(first_of_attention_.at(node)).nodes.back() == node)
      results.emplace(name, definition(node));
  }

  // The groups that produce what an node needs.
  std::set<size_t> makers_for(size_t node) const {
    std::set<size_t> makers;
    for (const std::set<BufferId>* buffers : {&nodes_[node].reads, &nodes_[node].after})
      for (BufferId buffer : *buffers)
        if (const auto it = makers_.find(buffer); it != makers_.end())
          makers.insert(it->second);
    return makers;
  }

  // First a producer of what the node reads (vertical fusion), then a sibling that reads the same (horizontal
  // fusion).
  size_t find_group(size_t node) {
    if (const auto it = first_of_attention_.find(node); it != first_of_attention_.end())
      return it->second == node ? groups_.size() : group_of_[it->second];
    std::set<size_t> makers, siblings;
    for (BufferId buffer : nodes_[node].reads) {
      if (const auto it = makers_.find(buffer); it != makers_.end() && is_kernel(it->second))
        makers.insert(it->second);
      if (const auto it = readers_.find(buffer); it != readers_.end())
        siblings.insert(it->second.begin(), it->second.end());
    }
    for (auto it = makers.rbegin(); it != makers.rend(); ++it) {
      std::optional<std::string> obstacle = obstacle_to(node, *it);
      if (!obstacle)
        return *it;
      obstacles_.emplace(std::pair(node, *it), std::move(*obstacle));
    }
    const std::vector<Scalar> loads = loads_by_iteration(definition(node));
    int asked = 0;
    for (auto it = siblings.rbegin(); it != siblings.rend() && asked < kMostSiblings; ++it, ++asked)
      if (groups_[*it].pattern != Pattern::FusedAttention && !makers.contains(*it) && reads_any(loads, *it) &&
          !obstacle_to(node, *it))
        return *it;
    return groups_.size();
  }

  // Whether each iteration of the group reads one of these elements too, so that fusing loads it once.
  bool reads_any(const std::vector<Scalar>& loads, size_t group) const {
    const std::vector<Scalar>& others = loads_of_first_[group];
    return std::any_of(loads.begin(), loads.end(), [&](const Scalar& load) {
      return std::find(others.begin(), others.end(), load) != others.end();
    });
  }

  // Loads of a different element in each iteration, with variables renamed to be comparable.
  static std::vector<Scalar> loads_by_iteration(const Definition& definition) {
    std::vector<Axis> axes = definition.axes;
    axes.insert(axes.end(), definition.reduced.begin(), definition.reduced.end());
    std::map<std::string, Dim> names;
    for (size_t i = 0; i < axes.size(); ++i)
      names.emplace(axes[i].variable, Dim::symbol(fmt::format("iteration{}", i)));
    std::vector<Scalar> loads;
    for (const Scalar& value : definition.values)
      loops::for_each_load(value, [&](const Scalar& load) {
        if (std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) {
              return axis.size == Dim(1) || loops::mentions(load, axis.variable);
            }))
          loads.push_back(load.substitute(names));
      });
    return loads;
  }

  bool would_wait_for_itself(size_t node, size_t group) const {
    for (BufferId buffer : nodes_[node].after)
      if (const auto it = makers_.find(buffer); it != makers_.end() && it->second == group)
        return true;
    return dependences_.would_close_cycle(group, makers_for(node));
  }

  // The size of an node's expression after inlining those of the group that it reads.
  int64_t parts_within(size_t node, size_t group) const {
    int64_t parts = 0;
    for (const Scalar& value : definition(node).values) {
      parts += cost_of(value).parts;
      loops::for_each_load(value, [&](const Scalar& load) {
        const BufferId buffer = buffers_.id_of(load.name());
        if (const auto maker = makers_.find(buffer); maker != makers_.end() && maker->second == group)
          parts += parts_[maker_of(buffer, group)];
      });
    }
    return parts;
  }

  // Why the node cannot be fused into the group; nothing where it can.
  std::optional<std::string> obstacle_to(size_t node, size_t group) const {
    const Group& all = groups_[group];
    if (static_cast<int64_t>(all.nodes.size()) >= kMostStages)
      return fmt::format("kernel reached the limit of {} fused stages", kMostStages);
    if (would_wait_for_itself(node, group))
      return "another of its operands depends on this kernel: a cycle";
    if (all.pattern != Pattern::Rows && parts_within(node, group) > kLargestFormula)
      return "the fused expression would be too large";
    const Definition &own = definition(node), &first = definition(all.nodes.front());
    switch (all.pattern) {
      case Pattern::Contract:
        return own.reduces() ? "both are reductions over different axes"
                             : obstacle_in_iterations(node, group);
      case Pattern::FusedAttention:
        return own.reduces() ? "both are reductions over different axes"
                             : obstacle_after_attention(node, group);
      case Pattern::Map:
        if (!own.reduces())
          return obstacle_in_iterations(node, group);
        return obstacle_in_rows(node, group, own.axes.size(), first);
      case Pattern::Rows:
        if (own.reduces() && own.axes.size() != static_cast<size_t>(all.rows))
          return "it reduces a different number of axes";
        return obstacle_in_rows(node, group, static_cast<size_t>(all.rows), own);
    }
    return std::nullopt;
  }

  // A pointwise epilogue of attention.
  std::optional<std::string> obstacle_after_attention(size_t node, size_t group) const {
    if (permuted_like(results_of_attention_.at(group), definition(node)))
      return std::nullopt;
    return "it is not pointwise in the output of attention";
  }

  // All stages in one loop nest.
  std::optional<std::string> obstacle_in_iterations(size_t node, size_t group) const {
    const std::vector<Dim> sizes = sizes_of(definition(node).axes),
                           others = sizes_of(definition(groups_[group].nodes.front()).axes);
    if (sizes != others)
      return fmt::format("its iteration space is [{}], not [{}]", fmt::join(sizes, ","),
                         fmt::join(others, ","));
    if (!reads_rows(node, group, sizes.size()))
      return "it reads elements computed in other iterations";
    return std::nullopt;
  }

  // All stages in one loop over rows; `longest` is the stage whose row must stay in cache.
  std::optional<std::string> obstacle_in_rows(size_t node, size_t group, size_t rows,
                                              const Definition& longest) const {
    const Definition& own = definition(node);
    if (own.reduces() && !goes_along_rows(own))
      return "it reduces across rows";
    const std::vector<Dim> sizes = sizes_of(own.axes),
                           others = sizes_of(definition(groups_[group].nodes.front()).axes);
    const std::vector<Dim> shared(others.begin(),
                                  others.begin() + static_cast<int64_t>(std::min(rows, others.size())));
    bool same = shared.size() == rows && starts_with(sizes, shared);
    if (own.reduces() && groups_[group].pattern == Pattern::Map)
      for (size_t each : groups_[group].nodes)
        same = same && starts_with(sizes_of(definition(each).axes), sizes);
    if (!same)
      return fmt::format("its rows differ from those of [{}]", fmt::join(others, ","));
    if (!reads_rows(node, group, rows))
      return "it reads elements of other rows";
    if (const int64_t bytes = bytes_read_elsewhere(node, group, rows); bytes > largest_row_)
      return fmt::format("it reads other positions of a row of {} KiB", bytes >> 10);
    return obstacle_to_rows(longest, rows);
  }

  // Of the largest row of the group's that the node reads where it does not compute.
  int64_t bytes_read_elsewhere(size_t node, size_t group, size_t rows) const {
    const auto is_own = [](const Scalar& index) {
      return index.kind() == Scalar::Kind::Index &&
             (index.index().is_symbol() || index.index().is_constant());
    };
    int64_t bytes = 0;
    for_each_load(*nodes_[node].stage, [&](const Scalar& load) {
      const BufferId buffer = buffers_.id_of(load.name());
      const auto maker = makers_.find(buffer);
      if (maker == makers_.end() || maker->second != group || std::ranges::all_of(load.operands(), is_own))
        return;
      const Definition& made = definition(maker_of(buffer, group));
      const int64_t elements =
          made.axes.size() > rows ? product(sizes_of(made.axes), rows).constant().value_or(0) : 1;
      bytes = std::max(bytes, elements * info(load.dtype()).bytes);
    });
    return bytes;
  }

  // Whether the node reads the group's results at its own row only.
  bool reads_rows(size_t node, size_t group, size_t rows) const {
    bool own_row = true;
    for_each_load(*nodes_[node].stage, [&](const Scalar& load) {
      const BufferId buffer = buffers_.id_of(load.name());
      const auto maker = makers_.find(buffer);
      if (maker == makers_.end() || maker->second != group)
        return;
      const Definition& made = definition(maker_of(buffer, group));
      for (size_t i = 0; i < made.at.size(); ++i)
        for (size_t axis = 0; axis < rows; ++axis)
          if (mentions(made.at[i], made.axes[axis]))
            own_row =
                own_row && load.operands()[i].kind() == Scalar::Kind::Index &&
                load.operands()[i].index() ==
                    made.at[i].index().substitute(
                        {{made.axes[axis].variable, Dim::symbol(definition(node).axes[axis].variable)}});
    });
    return own_row;
  }

  size_t maker_of(BufferId buffer, size_t group) const {
    for (size_t node : groups_[group].nodes)
      if (nodes_[node].writes.contains(buffer))
        return node;
    CHECK(false, "nothing in the group makes {}", buffers_[buffer].name());
  }

  // Rows must fit in cache, and there must be enough of them for all threads, unless there is little work.
  std::optional<std::string> obstacle_to_rows(const Definition& stage, size_t rows) const {
    const std::vector<Dim> sizes = sizes_of(stage.axes);
    const int64_t elements = product(sizes, rows).constant().value_or(0);
    const int64_t bytes = elements * info(stage.results.front().dtype).bytes;
    const bool fits_cluster = elements <= most_words_ && bytes <= 4 * most_words_;
    if (bytes > largest_row_ && !fits_cluster)
      return fmt::format("a row takes {} KiB and would not stay in cache", bytes >> 10);
    Dim count = 1;
    for (size_t i = 0; i < rows; ++i)
      count = count * sizes[i];
    if (count.constant().value_or(kLeastRowsOfKernel) < kLeastRowsOfKernel &&
        product(sizes, 0).constant().value_or(0) > kLargestSingleRow)
      return fmt::format("too few rows to parallelise: {}", count);
    return std::nullopt;
  }

  std::span<const KernelNode> nodes_;
  const BufferTable& buffers_;
  const int64_t largest_row_;  // in bytes
  const int64_t most_words_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;
  std::vector<int64_t> parts_;                       // of each node's expression, in its group
  std::vector<std::vector<Scalar>> loads_of_first_;  // of each group's first node, by iteration
  GroupDependences dependences_;
  std::map<BufferId, size_t> makers_;
  std::map<BufferId, std::set<size_t>> readers_;
  std::map<std::pair<size_t, size_t>, std::string> obstacles_;                // between nodes and groups
  std::map<size_t, size_t> first_of_attention_;                               // by all of their nodes
  std::map<size_t, FusedAttention> obstacles_to_attention_;                   // by each of its nodes
  std::map<size_t, FusedAttention> attention_;                                // by that first node
  std::map<size_t, std::map<std::string, Definition>> results_of_attention_;  // by group and buffer
};

}  // namespace

Grouping group_nodes(std::span<const KernelNode> nodes, const BufferTable& buffers,
                     const std::set<BufferId>& kept, const Target& target, NumericsBudget numerics) {
  return Grouper(nodes, buffers, kept, target, numerics).run();
}

}  // namespace tenon::fusion
