#include "autodiff/training_step.h"

#include <numbers>
#include <set>

#include "autodiff/gradient.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/loss.h"
#include "ops/optimise.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr DType kRateDType = DType::F64;  // in which rates and corrections are computed, as PyTorch does

// --- the loss ---

Value first_output(const Graph& model) {
  if (model.outputs().empty())
    throw user_error("the model has no outputs, so it has no loss");
  return model.outputs().front();
}

void check_output(const Graph& model, const Loss& loss) {
  const Type& type = first_output(model).type();
  const auto refuse = [&](std::string_view wanted) {
    throw user_error("{} is of {}, but the model's first output \"{}\" is {}", name_of(loss.kind), wanted,
                     model.output_names().front(), type);
  };
  if (!type.is_tensor() || !is_float(type.as_tensor().dtype) || !type.as_tensor().shape.ranked())
    refuse("a float tensor of known rank");
  const Shape& shape = type.as_tensor().shape;
  if (loss.kind == Loss::Kind::CrossEntropy && shape.rank() < 2)
    refuse("scores of [batch, classes, …]");
  if (loss.kind == Loss::Kind::CrossEntropy && shape[1] == Dim(1))
    refuse("scores of two classes at least");
}

// What the loss is taken of: the logits, where the model ends in what makes probabilities of them.
Value logits_of(Value output, const Loss& loss) {
  if (output.is_input())
    return output;
  const Node& node = *output.node();
  if (loss.kind == Loss::Kind::CrossEntropy && (node.is("softmax") || node.is("log_softmax"))) {
    const int64_t axis = node.attr("axis");
    return axis == 1 || axis == 1 - output.rank() ? node.in("x") : output;
  }
  const bool is_sigmoid = loss.kind == Loss::Kind::BinaryCrossEntropyWithLogits && node.is("sigmoid");
  return is_sigmoid ? node.in("x") : output;
}

Type target_type(Value output, const Loss& loss) {
  if (loss.kind != Loss::Kind::CrossEntropy)
    return output.type();
  std::vector<Dim> dims;
  for (int64_t axis = 0; axis < output.rank(); ++axis)
    if (axis != 1)
      dims.push_back(output.dim(axis));
  return Type::tensor(DType::I64, Shape(std::move(dims)));
}

Value loss_of(Value x, Value target, const Loss& loss) {
  const auto mean = [](Value each) { return reduce_mean(reshape(each, {-1}), {0}); };
  switch (loss.kind) {
    case Loss::Kind::SquaredError: {
      const Value difference = x - target;
      return mean(difference * difference);
    }
    case Loss::Kind::AbsoluteError:
      return mean(abs(x - target));
    case Loss::Kind::CrossEntropy:
      return cross_entropy(x, target, {.smoothing = loss.smoothing, .ignored = loss.ignored});
    case Loss::Kind::BinaryCrossEntropyWithLogits:
      break;
  }
  return mean(binary_cross_entropy_with_logits(x, target));
}

// Which labels count.
Value counts(Value target, const Loss& loss) {
  const int64_t ignored = loss.ignored.value_or(-1);  // no label is below 0
  return logical_not(equal(target, constant(target.graph(), Tensor::scalar(ignored))));
}

Value count_true(Value conditions) { return reduce_sum(reshape(cast(conditions, DType::I64), {-1}), {0}); }

// --- the weights ---

// Whether `name` is `pattern`, in which * stands for anything.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty())
    return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches(name.substr(1), pattern.substr(1));
  for (size_t skipped = 0; skipped <= name.size(); ++skipped)
    if (matches(name.substr(skipped), pattern.substr(1)))
      return true;
  return false;
}

std::string name_of(const Node& parameter) { return parameter.attr("name").as<std::string>(); }

bool is_frozen(const std::string& name, const std::vector<std::string>& frozen) {
  return std::ranges::any_of(frozen, [&](const std::string& pattern) { return matches(name, pattern); });
}

// A parameter that the model itself gives a next value, as one of its outputs.
struct Statistic {
  Node* parameter;
  size_t output;
};

