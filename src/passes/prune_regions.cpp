// prune_regions.cpp — nested graphs are handed only what they read, and give only what is used.
//
// Small constants move into them, where they can be folded; what nothing reads, or is handed in twice, goes;
// a value that a loop carries and never changes becomes one that it merely reads; and what a loop carries or
// collects for nobody goes, even if each iteration makes the next from it.
#include <algorithm>
#include <set>

#include "passes/passes.h"
#include "passes/remake_control.h"

namespace tenon {
namespace {

using Fate = Remade::Fate;

constexpr std::string_view kRule = "prune";
constexpr int64_t kMostCopied = 1 << 10;  // bytes of a constant that each nested graph gets

bool is_small_constant(Value value) {
  if (value.is_input() || !value.node()->is("constant"))
    return false;
  const Literal& literal = value.node()->attr("value");
  return literal.count() * info(literal.dtype()).bytes <= kMostCopied;
}

bool is_used(const Node& node) {
  const std::vector<Value> results = node.results();
  return std::any_of(results.begin(), results.end(), [](Value result) { return result.use_count() > 0; });
}

class Pruning {
 public:
  explicit Pruning(Node* node)
      : node_(node), remade_(*node), leading_(leading_count(*node)), operands_(handed_in(*node)) {}

  // Whether something is to be pruned.
  bool find() {
    drop_results();
    pass_results_on();
    prune_inputs();
    const Remade as_it_is(*node_);
    return remade_.inputs != as_it_is.inputs || remade_.results != as_it_is.results;
  }

  void apply(Journal& journal) {
    Node* anew = nullptr;
    try {
      if (std::find(remade_.results.begin(), remade_.results.end(), true) != remade_.results.end())
        anew = make_anew(node_, remade_);
    } catch (const UserError& error) {
      // As where a size is known from what would go alone.
      return journal.declined(kRule, *node_, error.what());
    }
    journal.applied(kRule, {node_}, Numerics::BitExact);
    if (anew != nullptr)
      hand_over(node_, remade_, anew);
    for (const auto& [result, value] : passed_on_)
      node_->result(static_cast<int64_t>(result)).replace_all_uses(value);
    node_->graph().erase(node_);
  }

 private:
  Value output(const Graph& region, size_t result) const { return region.outputs()[leading_ + result]; }

  // Results that nothing uses, and of a loop's carried ones those that nothing in the body needs for another.
  void drop_results() {
    const size_t carried = carried_count(*node_);
    std::set<size_t> needed;
    std::vector<size_t> waiting;
    for (size_t i = 0; i < remade_.results.size(); ++i)
      if (node_->result(static_cast<int64_t>(i)).use_count() > 0 && needed.insert(i).second)
        waiting.push_back(i);
    const auto need_inputs_of = [&](Value value) {
      for (const size_t input : inputs_of(value))
        if (input >= leading_ && input - leading_ < carried && needed.insert(input - leading_).second)
          waiting.push_back(input - leading_);
    };
    for (const auto& region : node_->regions())
      for (size_t i = 0; i < leading_; ++i)
        need_inputs_of(region->outputs()[i]);
    while (!waiting.empty()) {
      const size_t result = waiting.back();
      waiting.pop_back();
      for (const auto& region : node_->regions())
        need_inputs_of(output(*region, result));
    }
    for (size_t i = 0; i < remade_.results.size(); ++i)
      remade_.results[i] = needed.contains(i);
    for (size_t i = 0; i < carried; ++i)
      if (!remade_.results[i])
        remade_.inputs[i] = Fate::Goes;
  }

  // The inputs of a nested graph that a value in it is made of.
  static std::set<size_t> inputs_of(Value value) {
    std::set<size_t> inputs;
    std::set<Value> seen;
    std::vector<Value> waiting = {value};
    while (!waiting.empty()) {
      const Value next = waiting.back();
      waiting.pop_back();
      if (!seen.insert(next).second)
        continue;
      if (next.is_input())
        inputs.insert(static_cast<size_t>(next.index()));
      else
        for (Value operand : next.node()->operands())
          waiting.push_back(operand);
    }
    return inputs;
  }

  // Results that are what was handed in: a carried value that never changes, or what both branches pass on.
  void pass_results_on() {
    const bool is_loop = !node_->is("if");
    for (size_t i = 0; i < remade_.results.size(); ++i) {
      if (!remade_.results[i])
        continue;
      const Value first = output(*node_->regions().front(), i);
      if (!first.is_input() || static_cast<size_t>(first.index()) < leading_)
        continue;
      const size_t from = static_cast<size_t>(first.index()) - leading_;
      const bool in_all =
          std::all_of(node_->regions().begin(), node_->regions().end(), [&](const auto& region) {
            const Value value = output(*region, i);
            return value.is_input() && value.index() == first.index();
          });
      if (!in_all || (is_loop && (i >= carried_count(*node_) || from != i)))
        continue;
      remade_.results[i] = false;
      passed_on_.emplace_back(i, operands_[from]);
      if (is_loop) {
        remade_.inputs[i] = Fate::Goes;
        if (first.use_count() > 1)
          remade_.captured.push_back({operands_[i], leading_ + i});
      }
    }
  }

  // The inputs that something that stays reads.
  std::set<size_t> inputs_read() const {
    std::set<size_t> read;
    for (const auto& region : node_->regions()) {
      for (size_t i = 0; i < leading_; ++i)
        read.merge(inputs_of(region->outputs()[i]));
      for (size_t i = 0; i < remade_.results.size(); ++i)
        if (remade_.results[i])
          read.merge(inputs_of(output(*region, i)));
    }
    return read;
  }

  // Whether a copy of the operand would take its place, and be the only one.
  bool is_read_once(size_t input) const {
    const auto readers =
        std::count_if(node_->regions().begin(), node_->regions().end(), [&](const auto& region) {
          return region->input(static_cast<int64_t>(leading_ + input)).use_count() > 0;
        });
    return operands_[input].has_one_use() && readers == 1;
  }

  // What is handed in but not carried. One of the scanned values must stay, to count the iterations.
  void prune_inputs() {
    const std::set<size_t> read = inputs_read();
    const size_t carried = carried_count(*node_), first_captured = carried + scanned_count(*node_);
    size_t scanned_left = first_captured - carried;
    for (size_t i = carried; i < operands_.size(); ++i) {
      const bool is_scanned = i < first_captured;
      if (!read.contains(leading_ + i) && (!is_scanned || scanned_left > 1)) {
        remade_.inputs[i] = Fate::Goes;
        scanned_left -= is_scanned ? 1 : 0;
      } else if (!is_scanned && is_small_constant(operands_[i]) &&
                 (operands_[i].shape().element_count() == Dim(1) || is_read_once(i))) {
        remade_.inputs[i] = Fate::IsConstant;
      } else if (!is_scanned && first_of(*node_, i) != i &&
                 remade_.inputs[first_of(*node_, i)] == Fate::Stays) {
        remade_.inputs[i] = Fate::IsAnother;
      }
    }
  }

  Node* node_;
  Remade remade_;
  size_t leading_;
  std::vector<Value> operands_;
  std::vector<std::pair<size_t, Value>> passed_on_;  // a result, and what it is
};

void prune_in(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      prune_in(*region, journal);
    if (!is_control(*node) || !is_used(*node))
      continue;
    Pruning pruning(node);
    if (!pruning.find())
      continue;
    if (!journal.is_open())
      return;
    pruning.apply(journal);
  }
}

}  // namespace

void prune_regions(Graph& graph, Journal& journal) {
  prune_in(graph, journal);
  remove_dead(graph, journal);
}

}  // namespace tenon
