#include "ops/control_gradient.h"

#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/reshape.h"

namespace tenon {
namespace {

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_differentiable(type); }

bool is_random(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    return node->op().traits.random ||
           std::ranges::any_of(node->regions(), [](const auto& region) { return is_random(*region); });
  });
}

// A nested graph that is computed again must give the same.
void check_repeatable(const GradContext& n) {
  for (const auto& region : n.node().regions())
    if (is_random(*region))
      throw n.decline("what it nests draws random numbers, and would draw others when computed again");
}

void erase_unused(Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)
    if (std::ranges::all_of((*it)->results(), [](Value result) { return result.use_count() == 0; }))
      graph.erase(*it);
}

std::string gradient_name(Value value) { return "grad_" + value.name(); }

// A gradient in the type of what it is of, where its sizes are dynamic inside a nested graph.
Value in_type_of(Value value, Value gradient) {
  return gradient.type() == value.type() ? gradient : reshape(gradient, shape_of(value));
}

// --- if ---

// The type under which a gradient enters a branch, whose result may have other sizes than that of the other.
Type entering_type(const Graph& branch, Value gradient) {
  if (!gradient.shape().ranked())
    return gradient.type();
  std::vector<Dim> dims = gradient.shape().dims();
  for (Dim& dim : dims)
    if (!dim.is_constant())
      dim = Dim();
  return branch.symbols().name_unknown(Type::tensor(gradient.dtype(), dims));
}

// branch(inputs, gradients of results) → gradients of those inputs that are wanted.
Region backward_branch(const GradContext& n, std::string_view name, const std::vector<size_t>& wanted) {
  const Graph& branch = n.node().region(name);
  Region region = n.graph().make_region(std::string(name));
  std::vector<Value> inputs, gradients, wanted_inputs;
  for (Value input : branch.inputs())
    inputs.push_back(region->add_input(input.type(), input.name()));
  const std::vector<Value> outputs = region->inline_graph(branch, inputs);
  region->set_outputs(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value dy = n.dy(static_cast<int64_t>(i));
    gradients.emplace_back();
    if (dy)
      gradients.back() =
          in_type_of(outputs[i], region->add_input(entering_type(*region, dy), fmt::format("grad_{}", i)));
  }
  for (size_t i : wanted)
    wanted_inputs.push_back(inputs[i]);
  std::vector<Value> found = n.backpropagate(*region, gradients, wanted_inputs);
  for (size_t i = 0; i < found.size(); ++i)
    found[i] = found[i] ? found[i] : zeros_like(wanted_inputs[i]);
  region->set_outputs(found);
  erase_unused(*region);
  return region;
}

// --- loops ---

// One input of a loop's body that differs from iteration to iteration: its values of all iterations, stacked.
struct Varying {
  Value stacked;
  int64_t axis = 0;
  bool reversed = false;  // whether the first iteration's comes last
  bool wanted = false;    // whether its gradients are
};

// What a loop did: body(varying…, captured…) → (ignored…, carried…, collected…), with the carried values
// among the varying ones.
struct LoopRecord {
  const GradContext& n;
  const Graph& body;
  std::vector<Varying> varying = {};
  size_t first_carried = 0;  // among the varying
  size_t ignored = 0;        // outputs before the carried ones
  std::vector<int64_t> output_axes = {}, output_reversed = {};

  size_t carried() const { return n.ins("carried").size(); }
  Value input(size_t i) const { return body.input(static_cast<int64_t>(i)); }
  Value captured_input(size_t i) const { return input(varying.size() + i); }
};

// The gradients of a loop's operands.
struct LoopGradients {
  std::vector<Value> carried, scanned, captured;
};

// The loop backwards, as a scan: its iterations carry the gradients of the carried values from the end to the
// start, and add up those of the captured ones.
class BackwardLoop {
 public:
  explicit BackwardLoop(const LoopRecord& loop)
      : loop_(loop), n_(loop.n), region_(n_.graph().make_region("body")) {
    for (size_t i = 0; i < loop.carried(); ++i)
      if (is_float_tensor(carried_input(i).type()))
        carried_.push_back(i);
    const std::vector<Value> captured = n_.ins("captured");
    for (size_t i = 0; i < captured.size(); ++i)
      if (is_float_tensor(captured[i].type()) && n_.wants("captured", i))
        captured_.push_back(i);
  }

  LoopGradients make() {
    add_carried();
    add_varying();
    add_collected();
    std::vector<Value> arguments = varying_inputs_;
    for (size_t i = 0; i < n_.ins("captured").size(); ++i) {
      const Value input = loop_.captured_input(i);
      arguments.push_back(region_->add_input(input.type(), input.name()));
    }
    const std::vector<Value> outputs = region_->inline_graph(loop_.body, arguments);
    region_->set_outputs(outputs);
    make_body(outputs, arguments);
    scan_.captured = n_.ins("captured");
    return sort_results(scan(n_.graph(), scan_, std::move(region_)));
  }