std::vector<Statistic> find_statistics(const Graph& graph) {
  std::vector<Statistic> found;
  const std::vector<Value> outputs = graph.outputs();
  for (Node* node : graph.nodes()) {
    if (!node->is("parameter"))
      continue;
    // The first output is that of the loss.
    for (size_t i = 1; i < outputs.size(); ++i)
      if (graph.output_names()[i] == name_of(*node) && outputs[i].type() == node->result().type()) {
        found.push_back({.parameter = node, .output = i});
        break;
      }
  }
  return found;
}

std::vector<Node*> find_weights(const Graph& graph, const std::vector<Statistic>& statistics,
                                const std::vector<std::string>& frozen) {
  const std::vector<Node*> parameters = trained_parameters(graph);
  std::vector<std::string> names;
  for (const Node* node : parameters)
    names.push_back(name_of(*node));
  for (const std::string& pattern : frozen)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches(name, pattern); }))
      throw user_error("no weight is called {}, so it cannot be frozen{}", pattern,
                       did_you_mean(pattern, {names.begin(), names.end()}));
  std::vector<Node*> weights;
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (is_frozen(names[i], frozen) ||
        std::ranges::count(statistics, parameters[i], &Statistic::parameter) > 0)
      continue;
    if (!seen.insert(names[i]).second)
      throw unsupported("two weights are called {}", names[i]);
    weights.push_back(parameters[i]);
  }
  if (weights.empty())
    throw user_error("the model has no weights to train");
  return weights;
}

std::vector<std::string> statistics_of(const Node& batch_norm) {
  std::vector<std::string> names;
  for (std::string_view name : {"mean", "variance"})
    if (const Node* source = batch_norm.in(name).node(); source != nullptr && source->is("parameter"))
      names.push_back(name_of(*source));
  return names;
}

// Statistics that were gathered in training are no weights: a gradient would make others of them.
void check_statistics(const Graph& graph, const std::vector<Node*>& weights) {
  for (const Node* node : graph.nodes()) {
    if (!node->is("batch_norm"))
      continue;
    for (std::string_view name : {"mean", "variance"})
      if (const Node* source = node->in(name).node(); std::ranges::find(weights, source) != weights.end())
        throw user_error(
            "{}: batch normalisation by stored statistics: \"{}\" is one of them, and no weight\n"
            "  hint: freeze all statistics, those of this node with --freeze '{}'",
            node->describe(), name_of(*source), fmt::join(statistics_of(*node), ","));
  }
}

// Scales round, and a step along a gradient may make them negative.
void check_scales(const Graph& graph, const std::vector<Node*>& weights) {
  for (const Node* node : graph.nodes()) {
    if (!node->is("quantize") && !node->is("dequantize"))
      continue;
    const Node* source = node->in("scale").node();
    if (std::ranges::find(weights, source) != weights.end())
      throw user_error(
          "{}: \"{}\" is the scale of a quantisation, and no weight\n"
          "  hint: train the model before it is quantised, or freeze its scales, such as --freeze '{}'",
          node->describe(), name_of(*source), name_of(*source));
  }
}

// Nodes that nothing needs, but for weights.
void erase_unused(Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (std::ranges::all_of((*node)->results(), [](Value result) { return result.use_count() == 0; }) &&
        !(*node)->is("parameter"))
      graph.erase(*node);
}

// --- inference ---

// The values that one is computed of, as far back as batch normalisations: what comes out of these is another
// matter than what they normalise by.
std::set<Value> sources_of(Value value) {
  std::set<Value> found;
  std::vector<Value> open = {value};
  while (!open.empty()) {
    const Value each = open.back();
    open.pop_back();
    if (found.insert(each).second && each.node() != nullptr && !each.node()->is("batch_norm"))
      std::ranges::copy(each.node()->operands(), std::back_inserter(open));
  }
  return found;
}

// Has the batch normalisation normalise by a statistic whose next value is computed of what it normalises by
// now, if there is one.
void normalise_by(Node* parameter, Value next) {
  const std::set<Value> sources = sources_of(next);
  for (Node* node : parameter->graph().nodes()) {
    if (!node->is("batch_norm"))
      continue;
    // The variance of a batch is computed of its mean.
    for (std::string_view name : {"variance", "mean"}) {
      if (!sources.contains(node->in(name)))
        continue;
      if (!parameter->comes_before(*node))
        parameter->graph().move_before(parameter, node);
      node->set_operand(static_cast<int64_t>(node->segment(name).first), parameter->result());
      return;
    }
  }
}

