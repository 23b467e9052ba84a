#include <algorithm>

#include "base/error.h"
#include "fusion/stage.h"

namespace tenon {

using loops::Axis;
using loops::Definition;
using loops::Scalar;

namespace {

constexpr int64_t kMostStages = 32;              // in one kernel
constexpr int64_t kLargestRow = 256 << 10;       // in bytes: rows are kept in cache between their stages
constexpr int64_t kLargestSingleRow = 64 << 10;  // in elements, where there is one row and so one thread

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

// Whether what is read along an axis lies one after the other in memory, or stands still.
bool runs_through_memory(const Scalar& load, const Axis& axis) {
  for (size_t i = 0; i < load.operands().size(); ++i)
    if (mentions(load.operands()[i], axis) &&
        (i + 1 != load.operands().size() || load.operands()[i].kind() != Scalar::Kind::Index))
      return false;
  return true;
}

// Whether a reduction goes along rows: the last reduced axis runs through memory, and no axis that is kept
// does.
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

class Grouping {
 public:
  explicit Grouping(const std::vector<Item>& items) : items_(items) {
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t joined = items[i].stage ? find_group(i) : groups_.size();
      if (joined < groups_.size())
        join(i, joined);
      else
        start(i);
      for (const std::string& buffer : items[i].writes)
        makers_[buffer] = group_of_[i];
    }
  }

  // In an order in which each group comes after those it waits for.
  std::vector<Group> run() {
    std::vector<Group> ordered;
    std::vector<bool> done(groups_.size());
    const auto visit = [&](auto& self, size_t group) -> void {
      if (done[group])
        return;
      done[group] = true;
      for (size_t other = 0; other < groups_.size(); ++other)
        if (waits_for_[group][other])
          self(self, other);
      ordered.push_back(std::move(groups_[group]));
    };
    for (size_t group = 0; group < groups_.size(); ++group)
      visit(visit, group);
    return ordered;
  }

 private:
  const Definition& definition(size_t item) const { return items_[item].stage->definition; }

  void start(size_t item) {
    Group group{.items = {item}};
    if (items_[item].stage && definition(item).reduces()) {
      group.pattern = goes_along_rows(definition(item)) ? Pattern::Rows : Pattern::Contract;
      group.rows = static_cast<int64_t>(definition(item).axes.size());
    }
    groups_.push_back(std::move(group));
    waits_for_.emplace_back(items_.size(), false);
    group_of_.push_back(groups_.size() - 1);
    wait(groups_.size() - 1, item);
  }

  void join(size_t item, size_t group) {
    if (definition(item).reduces() && groups_[group].pattern == Pattern::Map) {
      groups_[group].pattern = Pattern::Rows;
      groups_[group].rows = static_cast<int64_t>(definition(item).axes.size());
    }
    groups_[group].items.push_back(item);
    group_of_.push_back(group);
    wait(group, item);
  }

  // The group waits for what the item reads, and so do those that wait for the group.
  void wait(size_t group, size_t item) {
    std::vector<bool> before(items_.size(), false);
    for (const std::string& buffer : items_[item].reads)
      if (const auto it = makers_.find(buffer); it != makers_.end() && it->second != group) {
        before[it->second] = true;
        for (size_t i = 0; i < groups_.size(); ++i)
          before[i] = before[i] || waits_for_[it->second][i];
      }
    const auto add = [&](std::vector<bool>& to) {
      for (size_t i = 0; i < groups_.size(); ++i)
        to[i] = to[i] || before[i];
    };
    add(waits_for_[group]);
    for (size_t other = 0; other < groups_.size(); ++other)
      if (waits_for_[other][group])
        add(waits_for_[other]);
  }

  size_t find_group(size_t item) const {
    std::set<size_t> candidates;
    for (const std::string& buffer : items_[item].reads)
      if (const auto it = makers_.find(buffer);
          it != makers_.end() && items_[groups_[it->second].items.front()].stage)
        candidates.insert(it->second);
    for (auto it = candidates.rbegin(); it != candidates.rend(); ++it)
      if (fits(item, *it) && !would_wait_for_itself(item, *it))
        return *it;
    return groups_.size();
  }

  bool would_wait_for_itself(size_t item, size_t group) const {
    for (const std::string& buffer : items_[item].reads)
      if (const auto it = makers_.find(buffer);
          it != makers_.end() && it->second != group && waits_for_[it->second][group])
        return true;
    return false;
  }

  bool fits(size_t item, size_t group) const {
    const Group& all = groups_[group];
    if (static_cast<int64_t>(all.items.size()) >= kMostStages)
      return false;
    const Definition &own = definition(item), &first = definition(all.items.front());
    const std::vector<Dim> sizes = sizes_of(own.axes);
    switch (all.pattern) {
      case Pattern::Contract:
        return !own.reduces() && sizes == sizes_of(first.axes) && reads_rows(item, group, sizes.size());
      case Pattern::Map:
        if (!own.reduces())
          return sizes == sizes_of(first.axes) && reads_rows(item, group, sizes.size());
        if (!goes_along_rows(own))
          return false;
        for (size_t each : all.items)
          if (!starts_with(sizes_of(definition(each).axes), sizes))
            return false;
        return reads_rows(item, group, sizes.size()) && is_worth_rows(first, sizes.size());
      case Pattern::Rows: {
        const auto rows = static_cast<size_t>(all.rows);
        if (own.reduces() && (!goes_along_rows(own) || sizes.size() != rows))
          return false;
        const std::vector<Dim> shared(first.axes.size() >= rows ? sizes_of(first.axes) : std::vector<Dim>());
        return starts_with(sizes, {shared.begin(), shared.begin() + static_cast<int64_t>(rows)}) &&
               reads_rows(item, group, rows) && is_worth_rows(own, rows);
      }
    }
    return false;
  }

  // Whether what the item reads of the group belongs to its own row.
  bool reads_rows(size_t item, size_t group, size_t rows) const {
    bool own_row = true;
    for_each_load(*items_[item].stage, [&](const Scalar& load) {
      const auto maker = makers_.find(load.name());
      if (maker == makers_.end() || maker->second != group)
        return;
      const Definition& made = definition(maker_of(load.name(), group));
      for (size_t i = 0; i < made.at.size(); ++i)
        if (const auto axis = loops::axis_of(made.axes, made.at[i]); axis && *axis < rows)
          own_row = own_row && loops::axis_of(definition(item).axes, load.operands()[i]) == axis;
    });
    return own_row;
  }

  size_t maker_of(const std::string& buffer, size_t group) const {
    for (size_t item : groups_[group].items)
      if (items_[item].writes.contains(buffer))
        return item;
    CHECK(false, "nothing in the group makes {}", buffer);
  }

  // Rows fit in cache, and there are enough of them for all threads, unless there is little to do.
  static bool is_worth_rows(const Definition& stage, size_t rows) {
    const std::vector<Dim> sizes = sizes_of(stage.axes);
    if (product(sizes, rows).constant().value_or(0) * info(stage.results.front().dtype).bytes > kLargestRow)
      return false;
    Dim count = 1;
    for (size_t i = 0; i < rows; ++i)
      count = count * sizes[i];
    return count.constant().value_or(8) >= 8 || product(sizes, 0).constant().value_or(0) <= kLargestSingleRow;
  }

  const std::vector<Item>& items_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;
  std::vector<std::vector<bool>> waits_for_;
  std::map<std::string, size_t> makers_;
};

}  // namespace

std::vector<Group> group_items(const std::vector<Item>& items) { return Grouping(items).run(); }

}  // namespace tenon
