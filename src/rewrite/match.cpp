#include "rewrite/match.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kMostFixed = 64;  // nodes that are looked at to see that a value is fixed

// Of these many steps, each may be off by half a unit in the last place of the dtype.
bool is_about(double actual, double wanted, DType dtype) {
  const double unit = dtype == DType::F64    ? 0x1p-52
                      : dtype == DType::F32  ? 0x1p-23
                      : dtype == DType::BF16 ? 0x1p-7
                                             : 0x1p-10;
  return std::fabs(actual - wanted) <= 4 * unit * std::fabs(wanted);
}

}  // namespace

namespace {

enum class Origin : uint8_t { Constants, Parameters, Inputs };

// The nodes that a walk has come to, at most kMostFixed, in its order.
class Seen {
 public:
  // False where it was seen before.
  bool add(const Node* node) {
    size_t at = mix(reinterpret_cast<uintptr_t>(node)) % table_.size();
    while (table_[at] != nullptr && table_[at] != node)
      at = (at + 1) % table_.size();
    if (table_[at] == node)
      return false;
    table_[at] = node;
    nodes_[static_cast<size_t>(count_++)] = node;
    return true;
  }
  bool is_full() const { return count_ == kMostFixed; }
  const Node* operator[](int64_t i) const { return nodes_[static_cast<size_t>(i)]; }
  int64_t count() const { return count_; }

 private:
  std::array<const Node*, kMostFixed> nodes_;
  std::array<const Node*, 2 * kMostFixed> table_ = {};  // by hash
  int64_t count_ = 0;
};

// The least fixed of what a value is made of.
Origin origin_of(Value value) {
  Origin origin = Origin::Constants;
  Seen seen;
  // Whether the value may be fixed.
  const auto look_at = [&](Value next) {
    if (next.is_input() || next.node()->op().traits.random || !next.node()->regions().empty())
      return false;
    if (next.node()->is("parameter") && is_float(next.dtype()))
      origin = Origin::Parameters;
    return !seen.add(next.node()) || !seen.is_full();
  };
  if (!look_at(value))
    return Origin::Inputs;
  for (int64_t i = 0; i < seen.count(); ++i)
    for (int64_t k = 0; k < seen[i]->operand_count(); ++k)
      if (!look_at(seen[i]->operand(k)))
        return Origin::Inputs;
  return origin;
}

}  // namespace

Node* maker(Value value, std::string_view op) {
  return !value.is_input() && value.node()->is(op) ? value.node() : nullptr;
}

bool is_ranked(Value value) { return value.type().is_tensor() && value.shape().ranked(); }

bool is_fixed(Value value) { return origin_of(value) != Origin::Inputs; }

const Tensor* known_elements(Value value) {
  const Tensor* known = value.known_tensor();
  return known != nullptr && origin_of(value) == Origin::Constants ? known : nullptr;
}

std::optional<double> uniform_number(Value value) {
  if (!value.type().is_tensor() || value.dtype() == DType::String ||
      kind(value.dtype()) == DTypeKind::Complex)
    return std::nullopt;
  const auto first_if_uniform = [](const Tensor& tensor) -> std::optional<double> {
    if (tensor.count() == 0)
      return std::nullopt;
    const std::vector<double> numbers = widen<double>(tensor);
    const bool uniform = std::all_of(numbers.begin(), numbers.end(), [&](double number) {
      return number == numbers.front() && std::signbit(number) == std::signbit(numbers.front());
    });
    return uniform ? std::optional(numbers.front()) : std::nullopt;
  };
  if (value.known_tensor() != nullptr) {
    const Tensor* known = known_elements(value);
    return known == nullptr ? std::nullopt : first_if_uniform(*known);
  }
  if (value.is_input() || !value.node()->is("constant"))
    return std::nullopt;
  const Literal& literal = value.node()->attr("value");
  const auto* splat = std::get_if<Literal::Splat>(&literal.form());
  return splat == nullptr ? std::nullopt : first_if_uniform(splat->element);
}

Value Match::operator[](const Pattern& part) const {
  const auto it = std::find_if(bound_.begin(), bound_.end(),
                               [&](const auto& bound) { return bound.first == &part.node(); });
  CHECK(it != bound_.end(), "{} stands for nothing here", part.to_string());
  return it->second;
}

bool Match::has(const Pattern& part) const {
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const auto& bound) { return bound.first == &part.node(); });
}

const Node& Match::node(const Pattern& part) const {
  const Value value = (*this)[part];
  CHECK(!value.is_input(), "{} stands for an input here", part.to_string());
  return *value.node();
}

std::optional<double> Match::number(const Pattern& part) const { return uniform_number((*this)[part]); }

// Searches depth first: `goals` are the parts still to be found, each with the value it must stand for, or
// with none where it is one of several results, and any value will do. What is bound on a way that leads
// nowhere is taken back.
class Matcher {
 public:
  Matcher(KnownRegions& regions, const std::function<bool(const Match&)>& accept)
      : regions_(regions), accept_(accept) {}