// The model as it is used once it is trained.
std::unique_ptr<Graph> for_inference(const Graph& model) {
  std::unique_ptr<Graph> graph = model.clone();
  const std::vector<Statistic> statistics = find_statistics(*graph);
  const std::vector<Value> outputs = graph->outputs();
  for (const auto& [parameter, output] : statistics)
    normalise_by(parameter, outputs[output]);
  std::vector<Value> kept;
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::ranges::count(statistics, i, &Statistic::output) == 0) {
      kept.push_back(graph->outputs()[i]);
      names.push_back(graph->output_names()[i]);
    }
  graph->set_outputs(kept, names);
  erase_unused(*graph);
  for (const auto& [parameter, output] : statistics)
    if (parameter->result().use_count() == 0)
      graph->erase(parameter);
  return graph;
}

// --- the update ---

// Names of inputs, none of which is taken twice.
class Names {
 public:
  explicit Names(const Graph& graph) {
    for (Value input : graph.inputs())
      taken_.insert(input.name());
  }
  std::string make(std::string name) {
    while (!taken_.insert(name).second)
      name += "_";
    return name;
  }

 private:
  std::set<std::string> taken_;
};

// The rate of a step, by its number from 0.
Value rate_at(Value step, const LearningRate& options) {
  Graph& graph = step.graph();
  const auto number = [&](double value) { return scalar(graph, kRateDType, value); };
  const auto after_warmup = [&] { return maximum(step - static_cast<double>(options.warmup), number(0)); };
  Value rate = number(options.rate);
  if (options.schedule == LearningRate::Schedule::Cosine) {
    const auto length = static_cast<double>(std::max<int64_t>(options.steps - options.warmup, 1));
    const Value part = minimum(after_warmup() / length, number(1));
    rate = options.lowest + 0.5 * (options.rate - options.lowest) * (1.0 + cos(part * std::numbers::pi));
  } else if (options.schedule == LearningRate::Schedule::Step) {
    rate = rate * pow(number(options.factor), floor(after_warmup() / static_cast<double>(options.every)));
  }
  if (options.warmup == 0)
    return rate;
  const Value risen = (step + 1.0) / static_cast<double>(options.warmup);
  return rate * minimum(risen, number(1));
}

class Builder {
 public:
  Builder(const Graph& model, const Loss& loss, const Optimizer& optimizer, const TrainingOptions& options)
      : loss_(loss), optimizer_(optimizer), options_(options) {
    step_.graph = model.clone();
  }

  TrainingStep build() {
    check_output(graph(), loss_);
    const std::vector<Statistic> statistics = find_statistics(graph());
    const std::vector<Node*> parameters = find_weights(graph(), statistics, options_.frozen);
    check_statistics(graph(), parameters);
    check_scales(graph(), parameters);
    std::vector<Node*> changing;
    for (const auto& [parameter, output] : statistics)
      if (!is_frozen(name_of(*parameter), options_.frozen)) {
        changing.push_back(parameter);
        next_statistics_.push_back(graph().outputs()[output]);
      }
    add_loss();
    add_inputs(parameters, weights_);
    add_inputs(changing, statistics_);
    std::vector<Value> gradients = find_gradients();
    put_back_unreached(gradients);
    if (options_.parts > 1)
      accumulate(gradients);
    if (options_.clip_norm > 0)
      clip(gradients);
    add_updates(gradients);
    set_outputs();
    return std::move(step_);
  }

 private:
  Graph& graph() { return *step_.graph; }
  Value number(DType dtype, double value) { return scalar(graph(), dtype, value); }

  void add_loss() {
    const Value output = graph().outputs().front();
    const Value x = logits_of(output, loss_);
    step_.drops_activation = x != output;
    step_.target = static_cast<size_t>(graph().input_count());
    names_.emplace(graph());
    const Value target = graph().add_input(target_type(output, loss_), names_->make("target"));
    // The mean of a batch is not that of the means of its parts where some labels do not count.
    if (options_.parts > 1 && loss_.kind == Loss::Kind::CrossEntropy && loss_.ignored) {
      total_ = cross_entropy(
          x, target,
          {.smoothing = loss_.smoothing, .ignored = loss_.ignored, .reduction = ClassLoss::Reduction::Sum});
      counted_ = cast(count_true(counts(target, loss_)), kRateDType);  // f16 counts to 2048 alone
    } else {
      total_ = loss_of(x, target, loss_);
    }
    graph().set_outputs(results());
    erase_unused(graph());
  }

