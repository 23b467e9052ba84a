#include "rewrite/journal.h"

#include <algorithm>

namespace tenon {

std::string_view name(Numerics numerics) {
  switch (numerics) {
    case Numerics::BitExact:
      return "bit-exact";
    case Numerics::Reassociates:
      return "reassociates";
    case Numerics::AssumesFinite:
      return "assumes-finite";
    case Numerics::ChangesPrecision:
      return "changes-precision";
  }
  CHECK(false, "a class of numerics without a name");
}

NumericsBudget parse_numerics_budget(std::string_view word) {
  if (word == "strict")
    return NumericsBudget::Strict;
  if (word == "default")
    return NumericsBudget::Default;
  if (word == "fast")
    return NumericsBudget::Fast;
  throw user_error("numerics must be strict, default or fast, but is \"{}\"", word);
}

bool Journal::allows(Numerics numerics) const {
  switch (budget_) {
    case NumericsBudget::Strict:
      return numerics == Numerics::BitExact;
    case NumericsBudget::Default:
      return numerics <= Numerics::Reassociates;
    case NumericsBudget::Fast:
      return true;
  }
  return false;
}

void Journal::applied(std::string_view rule, const std::vector<Node*>& replaced, Numerics numerics) {
  std::vector<std::string> nodes = sources_of(replaced);
  if (nodes.empty())
    for (const Node* node : replaced)
      nodes.push_back(node->describe());
  // What was said of them is no longer so. Where it is so of what takes their place, the next round says
  // that.
  for (const Node* node : replaced) {
    const std::string place = remarks_.empty() ? "" : node->describe();
    std::erase_if(remarks_, [&](const Remark& remark) { return remark.node == place; });
  }
  applications_.push_back({count() + 1, pass_, std::string(rule), std::move(nodes), numerics});
  if (observer_)
    observer_(applications_.back());
}

void Journal::declined(std::string_view rule, const Node& node, std::string reason) {
  remarks_.insert({pass_, std::string(rule), node.describe(), std::move(reason)});
}

std::vector<std::string> sources_of(const std::vector<Node*>& nodes) {
  std::vector<std::string> sources;
  for (const Node* node : nodes)
    for (const std::string& source : node->sources())
      if (std::find(sources.begin(), sources.end(), source) == sources.end())
        sources.push_back(source);
  return sources;
}

}  // namespace tenon
