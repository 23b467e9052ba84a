#include "fusion/permute_axes.h"

#include <set>

namespace tenon::fusion {

using loops::Axis;
using loops::Definition;
using loops::Scalar;

namespace {

// Which axis of a reader corresponds to which of the producer's; nothing where two correspond to one.
class AxisMap {
 public:
  void add(const Definition& maker, const Definition& reader, const Scalar& load) {
    for (size_t i = 0; i < maker.at.size(); ++i) {
      const std::optional<size_t> from = loops::axis_of(maker.axes, maker.at[i]);
      if (!from)
        continue;
      const std::optional<size_t> to = loops::axis_of(reader.axes, load.operands()[i]);
      fits_ = fits_ && to && maker.axes[*from].size == reader.axes[*to].size &&
              own_.emplace(*from, *to).first->second == *to;
    }
  }

  // The axes of the reader, each of which must stand for one.
  std::optional<std::vector<Axis>> ordered(const std::vector<Axis>& axes) const {
    std::vector<Axis> result;
    std::set<size_t> used;
    for (const auto& [from, to] : own_) {
      used.insert(to);
      result.push_back(axes[to]);
    }
    const bool whole = fits_ && own_.size() == axes.size() && used.size() == axes.size();
    return whole && (axes.empty() || result.back() == axes.back()) ? std::optional(result) : std::nullopt;
  }

 private:
  std::map<size_t, size_t> own_;
  bool fits_ = true;
};

}  // namespace

std::optional<Definition> permuted_like(const std::map<std::string, Definition>& makers,
                                        Definition definition) {
  AxisMap map;
  for (const Scalar& value : definition.values)
    loops::for_each_load(value, [&](const Scalar& load) {
      if (const auto maker = makers.find(load.name()); maker != makers.end())
        map.add(maker->second, definition, load);
    });
  std::optional<std::vector<Axis>> axes = map.ordered(definition.axes);
  if (!axes)
    return std::nullopt;
  definition.axes = std::move(*axes);
  return definition;
}

}  // namespace tenon::fusion