  // What is computed of a batch, but for the gradients.
  std::vector<Value> results() const {
    std::vector<Value> values = {total_};
    if (counted_)
      values.push_back(counted_);
    values.insert(values.end(), next_statistics_.begin(), next_statistics_.end());
    return values;
  }
  void set_results(const std::vector<Value>& values) {
    auto next = values.begin();
    total_ = *next++;
    if (counted_)
      counted_ = *next++;
    std::copy_n(next, next_statistics_.size(), next_statistics_.begin());
  }

  struct Weight {
    Value value;
    std::string name;
    Literal initial;
  };

  void add_inputs(const std::vector<Node*>& parameters, std::vector<Weight>& to) {
    for (Node* node : parameters) {
      Weight weight = {.value = graph().add_input(node->result().type(), names_->make(name_of(*node))),
                       .name = name_of(*node),
                       .initial = *literal_of(*node)};
      node->result().replace_all_uses(weight.value);
      graph().erase(node);
      to.push_back(std::move(weight));
    }
  }

  std::vector<Value> find_gradients() {
    std::vector<Value> wanted;
    for (const Weight& weight : weights_)
      wanted.push_back(weight.value);
    std::vector<Value> seeds(graph().outputs().size());
    seeds.front() = number(total_.dtype(), 1);
    std::vector<Value> gradients = backpropagate(graph(), seeds, wanted);
    set_results(graph().outputs());
    return gradients;
  }

  // Weights without a gradient are constants.
  void put_back_unreached(std::vector<Value>& gradients) {
    for (size_t i = weights_.size(); i-- > 0;) {
      if (gradients[i])
        continue;
      const Weight weight = std::move(weights_[i]);
      weights_.erase(weights_.begin() + static_cast<std::ptrdiff_t>(i));
      gradients.erase(gradients.begin() + static_cast<std::ptrdiff_t>(i));
      step_.unreached.insert(step_.unreached.begin(), weight.name);
      const InsertBefore here(graph().first() != nullptr ? graph().first() : graph().return_node());
      weight.value.replace_all_uses(parameter(graph(), weight.name, weight.initial));
      graph().erase_input(weight.value.index());
    }
    if (weights_.empty())
      throw user_error("the loss does not depend on any weight that may be trained");
  }

  // What the graph computes becomes the body of a loop over the parts of a batch, which sums the loss and the
  // gradients. Statistics go from part to part.
  void accumulate(std::vector<Value>& gradients) {
    std::vector<Value> results = this->results();
    const size_t computed = results.size(), statistics = computed - next_statistics_.size();
    results.insert(results.end(), gradients.begin(), gradients.end());
    const auto is_statistic = [&](size_t i) { return i >= statistics && i < computed; };
    // Of gradients, inference may not find all sizes.
    const auto type_of_result = [&](size_t i) {
      return i < computed ? results[i].type() : weights_[i - computed].value.type();
    };
    const std::unique_ptr<Graph> part = std::move(step_.graph);
    part->set_outputs(results);
    step_.graph = std::make_unique<Graph>(part->name());

    std::vector<Value> wholes;
    for (Value input : part->inputs())
      wholes.push_back(graph().add_input(is_split(input) ? of_all_parts(input) : input.type(), input.name()));
    Scan scan;
    std::unique_ptr<Graph> body = graph().make_region("body");
    std::vector<Value> arguments(wholes.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Value carried = body->add_input(type_of_result(i), fmt::format("carried_{}", i));
      if (is_statistic(i)) {
        const auto index = static_cast<size_t>(statistics_[i - statistics].value.index());
        arguments[index] = carried;
        scan.carried.push_back(wholes[index]);
      } else {
        scan.carried.push_back(zeros(type_of_result(i)));
      }
    }
    for (size_t i = 0; i < wholes.size(); ++i) {
      const Value input = part->input(static_cast<int64_t>(i));
      if (arguments[i])
        continue;
      arguments[i] = body->add_input(input.type(), input.name());
      if (is_split(input))
        scan.scanned.push_back(in_parts(wholes[i], input.shape()));
      else
        scan.captured.push_back(wholes[i]);
    }
    std::vector<Value> next = body->inline_graph(*part, arguments);
    for (size_t i = 0; i < next.size(); ++i)
      if (!is_statistic(i))
        next[i] = body->input(static_cast<int64_t>(i)) + next[i];
    body->set_outputs(next);
    scan.axes = scan.reversed = std::vector<int64_t>(scan.scanned.size(), 0);
    const std::vector<Value> totals = tenon::scan(graph(), scan, std::move(body));

    set_results(totals);
    const Value by = counted_ ? counted_ : number(kRateDType, static_cast<double>(options_.parts));
    const auto divided = [&](Value sum) { return in_dtype(in_dtype(sum, kRateDType) / by, sum.dtype()); };
    total_ = divided(total_);
    for (size_t i = 0; i < gradients.size(); ++i)
      gradients[i] = divided(totals[totals.size() - gradients.size() + i]);
    for (std::vector<Weight>* list : {&weights_, &statistics_})
      for (Weight& each : *list)
        each.value = graph().input(each.value.index());
  }

