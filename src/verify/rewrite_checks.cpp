#include "verify/rewrite_checks.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "ir/equal.h"
#include "ops/random.h"
#include "verify/conditioning.h"

namespace tenon {
namespace {

constexpr int64_t kMostSteps = 64;  // that are run again to know what stood there

struct Step;

// What flows along a value.
struct Flow {
  Datum value;
  std::shared_ptr<Step> maker;  // null for an input of the graph
  int64_t result = 0;           // which of the maker's
  // Whether the maker, run on what its operands are now, may give something that is a rounding away.
  bool has_drifted = false;
};
using FlowPointer = std::shared_ptr<Flow>;

// A node as it was when last seen: it can be run when the graph has it no more.
struct Step {
  std::unique_ptr<Graph> graph;  // of this one node
  const Node* node = nullptr;
  std::vector<FlowPointer> operands;
  int64_t position = 0;   // in the graph
  bool is_fixed = false;  // made of constants and parameters alone

  // What a run has drawn when it comes here; nothing where that depends on the iterations of a loop.
  std::optional<RandomGenerator> random = {};

  Data run(const Data& inputs) const {
    RandomGenerator generator = random.value_or(RandomGenerator());
    return with_context([&] { return node->describe(); },
                        [&] { return node->op().eval(Call(*node, inputs, generator)); });
  }
};

// A user of one value uses another now.
struct Change {
  FlowPointer from, to;
  std::shared_ptr<Step> user;  // null for the graph, of which it is an output
  size_t operand;
};

bool is_fixed(const FlowPointer& flow) { return flow->maker && flow->maker->is_fixed; }

bool is_made_of_fixed(const Step& step) {
  return !step.node->op().traits.random &&
         std::ranges::all_of(step.operands, [](const FlowPointer& operand) { return is_fixed(operand); });
}

bool are_identical(const Datum& a, const Datum& b) {
  return std::holds_alternative<Tensor>(a) && std::holds_alternative<Tensor>(b) &&
         identical(a.tensor(), b.tensor());
}

// Runs what stood there, from values that what stands there now is computed from too. With a generator, the
// floats on the way are nudged.
class Before {
 public:
  explicit Before(const std::vector<FlowPointer>& frontier, std::mt19937_64* random = nullptr)
      : random_(random) {
    for (const FlowPointer& flow : frontier) {
      known_.emplace(flow.get(), nudged_if_asked(flow->value));
      if (!is_fixed(flow))
        first_ = std::min(first_, flow->maker ? flow->maker->position : -1);
    }
  }

  Datum run(const FlowPointer& flow) {
    if (const auto it = known_.find(flow.get()); it != known_.end())
      return it->second;
    const Step* maker = flow->maker.get();
    // What comes before all of the frontier does not depend on it.
    const bool is_apart = maker == nullptr || maker->node->op().traits.random ||
                          (!maker->is_fixed && !flow->has_drifted && maker->position <= first_);
    if (is_apart || ++steps_ > kMostSteps)
      return known_.emplace(flow.get(), flow->value).first->second;
    Data operands;
    for (const FlowPointer& operand : maker->operands)
      operands.push_back(run(operand));
    const Datum result = maker->run(operands)[static_cast<size_t>(flow->result)];
    const bool is_rounded = maker->node->op().category == Category::Compute && !maker->is_fixed;
    return known_.emplace(flow.get(), is_rounded ? nudged_if_asked(result) : result).first->second;
  }

 private:
  Datum nudged_if_asked(const Datum& datum) { return random_ != nullptr ? nudged(datum, *random_) : datum; }

  std::mt19937_64* random_;
  std::unordered_map<const Flow*, Datum> known_;
  int64_t first_ = std::numeric_limits<int64_t>::max(), steps_ = 0;
};

// Follows a graph from rewrite to rewrite.
class Watch {
 public:
  Watch(const Graph& graph, RecordedValues recorded, double tolerance)
      : graph_(graph), tolerance_(tolerance) {
    for (Value input : graph.inputs())
      flows_.emplace(input.data(), std::make_shared<Flow>(Flow{recorded.at(input.data()), nullptr}));
    for (const Node* node : reachable_nodes()) {
      const std::shared_ptr<Step> step = make_step(*node);
      for (Value result : node->results())
        flows_.emplace(result.data(),
                       std::make_shared<Flow>(Flow{recorded.at(result.data()), step, result.index()}));
      steps_.emplace(node, step);
    }
    for (Value output : graph.outputs())
      outputs_.push_back(flows_.at(output.data()));
    number_steps();
  }