  std::optional<Match> find(const Pattern& pattern, Value value) {
    results_ = results_of(pattern.node());
    const bool found = std::any_of(results_.begin(), results_.end(), [&](const PatternNode* anchor) {
      return solve(goals_from(anchor, value));
    });
    return found ? std::optional(std::move(match_)) : std::nullopt;
  }

 private:
  struct Goal {
    const PatternNode* pattern;
    Value value;
  };
  using Goals = std::vector<Goal>;
  using Kind = PatternNode::Kind;

  static std::vector<const PatternNode*> results_of(const PatternNode& pattern) {
    if (pattern.kind != Kind::Together)
      return {&pattern};
    std::vector<const PatternNode*> results;
    for (const Pattern& part : pattern.parts)
      results.push_back(&part.node());
    return results;
  }

  // The anchor comes first: the other results are looked for from what it binds.
  Goals goals_from(const PatternNode* anchor, Value value) const {
    Goals goals;
    for (const PatternNode* result : results_)
      if (result != anchor)
        goals.push_back({result, Value()});
    goals.push_back({anchor, value});
    return goals;
  }

  bool solve(Goals goals) {
    if (goals.empty())
      return is_accepted();
    const auto [pattern, value] = goals.back();
    goals.pop_back();
    if (!value) {
      const std::vector<Value> candidates = candidates_for(*pattern);
      return std::any_of(candidates.begin(), candidates.end(), [&, part = pattern](Value candidate) {
        return solve(with(goals, {{part, candidate}}));
      });
    }
    if (const auto bound = bound_to(*pattern))
      return *bound == value && solve(std::move(goals));
    if (pattern->once && !value.has_one_use())
      return false;
    const size_t bound_before = match_.bound_.size(), nodes_before = match_.nodes_.size();
    match_.bound_.emplace_back(pattern, value);
    if (is_met(*pattern, value, goals))
      return true;
    match_.bound_.resize(bound_before);
    match_.nodes_.resize(nodes_before);
    return false;
  }

  bool is_accepted() {
    match_.roots_.clear();
    for (const PatternNode* result : results_)
      match_.roots_.push_back(*bound_to(*result));
    return (results_.size() == 1 || stand_apart()) && accept_(match_);
  }

  // Whether the results are different values, and none is what another is made of: what replaces them all
  // cannot be made of one of them.
  bool stand_apart() const {
    const std::vector<Value>& roots = match_.roots_;
    const auto is_root = [&](Value value) { return std::count(roots.begin(), roots.end(), value); };
    return std::all_of(roots.begin(), roots.end(), [&](Value root) { return is_root(root) == 1; }) &&
           std::none_of(match_.bound_.begin(), match_.bound_.end(), [&](const auto& bound) {
             const Kind kind = bound.first->kind;
             return (kind == Kind::Any || kind == Kind::Constant) && is_root(bound.second) > 0;
           });
  }

  std::optional<Value> bound_to(const PatternNode& pattern) const {
    for (const auto& [bound, to] : match_.bound_)
      if (bound == &pattern)
        return to;
    return std::nullopt;
  }

  // The values that the pattern may stand for: results of nodes of its op that use what is bound already.
  std::vector<Value> candidates_for(const PatternNode& pattern) const {
    if (const auto value = bound_to(pattern))
      return {*value};
    for (const auto& [name, operand] : pattern.operands) {
      const std::vector<Value> operands = candidates_for(operand.node());
      std::vector<Value> candidates;
      for (Value value : operands)
        for (Node* user : value.users())
          if (user->is(pattern.name) && user->result_count() > pattern.result.value_or(0))
            candidates.push_back(user->result(pattern.result.value_or(0)));
      if (!operands.empty())
        return candidates;
    }
    return {};
  }

  bool is_met(const PatternNode& pattern, Value value, const Goals& goals) {
    switch (pattern.kind) {
      case Kind::Any:
        return solve(goals);
      case Kind::Constant:
        return is_fixed(value) && solve(goals);
      case Kind::Number: {
        const std::optional<double> number = uniform_number(value);
        return number == pattern.number && std::signbit(*number) == std::signbit(pattern.number) &&
               solve(goals);
      }
      case Kind::About: {
        const std::optional<double> number = uniform_number(value);
        return number && is_about(*number, pattern.number, value.dtype()) && solve(goals);
      }
      case Kind::Op:
        return is_op(pattern, value, goals);
      case Kind::Either:
        return std::any_of(pattern.parts.begin(), pattern.parts.end(), [&](const Pattern& part) {
          return solve(with(goals, {{&part.node(), value}}));
        });
      case Kind::Chain:
        return !value.is_input() && value.node()->is(pattern.name) &&
               grow_chain(pattern, {value}, true, goals);
      case Kind::Computed:
        return is_computed(pattern, value, goals);
      case Kind::Together:
        CHECK(false, "several results are the whole of a pattern, not a part of it");
    }
    return false;
  }