  bool is_split(Value input) const { return static_cast<size_t>(input.index()) <= step_.target; }

  Value zeros(const Type& type) {
    const auto& [dtype, shape] = type.as_tensor();
    const std::optional<Extents> extents = shape.extents();
    CHECK(extents, "a sum over batches is of {}", type);
    return fill(int_vector(graph(), *extents), filled(dtype, {}, 0));
  }

  Type of_all_parts(Value input) {
    if (!input.type().is_tensor() || !input.shape().ranked() || input.rank() == 0)
      throw user_error("a batch is split along its first dimension, but \"{}\" is {}", input.name(),
                       input.type());
    std::vector<Dim> dims = input.shape().dims();
    dims.front() = dims.front() * options_.parts;
    return Type::tensor(input.dtype(), dims);
  }

  Value in_parts(Value whole, const Shape& part) {
    std::vector<int64_t> sizes = {options_.parts};
    for (const Dim& dim : part.dims())
      sizes.push_back(dim.constant().value_or(-1));
    if (std::ranges::count(sizes, -1) > 1)
      throw user_error(
          "batches are split only where one size of \"{}\" is open, but it is {}\n"
          "  hint: --dim fixes them",
          whole.name(), whole.type());
    return reshape(whole, sizes);
  }

  // As PyTorch's clip_grad_norm_.
  void clip(std::vector<Value>& gradients) {
    Value squares;
    for (Value gradient : gradients) {
      const Value own = cast(reduce_sum(reshape(gradient * gradient, {-1}), {0}), kRateDType);
      squares = squares ? squares + own : own;
    }
    const Value factor = minimum(options_.clip_norm / (sqrt(squares) + 1e-6), number(kRateDType, 1));
    for (Value& gradient : gradients)
      gradient = gradient * in_dtype(factor, gradient.dtype());
  }

  void add_updates(const std::vector<Value>& gradients) {
    for (const std::vector<Weight>* list : {&weights_, &statistics_})
      for (const Weight& each : *list)
        step_.state.push_back({.name = each.value.name(),
                               .weight = each.name,
                               .input = static_cast<size_t>(each.value.index()),
                               .initial = each.initial});
    step_.weights = weights_.size();
    step_.statistics = statistics_.size();
    next_.resize(step_.weights);
    next_.insert(next_.end(), next_statistics_.begin(), next_statistics_.end());
    // The number of the step is the last of the state, but all formulas use it.
    const std::string name = names_->make("step");
    const size_t kept = count_kept();
    std::vector<std::vector<Value>> states(weights_.size());
    for (size_t i = 0; i < weights_.size(); ++i)
      for (size_t k = 0; k < kept; ++k)
        states[i].push_back(add_kept(weights_[i], k));
    const Value step = graph().add_input(Type::tensor(DType::I64, Shape(std::vector<Dim>{})), name);
    count_ = cast(step, kRateDType);
    rate_ = rate_at(count_, optimizer_.rate);
    for (size_t i = 0; i < weights_.size(); ++i) {
      std::vector<Value> results = update(weights_[i].value, gradients[i], states[i]);
      next_[i] = results.front();
      next_.insert(next_.end(), results.begin() + 1, results.end());
    }
    step_.state.push_back({.name = step.name(),
                           .input = static_cast<size_t>(step.index()),
                           .initial = Literal(Tensor::scalar<int64_t>(0))});
    next_.push_back(step + constant(graph(), Tensor::scalar<int64_t>(1)));
  }

