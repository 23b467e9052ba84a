#include "fusion/group_dependences.h"

#include <algorithm>

#include "base/error.h"

namespace tenon::fusion {

void GroupDependences::add_group(const std::set<size_t>& makers) {
  const size_t group = position_.size();
  position_.push_back(group);
  seen_.push_back(0);
  waits_for_.emplace_back(makers.begin(), makers.end());
  waited_for_by_.emplace_back();
  for (size_t maker : makers)
    waited_for_by_[maker].push_back(group);
}

// The groups that can be come to, this one first, whose positions are from `first` to `last`. Where `wanted`
// is one of them, the walk ends there.
std::vector<size_t> GroupDependences::reach(size_t from, const std::vector<std::vector<size_t>>& along,
                                            size_t first, size_t last, size_t wanted) const {
  std::vector<size_t> found;
  const auto visit = [&](size_t group) {
    ++visits_;
    if (seen_[group] == walks_ || position_[group] < first || position_[group] > last)
      return;
    seen_[group] = walks_;
    found.push_back(group);
  };
  visit(from);
  for (size_t i = 0; i < found.size() && seen_[wanted] != walks_; ++i)
    for (size_t next : along[found[i]])
      visit(next);
  return found;
}

bool GroupDependences::would_close_cycle(size_t group, const std::set<size_t>& makers) const {
  ++walks_;
  return std::ranges::any_of(makers, [&](size_t maker) {
    if (maker == group || position_[maker] < position_[group])
      return false;
    reach(maker, waits_for_, position_[group], position_.size(), group);
    return seen_[group] == walks_;
  });
}

void GroupDependences::wait(size_t group, const std::set<size_t>& makers) {
  for (size_t maker : makers)
    if (maker != group)
      wait_for(group, maker);
}

void GroupDependences::wait_for(size_t group, size_t maker) {
  if (std::ranges::find(waits_for_[group], maker) != waits_for_[group].end())
    return;
  if (position_[maker] > position_[group]) {
    // What the maker waits for and what waits for the group change places, each part in its order.
    const auto by_position = [&](size_t a, size_t b) { return position_[a] < position_[b]; };
    ++walks_;
    std::vector<size_t> earlier = reach(maker, waits_for_, position_[group], position_[maker], group);
    CHECK(seen_[group] != walks_, "group {} would wait for itself", group);
    ++walks_;
    std::vector<size_t> later = reach(group, waited_for_by_, position_[group], position_[maker], maker);
    std::ranges::sort(earlier, by_position);
    std::ranges::sort(later, by_position);
    earlier.insert(earlier.end(), later.begin(), later.end());
    std::vector<size_t> positions;
    for (size_t each : earlier)
      positions.push_back(position_[each]);
    std::ranges::sort(positions);
    for (size_t i = 0; i < earlier.size(); ++i)
      position_[earlier[i]] = positions[i];
  }
  waits_for_[group].push_back(maker);
  waited_for_by_[maker].push_back(group);
}

std::vector<size_t> GroupDependences::in_order() const {
  std::vector<size_t> order;
  std::vector<bool> done(position_.size());
  const auto place = [&](auto& self, size_t group) -> void {
    done[group] = true;
    // All that it waits for, however indirectly, and that has no place yet.
    ++walks_;
    std::vector<size_t> needed;
    const auto need = [&](size_t each) {
      for (size_t maker : waits_for_[each])
        if (!done[maker] && seen_[maker] != walks_) {
          seen_[maker] = walks_;
          needed.push_back(maker);
        }
    };
    need(group);
    for (size_t i = 0; i < needed.size(); ++i)
      need(needed[i]);
    std::ranges::sort(needed);
    for (size_t each : needed)
      if (!done[each])
        self(self, each);
    order.push_back(group);
  };
  for (size_t group = 0; group < position_.size(); ++group)
    if (!done[group])
      place(place, group);
  return order;
}

}  // namespace tenon::fusion