  static Goals with(Goals goals, const Goals& more) {
    goals.insert(goals.end(), more.begin(), more.end());
    return goals;
  }

  bool is_op(const PatternNode& pattern, Value value, const Goals& goals) {
    Node* node = value.node();
    if (node == nullptr || value.index() != pattern.result.value_or(value.index()))
      return false;
    const std::string_view op = node->op().name;
    if (pattern.ops.empty() ? op != pattern.name : !pattern.ops.contains(op))
      return false;
    for (const auto& [name, wanted] : pattern.attributes)
      if (node->is_late(name) || !(node->attr(name) == wanted))
        return false;
    if (!pattern.ops.empty()) {
      add_node(node);
      return solve(goals);
    }
    const std::vector<Value> operands = node->operands();
    if (operands.size() != pattern.operands.size())
      return false;
    Goals more;
    for (size_t i = 0; i < operands.size(); ++i)
      more.push_back({&pattern.operands[i].second.node(), operands[i]});
    if (!stands_in_order(*node, pattern))
      return false;
    add_node(node);
    if (solve(with(goals, more)))
      return true;
    if (!node->op().traits.commutative || operands[0] == operands[1])
      return false;
    std::swap(more[0].value, more[1].value);
    return solve(with(goals, more));
  }

  void add_node(Node* node) {
    if (std::find(match_.nodes_.begin(), match_.nodes_.end(), node) == match_.nodes_.end())
      match_.nodes_.push_back(node);
  }

  // Whether the operands of the node have the names of the pattern's, which stand in the declaration's order.
  static bool stands_in_order(const Node& node, const PatternNode& pattern) {
    size_t index = 0;
    while (index < pattern.operands.size()) {
      const std::string& name = pattern.operands[index].first;
      if (node.op().find_operand(name) == nullptr && !node.is_late(name))
        return false;
      const auto [begin, count] = node.segment(name);
      if (begin != index || count == 0)
        return false;
      for (size_t end = index + count; index < end; ++index)
        if (index >= pattern.operands.size() || pattern.operands[index].first != name)
          return false;
    }
    return true;
  }

  // Opens nodes of the chain until it has as many links as the pattern has parts. But for the outermost, they
  // must have no other use, or the chain would compute them a second time.
  bool grow_chain(const PatternNode& pattern, const std::vector<Value>& links, bool outermost,
                  const Goals& goals) {
    if (links.size() == pattern.parts.size())
      return link_up(pattern, links, 0, goals, {});
    for (size_t i = 0; i < links.size(); ++i) {
      Node* node = links[i].node();
      if (node == nullptr || !node->is(pattern.name) || (!outermost && !links[i].has_one_use()))
        continue;
      std::vector<Value> longer = links;
      longer[i] = node->operand(0);
      longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(i) + 1, node->operand(1));
      match_.nodes_.push_back(node);
      if (grow_chain(pattern, longer, false, goals))
        return true;
      match_.nodes_.pop_back();
    }
    return false;
  }

  // Gives each part of the pattern one of the links.
  bool link_up(const PatternNode& pattern, const std::vector<Value>& links, size_t part, const Goals& goals,
               const Goals& chosen) {
    if (part == pattern.parts.size())
      return solve(with(goals, chosen));
    for (size_t i = 0; i < links.size(); ++i) {
      std::vector<Value> rest = links;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (link_up(pattern, rest, part + 1, goals, with(chosen, {{&pattern.parts[part].node(), links[i]}})))
        return true;
    }
    return false;
  }

  bool is_computed(const PatternNode& pattern, Value value, const Goals& goals) {
    const size_t nodes_before = match_.nodes_.size();
    bool has_op = false;
    size_t looked_at = 0;
    for (const UnaryRegion& region : regions_.of(value)) {
      // What a region has beside those within it comes first.
      for (size_t i = 0; !has_op && i < region.nodes.size() - looked_at; ++i)
        has_op = pattern.ops.contains(region.nodes[i]->op().name);
      looked_at = region.nodes.size();
      if (!has_op)
        continue;
      match_.nodes_.insert(match_.nodes_.end(), region.nodes.begin(), region.nodes.end());
      const Goal x = {&pattern.parts.front().node(), region.x};
      match_.region_ = &region;
      if (solve(with(goals, {x})))
        return true;
      match_.nodes_.resize(nodes_before);
    }
    return false;
  }

  KnownRegions& regions_;
  const std::function<bool(const Match&)>& accept_;
  std::vector<const PatternNode*> results_;  // the pattern, or those it has together
  Match match_;
};

std::optional<Match> find_match(const Pattern& pattern, Value value, KnownRegions& regions,
                                const std::function<bool(const Match&)>& accept) {
  return Matcher(regions, accept).find(pattern, value);
}

}  // namespace tenon