  // By the names that PyTorch gives them.
  std::vector<std::string_view> kept_names() const {
    switch (optimizer_.kind) {
      case Optimizer::Kind::Sgd:
        return optimizer_.momentum == 0 ? std::vector<std::string_view>{}
                                        : std::vector<std::string_view>{"momentum_buffer"};
      case Optimizer::Kind::Adam:
      case Optimizer::Kind::AdamW:
        return {"exp_avg", "exp_avg_sq"};
      case Optimizer::Kind::Lion:
        return {"exp_avg"};
      case Optimizer::Kind::Adagrad:
        break;
    }
    return {"sum"};
  }
  size_t count_kept() const { return kept_names().size(); }

  Value add_kept(const Weight& weight, size_t kind) {
    const Value value = graph().add_input(
        weight.value.type(), names_->make(fmt::format("{}.{}", weight.name, kept_names()[kind])));
    const Literal zeros = Literal::splat(filled(weight.initial.dtype(), {}, 0), weight.initial.extents());
    step_.state.push_back({.name = value.name(),
                           .weight = weight.name,
                           .input = static_cast<size_t>(value.index()),
                           .initial = zeros});
    return value;
  }

  std::vector<Value> update(Value x, Value gradient, const std::vector<Value>& kept) {
    const DType dtype = x.dtype();
    const Value rate = in_dtype(rate_, dtype);
    const Moments moments = {.beta1 = optimizer_.beta1, .beta2 = optimizer_.beta2};
    const bool decays_weights =
        optimizer_.kind == Optimizer::Kind::AdamW || optimizer_.kind == Optimizer::Kind::Lion;
    if (!decays_weights)
      gradient = with_decay(gradient, x, optimizer_.weight_decay);
    else if (optimizer_.weight_decay != 0)
      x = x * in_dtype(1.0 - rate_ * optimizer_.weight_decay, dtype);
    switch (optimizer_.kind) {
      case Optimizer::Kind::Sgd: {
        if (kept.empty())
          return {update_by_gradient(x, gradient, rate)};
        Value weight = number(dtype, 1);
        if (optimizer_.dampening != 0)  // the first gradient counts whole
          weight =
              where(greater(count_, number(kRateDType, 0)), number(dtype, 1 - optimizer_.dampening), weight);
        return update_by_momentum(x, gradient, kept[0], rate, weight,
                                  {.momentum = optimizer_.momentum, .nesterov = optimizer_.nesterov});
      }
      case Optimizer::Kind::Adam:
      case Optimizer::Kind::AdamW: {
        const Corrections by = corrections(count_ + 1.0, moments);
        return update_by_moments(x, gradient, kept[0], kept[1], in_dtype(rate_ * by.root / by.average, dtype),
                                 in_dtype(by.root * optimizer_.epsilon, dtype), moments);
      }
      case Optimizer::Kind::Lion:
        return update_by_lion(x, gradient, kept[0], rate, moments);
      case Optimizer::Kind::Adagrad:
        break;
    }
    return update_by_adagrad(x, gradient, kept[0], rate, optimizer_.epsilon);
  }

  void set_outputs() {
    std::vector<Value> outputs = {total_, rate_};
    std::vector<std::string> names = {"loss", "rate"};
    for (size_t i = 0; i < step_.state.size(); ++i) {
      step_.state[i].output = outputs.size();
      outputs.push_back(next_[i]);
      names.push_back("next_" + step_.state[i].name);
    }
    graph().set_outputs(outputs, names);
    erase_unused(graph());
  }