  // Looks at the graph after one more rewrite of that class.
  Check look(Numerics numerics) {
    find_changes();
    Check check{.verdict = Verdict::Passed};
    bool is_known = changes_.empty(), is_unsteady = false;
    for (size_t i = 0; i < changes_.size() && check.verdict == Verdict::Passed; ++i) {
      if (is_repeated(i))
        continue;
      const Check one = compare(changes_[i], numerics);
      check.error = std::max(check.error, one.error);
      is_known = is_known || one.verdict == Verdict::Passed;
      is_unsteady = is_unsteady || !one.unsteady.empty();
      if (one.verdict == Verdict::Failed)
        check = one;
    }
    if (check.verdict == Verdict::Passed && is_unsteady)
      check.unsteady = {""};
    if (check.verdict == Verdict::Passed && !is_known) {
      check.verdict = Verdict::Unknown;
      if (!is_unsteady)
        check.detail = "all that it changes is nearly zero, so that comparing proves nothing";
    }
    settle();
    return check;
  }

 private:
  std::vector<const Node*> reachable_nodes() const {
    std::unordered_set<const Node*> reached;
    const auto reach = [&](const Node& user) {
      for (Value operand : user.operands())
        if (!operand.is_input())
          reached.insert(operand.node());
    };
    reach(*graph_.return_node());
    const std::vector<Node*> all = graph_.nodes();
    for (auto it = all.rbegin(); it != all.rend(); ++it)
      if (reached.contains(*it))
        reach(**it);
    std::vector<const Node*> nodes;
    std::copy_if(all.begin(), all.end(), std::back_inserter(nodes),
                 [&](const Node* node) { return reached.contains(node); });
    return nodes;
  }

  std::shared_ptr<Step> make_step(const Node& node) const {
    auto step = std::make_shared<Step>();
    step->graph = std::make_unique<Graph>();
    step->node = step->graph->copy_node(
        node, [&](Value operand) { return step->graph->add_input(operand.type(), operand.name()); });
    for (Value operand : node.operands())
      step->operands.push_back(flows_.at(operand.data()));
    step->is_fixed = is_made_of_fixed(*step);
    step->random = drawn_before(node);
    return step;
  }

  // Recorded runs have the seed 0.
  std::optional<RandomGenerator> drawn_before(const Node& node) const {
    RandomGenerator generator(0);
    if (!takes_call(node))
      return generator;
    for (const Node* each = graph_.first(); each != &node; each = each->next())
      if (takes_call(*each)) {
        if (!each->regions().empty())
          return std::nullopt;
        generator.take_call();
      }
    return generator;
  }

  // Whether the node computes of its operands what the step does. Nodes do not change but for their operands
  // and nested graphs; but one that was made after another was erased may lie where that one lay.
  static bool is_same(const Step& step, const Node& node) {
    const Node& was = *step.node;
    if (&was.op() != &node.op() || was.attributes() != node.attributes() ||
        was.late_names() != node.late_names() || was.result_count() != node.result_count() ||
        segments_of(was) != segments_of(node) || was.regions().size() != node.regions().size())
      return false;
    for (size_t i = 0; i < node.regions().size(); ++i)
      if (!difference(*was.regions()[i], *node.regions()[i]).empty())
        return false;
    return true;
  }

  // Which operands are there, and how many of each.
  static std::vector<std::pair<size_t, size_t>> segments_of(const Node& node) {
    std::vector<std::pair<size_t, size_t>> segments;
    for (const OperandDecl& operand : node.op().operands)
      segments.push_back(node.segment(operand.name));
    return segments;
  }

  // Runs the nodes that are new, and lists the users whose operands are others now.
  void find_changes() {
    changes_.clear();
    fresh_.clear();
    std::unordered_map<const Node*, std::shared_ptr<Step>> steps;
    std::unordered_map<const ValueData*, FlowPointer> flows;
    for (Value input : graph_.inputs())
      flows.emplace(input.data(), flows_.at(input.data()));
    std::swap(flows_, flows);  // now `flows` is what was
    for (const Node* node : reachable_nodes()) {
      const auto it = steps_.find(node);
      if (it != steps_.end() && is_same(*it->second, *node) && flows.contains(node->result().data())) {
        list_changes(it->second, node->operands());
        for (Value result : node->results())
          flows_.emplace(result.data(), flows.at(result.data()));
        steps.insert(*it);
      } else {
        steps.emplace(node, run_new(*node));
      }
    }
    list_changes(nullptr, graph_.outputs());
    steps_ = std::move(steps);
  }