 private:
  Value carried_input(size_t i) const { return loop_.input(loop_.first_carried + i); }

  Value carry(Value start, Value like) {
    scan_.carried.push_back(start);
    return region_->add_input(like.type(), gradient_name(like));
  }

  void add_carried() {
    for (size_t i : carried_)
      carried_gradients_.push_back(carry(n_.dy_or_zeros(static_cast<int64_t>(i)), carried_input(i)));
    for (size_t i : captured_)
      captured_sums_.push_back(carry(zeros_like(n_.ins("captured")[i]), loop_.captured_input(i)));
  }

  Value take_slices(Value stacked, int64_t axis, bool reversed, const Type& type, const std::string& name) {
    scan_.scanned.push_back(stacked);
    scan_.axes.push_back(axis);
    scan_.reversed.push_back(reversed ? 0 : 1);
    return region_->add_input(type, name);
  }

  void add_varying() {
    for (size_t i = 0; i < loop_.varying.size(); ++i) {
      const Varying& each = loop_.varying[i];
      const Value input = loop_.input(i);
      varying_inputs_.push_back(
          take_slices(each.stacked, each.axis, each.reversed, input.type(), input.name()));
    }
  }

  // The gradients of what was collected, where there are any.
  void add_collected() {
    for (size_t i = 0; i < loop_.output_axes.size(); ++i) {
      const Value output = loop_.body.outputs()[loop_.ignored + loop_.carried() + i];
      const Value dy = n_.dy(static_cast<int64_t>(loop_.carried() + i));
      collected_gradients_.push_back(dy ? take_slices(dy, loop_.output_axes[i], loop_.output_reversed[i] != 0,
                                                      output.type(), fmt::format("grad_{}", i))
                                        : Value());
    }
  }

  // The gradients of one iteration, from those of its outputs.
  void make_body(const std::vector<Value>& outputs, const std::vector<Value>& arguments) {
    std::vector<Value> gradients(outputs.size()), wanted;
    for (size_t i = 0; i < carried_.size(); ++i)
      gradients[loop_.ignored + carried_[i]] = carried_gradients_[i];
    std::ranges::copy(collected_gradients_,
                      gradients.begin() + static_cast<int64_t>(loop_.ignored + loop_.carried()));
    for (size_t i : carried_)
      wanted.push_back(arguments[loop_.first_carried + i]);
    for (size_t i : captured_)
      wanted.push_back(arguments[loop_.varying.size() + i]);
    for (size_t i = 0; i < loop_.varying.size(); ++i)
      if (loop_.varying[i].wanted)
        wanted.push_back(arguments[i]);
    std::vector<Value> found = n_.backpropagate(*region_, gradients, wanted);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = found[i] ? found[i] : zeros_like(wanted[i]);
      if (i >= carried_.size() && i < carried_.size() + captured_.size())
        found[i] = captured_sums_[i - carried_.size()] + found[i];
    }
    for (const Varying& each : loop_.varying)
      if (each.wanted) {
        scan_.output_axes.push_back(each.axis);
        scan_.output_reversed.push_back(each.reversed ? 0 : 1);
      }
    region_->set_outputs(found);
    erase_unused(*region_);
  }

  LoopGradients sort_results(const std::vector<Value>& results) const {
    LoopGradients gradients = {.carried = std::vector<Value>(loop_.carried()),
                               .scanned = {},
                               .captured = std::vector<Value>(n_.ins("captured").size())};
    auto result = results.begin();
    for (size_t i : carried_)
      gradients.carried[i] = *result++;
    for (size_t i : captured_)
      gradients.captured[i] = *result++;
    gradients.scanned.assign(result, results.end());
    return gradients;
  }

  const LoopRecord& loop_;
  const GradContext& n_;
  Region region_;
  Scan scan_;
  std::vector<size_t> carried_, captured_;  // those with gradients
  std::vector<Value> carried_gradients_, captured_sums_, varying_inputs_, collected_gradients_;
};