  const Loss& loss_;
  const Optimizer& optimizer_;
  const TrainingOptions& options_;
  TrainingStep step_;
  std::optional<Names> names_;
  Value total_, count_, rate_;
  Value counted_;  // how many labels count, where that is not known
  std::vector<Weight> weights_, statistics_;
  std::vector<Value> next_statistics_;
  std::vector<Value> next_;  // as the state
};

void check(const Optimizer& optimizer) {
  if (optimizer.nesterov && (optimizer.momentum <= 0 || optimizer.dampening != 0))
    throw user_error("Nesterov's method takes a momentum, and no dampening");
  const LearningRate& rate = optimizer.rate;
  if (rate.schedule == LearningRate::Schedule::Cosine && rate.steps <= rate.warmup)
    throw user_error("the cosine schedule takes more steps than the {} that it warms up for", rate.warmup);
  if (rate.schedule == LearningRate::Schedule::Step && rate.every <= 0)
    throw user_error("the step schedule takes a number of steps after which the rate changes");
}

}  // namespace

std::string_view name_of(Loss::Kind kind) {
  switch (kind) {
    case Loss::Kind::SquaredError:
      return "mse";
    case Loss::Kind::AbsoluteError:
      return "l1";
    case Loss::Kind::CrossEntropy:
      return "cross_entropy";
    case Loss::Kind::BinaryCrossEntropyWithLogits:
      break;
  }
  return "bce_with_logits";
}

Optimizer default_options(Optimizer::Kind kind) {
  Optimizer options = {.kind = kind};
  switch (kind) {
    case Optimizer::Kind::AdamW:
      options.weight_decay = 0.01;
      break;
    case Optimizer::Kind::Lion:
      options.rate.rate = 1e-4;
      options.beta2 = 0.99;
      break;
    case Optimizer::Kind::Adagrad:
      options.rate.rate = 1e-2;
      options.epsilon = 1e-10;
      break;
    case Optimizer::Kind::Sgd:
    case Optimizer::Kind::Adam:
      break;
  }
  return options;
}

TrainingStep training_step(const Graph& model, const Loss& loss, const Optimizer& optimizer,
                           const TrainingOptions& options) {
  check(optimizer);
  return Builder(model, loss, optimizer, options).build();
}

std::unique_ptr<Graph> evaluation_step(const Graph& model, const Loss& loss, const TrainingStep& step) {
  std::unique_ptr<Graph> graph = for_inference(model);
  const Value x = logits_of(first_output(*graph), loss);
  Names names(*graph);
  const Value target = graph->add_input(target_type(first_output(*graph), loss), names.make("target"));
  std::vector<Value> outputs = {loss_of(x, target, loss)};
  std::vector<std::string> output_names = {"loss"};
  if (loss.kind == Loss::Kind::CrossEntropy) {
    const Value count = counts(target, loss), is_right = equal(arg_max(x, 1), target);
    outputs.insert(outputs.end(), {count_true(count), count_true(logical_and(count, is_right))});
    output_names = {"loss", "counted", "right"};
  }
  graph->set_outputs(outputs, output_names);
  std::map<std::string, Node*> parameters;
  for (Node* node : graph->nodes())
    if (node->is("parameter"))
      parameters.emplace(name_of(*node), node);
  for (size_t i = 0; i < count_parameters(step); ++i) {
    const StateValue& value = step.state[i];
    const Value input = graph->add_input(type_of(value.initial.tensor()), names.make(value.name));
    if (const auto found = parameters.find(value.weight); found != parameters.end())
      found->second->result().replace_all_uses(input);
  }
  erase_unused(*graph);
  return graph;
}

std::optional<int64_t> class_count(const Graph& model, const Loss& loss) {
  if (loss.kind != Loss::Kind::CrossEntropy)
    return std::nullopt;
  check_output(model, loss);
  return first_output(model).dim(1).constant();
}

std::unique_ptr<Graph> with_weights(const Graph& model, const std::map<std::string, Tensor>& weights) {
  std::unique_ptr<Graph> graph = for_inference(model);
  for (Node* node : graph->nodes()) {
    const auto found = node->is("parameter") ? weights.find(name_of(*node)) : weights.end();
    if (found == weights.end())
      continue;
    const InsertBefore here(node);
    graph->replace(node, {parameter(*graph, found->first, found->second)});
  }
  return graph;
}

}  // namespace tenon