  std::shared_ptr<Step> run_new(const Node& node) {
    std::shared_ptr<Step> step = make_step(node);
    Data operands;
    for (const FlowPointer& operand : step->operands)
      operands.push_back(operand->value);
    Data results = step->run(operands);
    for (Value result : node.results()) {
      const auto flow = std::make_shared<Flow>(
          Flow{std::move(results[static_cast<size_t>(result.index())]), step, result.index()});
      fresh_.insert(flow.get());
      flows_.emplace(result.data(), flow);
    }
    return step;
  }

  void list_changes(const std::shared_ptr<Step>& user, const std::vector<Value>& operands) {
    const std::vector<FlowPointer>& were = user ? user->operands : outputs_;
    for (size_t i = 0; i < operands.size(); ++i)
      if (const FlowPointer& is = flows_.at(operands[i].data()); is != were[i])
        changes_.push_back({were[i], is, user, i});
  }

  bool is_repeated(size_t index) const {
    return std::any_of(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(index),
                       [&](const Change& other) {
                         return other.from == changes_[index].from && other.to == changes_[index].to;
                       });
  }

  Check compare(const Change& change, Numerics numerics) const {
    const Origins origins = origins_of(change.to);
    if (origins.draw_unknown())
      return {.unchecked = {"what it draws depends on the iterations of a loop before it"}};
    std::vector<FlowPointer> frontier = origins.frontier;
    Datum actual = change.to->value;
    if (!fresh_.contains(change.to.get()) && change.to->has_drifted && change.to->maker) {
      frontier = change.to->maker->operands;
      Data operands;
      for (const FlowPointer& operand : frontier)
        operands.push_back(operand->value);
      actual = change.to->maker->run(operands)[static_cast<size_t>(change.to->result)];
    }
    const Datum expected = Before(frontier).run(change.from);
    Check check = compare_by_class(actual, expected, numerics, tolerance_);
    if (check.verdict == Verdict::Failed && numerics != Numerics::BitExact)
      excuse(check, change.from, frontier, actual, expected);
    return check;
  }

  // What stood there may make as much of rounding as the rewrite does.
  void excuse(Check& check, const FlowPointer& from, const std::vector<FlowPointer>& frontier,
              const Datum& actual, const Datum& expected) const {
    std::vector<Datum> runs;
    for (int64_t run = 0; run < kNudgedRuns; ++run) {
      std::mt19937_64 random(static_cast<uint64_t>(run));
      runs.push_back(Before(frontier, &random).run(from));
    }
    switch (explain(actual, expected, runs, tolerance_)) {
      case Explanation::None:
        return;
      case Explanation::Rounding:
        check = {.verdict = Verdict::Passed, .error = check.error};
        return;
      case Explanation::Unsteady:
        check = {.unsteady = {""}};
        return;
    }
  }

  // What a value is computed from: values of new nodes, itself among them, and those that were there before.
  struct Origins {
    std::vector<FlowPointer> fresh, frontier;

    bool draw_unknown() const {
      return std::ranges::any_of(fresh, [](const FlowPointer& flow) { return !flow->maker->random; });
    }
  };
  Origins origins_of(const FlowPointer& flow) const {
    Origins origins;
    std::vector<FlowPointer> waiting = {flow};
    std::unordered_set<const Flow*> seen;
    while (!waiting.empty()) {
      const FlowPointer next = waiting.back();
      waiting.pop_back();
      if (!seen.insert(next.get()).second)
        continue;
      const bool is_fresh = fresh_.contains(next.get());
      (is_fresh ? origins.fresh : origins.frontier).push_back(next);
      if (is_fresh)
        waiting.insert(waiting.end(), next->maker->operands.begin(), next->maker->operands.end());
    }
    return origins;
  }

  // From now on, what takes the place of a value is what that was when the model ran: so one rewrite's
  // rounding is no concern of the next.
  void settle() {
    keep_what_flowed();
    take_new_operands();
    number_steps();
  }

