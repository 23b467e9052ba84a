#include "verify/index_bounds.h"

#include <algorithm>
#include <unordered_set>

namespace tenon {
namespace {

constexpr size_t kMostFollowed = 256;  // nodes that are looked at to see what a value is used for

}  // namespace

void for_each_reader(Value value, const std::function<void(const Node&, Value)>& visit) {
  std::vector<Value> waiting = {value};
  std::unordered_set<const Node*> seen;
  while (!waiting.empty() && seen.size() < kMostFollowed) {
    const Value next = waiting.back();
    waiting.pop_back();
    for (const Node* user : next.users()) {
      if (!seen.insert(user).second)
        continue;
      visit(*user, next);
      if (user->op().category == Category::Shape || user->is("cast") || user->is("copy"))
        for (Value result : user->results())
          waiting.push_back(result);
    }
  }
}

bool names_places(const Node& node, Value value) {
  constexpr std::string_view kOps[] = {"gather", "gather_elements", "gather_nd", "scatter_elements",
                                       "scatter_nd"};
  return std::find(std::begin(kOps), std::end(kOps), node.op().name) != std::end(kOps) &&
         node.in("indices") == value;
}

std::optional<int64_t> places_to_name(const Node& node, const std::map<std::string, int64_t>& sizes) {
  const Value x = node.in("x"), indices = node.in("indices");
  if (!x.shape().ranked() || x.rank() == 0 || !indices.shape().ranked())
    return std::nullopt;
  int64_t first = 0, count = 1;
  if (node.op().find_attribute("axis") != nullptr) {
    first = node.attr("axis");
  } else {  // tuples, of which each element counts along a dimension of its own
    first = node.is("gather_nd") ? node.attr("batch_dims").as<int64_t>() : 0;
    count = indices.rank() == 0 ? 0 : indices.dim(-1).constant().value_or(0);
  }
  std::optional<int64_t> least;
  for (int64_t axis = first; axis < std::min(first + count, x.rank()); ++axis)
    if (const std::optional<int64_t> size =
            x.dim(axis).is_unknown() ? std::nullopt : x.dim(axis).evaluate(sizes))
      least = least ? std::min(*least, *size) : *size;
  return least;
}

}  // namespace tenon