// The body, but it also gives the values it is carried, and its first input where `with_iteration`; so that
// they are collected.
Region recording_body(const GradContext& n, size_t first_carried, bool with_iteration) {
  const Graph& body = n.node().region("body");
  Region region = n.graph().make_region("body");
  std::vector<Value> inputs;
  for (Value input : body.inputs())
    inputs.push_back(region->add_input(input.type(), input.name()));
  std::vector<Value> outputs = region->inline_graph(body, inputs);
  if (with_iteration)
    outputs.push_back(inputs.front());
  for (size_t i = 0; i < n.ins("carried").size(); ++i) {
    const Value carried = inputs[first_carried + i];
    const Type& next = body.outputs()[first_carried + i].type();
    if (!carried.type().is_tensor() || !(carried.type() == next))
      throw n.decline(
          fmt::format("carried value {} must be a tensor that keeps its shape, but goes from {} to {}", i,
                      carried.type(), next));
    outputs.push_back(carried);
  }
  region->set_outputs(outputs);
  return region;
}

// Puts a loop that collects more in the place of that of n; returns what it collects more.
template <class Make>
std::vector<Value> record(const GradContext& n, Make&& make) {
  Node* node = n.out().node();
  const InsertBefore here(node);
  std::vector<Value> results = make();
  for (int64_t i = 0; i < node->result_count(); ++i) {
    results[static_cast<size_t>(i)].set_name(n.out(i).name());
    n.out(i).replace_all_uses(results[static_cast<size_t>(i)]);
  }
  return {results.begin() + node->result_count(), results.end()};
}

}  // namespace

std::vector<Operand> grad_if(const GradContext& n) {
  check_repeatable(n);
  std::vector<Value> operands = n.ins("inputs"), gradients(operands.size());
  std::vector<size_t> wanted;
  for (size_t i = 0; i < operands.size(); ++i)
    if (is_float_tensor(operands[i].type()) && n.wants("inputs", i))
      wanted.push_back(i);
  for (int64_t i = 0; i < n.node().result_count(); ++i)
    if (n.dy(i))
      operands.push_back(n.dy(i));
  const std::vector<Value> results = if_else(n.in("condition"), operands, backward_branch(n, "then", wanted),
                                             backward_branch(n, "else", wanted));
  for (size_t i = 0; i < wanted.size(); ++i)
    gradients[wanted[i]] = results[i];
  return {{"inputs", gradients}};
}

std::vector<Operand> grad_scan(const GradContext& n) {
  check_repeatable(n);
  const std::vector<int64_t>&axes = n.attr("axes"), &reversed = n.attr("reversed");
  const std::vector<Value> carried = n.ins("carried"), scanned = n.ins("scanned");
  LoopRecord loop = {.n = n,
                     .body = n.node().region("body"),
                     .output_axes = n.attr("output_axes"),
                     .output_reversed = n.attr("output_reversed")};
  Scan recording = {.carried = carried,
                    .scanned = scanned,
                    .captured = n.ins("captured"),
                    .axes = axes,
                    .reversed = reversed,
                    .output_axes = loop.output_axes,
                    .output_reversed = loop.output_reversed};
  recording.output_axes.resize(recording.output_axes.size() + carried.size(), 0);
  recording.output_reversed.resize(recording.output_axes.size(), 0);
  for (Value stacked : record(n, [&] { return scan(n.graph(), recording, recording_body(n, 0, false)); }))
    loop.varying.push_back({.stacked = stacked});
  std::vector<size_t> wanted;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const bool is_wanted = is_differentiable(scanned[i].type()) && n.wants("scanned", i);
    loop.varying.push_back({scanned[i], axes[i], reversed[i] != 0, is_wanted});
    if (is_wanted)
      wanted.push_back(i);
  }
  const LoopGradients gradients = BackwardLoop(loop).make();
  std::vector<Value> of_scanned(scanned.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    of_scanned[wanted[i]] = gradients.scanned[i];
  return {{"carried", gradients.carried}, {"scanned", of_scanned}, {"captured", gradients.captured}};
}

// However many iterations there were, that many are recorded.
std::vector<Operand> grad_while(const GradContext& n) {
  check_repeatable(n);
  const size_t collected = static_cast<size_t>(n.node().result_count()) - n.ins("carried").size();
  LoopRecord loop = {.n = n,
                     .body = n.node().region("body"),
                     .first_carried = 1,
                     .ignored = 1,
                     .output_axes = std::vector<int64_t>(collected, 0),
                     .output_reversed = std::vector<int64_t>(collected, 0)};
  const Loop recording = {.trip_count = n.in("trip_count"),
                          .condition = n.in("condition"),
                          .carried = n.ins("carried"),
                          .captured = n.ins("captured")};
  for (Value stacked :
       record(n, [&] { return while_loop(n.graph(), recording, recording_body(n, 1, true)); }))
    loop.varying.push_back({.stacked = stacked});
  const LoopGradients gradients = BackwardLoop(loop).make();
  return {{"carried", gradients.carried}, {"captured", gradients.captured}};
}

}  // namespace tenon
