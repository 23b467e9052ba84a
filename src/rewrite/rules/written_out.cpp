#include "rewrite/rules/written_out.h"

#include <mutex>
#include <unordered_map>

namespace tenon {
namespace {

constexpr size_t kMostRemembered = 1024;  // regions

// Whether the region has no more nodes than the function would have, and the first of them.
bool is_already(const UnaryRegion& region, const Function& function) {
  Graph graph;
  std::vector<Value> fixed;
  for (Value value : region.fixed)
    fixed.push_back(graph.add_input(value.type(), ""));
  function(graph.add_input(region.x.type(), "x"), fixed);
  std::vector<std::string_view> made;
  for (const Node* node : graph.nodes())
    if (!node->is("constant"))
      made.push_back(node->op().name);
  return region.nodes.size() <= made.size() && region.has(made.front());
}

// A solver that runs each kind of region once, and leaves out those that need no rewriting.
class Remembered {
 public:
  explicit Remembered(Solver solver) : solver_(std::move(solver)) {}

  std::optional<Function> operator()(const UnaryRegion& region) {
    if (!solver_.may_find(region))
      return std::nullopt;
    const RegionDescription& key = region.description;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = known_.find(key); it != known_.end())
        return it->second;
    }
    std::optional<Function> function = solver_.solve(region);
    if (function && is_already(region, *function))
      function.reset();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMostRemembered)
      known_.clear();
    return known_.emplace(key, std::move(function)).first->second;
  }

 private:
  struct Hash {
    size_t operator()(const RegionDescription& description) const { return description.hash; }
  };

  Solver solver_;
  std::mutex mutex_;
  std::unordered_map<RegionDescription, std::optional<Function>, Hash> known_;
};

}  // namespace

Rule written_out(std::string_view name, std::set<std::string, std::less<>> ops, std::string formula,
                 const Solver& solver, std::string_view fires, std::string_view stays) {
  const Pattern x = any("x");
  const auto remembered = std::make_shared<Remembered>(solver);
  const auto computes = [=](const Match& m) { return (*remembered)(m.region()).has_value(); };
  return {.name = name,
          .match = computed_from(x, std::move(ops)),
          .replace = {formula,
                      [=](const Match& m) { return (*(*remembered)(m.region()))(m[x], m.region().fixed); }},
          .when = {is_ordinary_float(x), {"it computes " + formula, computes}},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

namespace {

bool is_function_of_elements(const UnaryRegion& region) {
  return region.is_elementwise() && region.fixed.empty() && region.x.type() == region.root.type();
}

}  // namespace

Solver elementwise(const Solver::Solve& guess, Specials specials) {
  return {[=](const UnaryRegion& region) -> std::optional<Function> {
            std::optional<Function> function = guess(region);
            return function && computes_elementwise(region, *function, specials) ? function : std::nullopt;
          },
          [=](const UnaryRegion& region) {
            if (!is_function_of_elements(region))
              return false;
            const std::optional<Function> function = guess(region);
            return function && may_compute_elementwise(region, values_at_telling_points(*function));
          }};
}

Solver one_function(const Function& function) {
  const auto values = std::make_shared<std::vector<double>>();
  const auto computed = std::make_shared<std::once_flag>();
  return {[=](const UnaryRegion& region) {
            return computes_elementwise(region, function, Specials::Kept) ? std::optional(function)
                                                                          : std::nullopt;
          },
          [=](const UnaryRegion& region) {
            if (!is_function_of_elements(region))
              return false;
            std::call_once(*computed, [&] { *values = values_at_telling_points(function); });
            return may_compute_elementwise(region, *values);
          }};
}

}  // namespace tenon