  void keep_what_flowed() {
    bool drifts = false;
    for (const Change& change : changes_)
      if (fresh_.contains(change.to.get()) && !are_identical(change.to->value, change.from->value)) {
        change.to->value = change.from->value;
        drifts = true;
      }
    if (drifts)
      mark_drifted([&](const Flow& flow) { return fresh_.contains(&flow); });
  }

  void take_new_operands() {
    std::unordered_set<const Step*> drifting;
    for (const Change& change : changes_) {
      (change.user ? change.user->operands : outputs_)[change.operand] = change.to;
      if (change.user && !are_identical(change.to->value, change.from->value))
        drifting.insert(change.user.get());
    }
    mark_drifted([&](const Flow& flow) { return drifting.contains(flow.maker.get()); });
  }

  template <class HasDrifted>
  void mark_drifted(const HasDrifted& has_drifted) {
    for (auto& [value, flow] : flows_)
      flow->has_drifted = flow->has_drifted || has_drifted(*flow);
  }

  void number_steps() {
    int64_t position = 0;
    for (const Node* node : reachable_nodes()) {
      Step& step = *steps_.at(node);
      step.position = position++;
      step.is_fixed = is_made_of_fixed(step);  // its operands may be others than they were
    }
  }

  const Graph& graph_;
  double tolerance_;
  std::unordered_map<const Node*, std::shared_ptr<Step>> steps_;
  std::unordered_map<const ValueData*, FlowPointer> flows_;
  std::vector<FlowPointer> outputs_;
  // Of the rewrite that is looked at:
  std::vector<Change> changes_;
  std::unordered_set<const Flow*> fresh_;
};

// Adds what is known of one rewrite.
void add(Check& check, const RewriteCheck& one) {
  const auto& [application, numbers] = one;
  const std::string rewrite = fmt::format("rewrite {} ({})", application.number, application.rule);
  check.error = std::max(check.error, numbers.error);
  if (numbers.verdict == Verdict::Failed && check.verdict != Verdict::Failed) {
    check.verdict = Verdict::Failed;
    check.detail = fmt::format("{}, {}, of {}: {}", rewrite, name(application.numerics),
                               fmt::join(application.nodes, ", "), numbers.detail);
  } else if (numbers.verdict == Verdict::Passed && check.verdict == Verdict::Unknown) {
    check.verdict = Verdict::Passed;
  } else if (!numbers.unsteady.empty()) {
    check.unsteady.push_back(rewrite);
  } else if (numbers.verdict == Verdict::Unknown && numbers.unchecked.empty()) {
    check.nearly_zero.push_back(rewrite);
  } else if (numbers.verdict == Verdict::Unknown) {
    check.unchecked.push_back(fmt::format("{}: {}", rewrite, fmt::join(numbers.unchecked, ", ")));
  }
}

}  // namespace

std::vector<RewriteCheck> check_rewrites(const Graph& graph, RecordedValues recorded, Journal& journal,
                                         const std::function<void()>& rewrite,
                                         const RewriteChecksOptions& options) {
  Watch watch(graph, std::move(recorded), options.tolerance);
  std::vector<RewriteCheck> checks;
  std::string lost;  // why nothing more can be checked
  const auto look = [&](const Application& application) {
    if (!lost.empty()) {
      checks.push_back({application, {.detail = lost, .unchecked = {lost}}});
      return;
    }
    if (options.before_check)
      options.before_check(application);
    try {
      checks.push_back({application, watch.look(application.numerics)});
    } catch (const UserError& error) {
      checks.push_back({application, {.verdict = Verdict::Failed, .detail = error.what()}});
      lost = fmt::format("what rewrite {} ({}) made cannot be run", application.number, application.rule);
    }
  };
  // A rewrite is told of before it shows, so that it is looked at when the next is told of.
  std::optional<Application> last;
  journal.set_observer([&](const Application& application) {
    if (last)
      look(*last);
    last = application;
  });
  rewrite();
  journal.set_observer(nullptr);
  if (last)
    look(*last);
  return checks;
}

Check join_checks(std::span<const RewriteCheck> rewrites) {
  Check check;
  for (const RewriteCheck& one : rewrites)
    add(check, one);
  if (check.verdict == Verdict::Unknown)
    check.detail = rewrites.empty() ? "the pass told of no rewrite"
                                    : "no rewrite could be compared with what stood there";
  return check;
}

}  // namespace tenon
