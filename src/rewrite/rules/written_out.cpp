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
  explicit Remembered(Solver solve) : solve_(std::move(solve)) {}

  std::optional<Function> operator()(const UnaryRegion& region) {
    const std::string& key = region.description;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = known_.find(key); it != known_.end())
        return it->second;
    }
    std::optional<Function> function = solve_(region);
    if (function && is_already(region, *function))
      function.reset();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMostRemembered)
      known_.clear();
    return known_.emplace(key, std::move(function)).first->second;
  }

 private:
  Solver solve_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::optional<Function>> known_;
};

}  // namespace

Rule written_out(std::string_view name, std::set<std::string, std::less<>> ops, std::string formula,
                 const Solver& solve, std::string_view fires, std::string_view stays) {
  const Pattern x = any("x");
  const auto remembered = std::make_shared<Remembered>(solve);
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

Solver elementwise(const Solver& guess, Specials specials) {
  return [=](const UnaryRegion& region) -> std::optional<Function> {
    if (!region.is_elementwise() || !region.fixed.empty() || region.x.type() != region.root.type())
      return std::nullopt;
    std::optional<Function> function = guess(region);
    return function && computes_elementwise(region, *function, specials) ? function : std::nullopt;
  };
}

}  // namespace tenon
