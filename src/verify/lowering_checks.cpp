#include "verify/lowering_checks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "compiler/build_kernels.h"
#include "loops/interpret.h"
#include "loops/parallel_regions.h"
#include "lowering/check.h"
#include "lowering/definition_text.h"
#include "lowering/interpret_elements.h"
#include "lowering/lower_graph.h"
#include "lowering/print.h"
#include "lowering/unpack.h"
#include "tensor/wide.h"
#include "verify/conditioning.h"
#include "verify/rewrite_checks.h"

namespace tenon {

using lowering::BufferId;
using lowering::ElementInterpreter;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kSampledElements = 256;
// Of kernels that are interpreted, and of the buffers that they read or write.
constexpr int64_t kMostPoints = 200'000, kMostPointsOfAll = 5'000'000, kMostElements = 1'000'000;

const Tensor* find_tensor(const RecordedValues& recorded, Value value) {
  const auto found = recorded.find(value.data());
  return found == recorded.end() ? nullptr : std::get_if<Tensor>(&found->second);
}

ElementInterpreter::Known known_from(const RecordedValues& recorded) {
  return [&recorded](Value value) { return find_tensor(recorded, value); };
}

// What is recorded, nudged where and when it is asked for.
class NudgedValues {
 public:
  NudgedValues(const RecordedValues& recorded, uint64_t seed) : recorded_(recorded), random_(seed) {}

  const Tensor* find(Value value) {
    const Tensor* tensor = find_tensor(recorded_, value);
    if (tensor == nullptr)
      return nullptr;
    const auto [it, fresh] = nudged_.try_emplace(value.data());
    if (fresh)
      it->second = nudged(*tensor, random_);
    return &it->second.tensor();
  }

 private:
  const RecordedValues& recorded_;
  RandomGenerator random_;
  std::unordered_map<const ValueData*, Datum> nudged_;
};

// What was expected, moved by as much as nudged operands move what was computed: that may be wrong, but how
// far roundings move it is not.
Tensor moved_like(const Tensor& expected, const Tensor& actual, const Tensor& with_nudged_operands) {
  const std::vector<double> from = widen<double>(actual), to = widen<double>(with_nudged_operands);
  std::vector<double> moved = widen<double>(expected);
  for (size_t i = 0; i < moved.size(); ++i)
    if (to[i] != from[i])
      moved[i] = expected.dtype() == DType::Bool ? 1 - moved[i] : moved[i] + (to[i] - from[i]);
  return narrow<double>(expected.dtype(), expected.extents(), moved);
}

// Judges by what nudged operands make of the same elements.
Check judge(const Tensor& actual, const Tensor& expected,
            const std::function<Tensor(uint64_t seed)>& run_nudged, const std::string& name,
            double tolerance) {
  Check check = compare_by_class(actual, expected, Numerics::Reassociates, tolerance);
  if (check.verdict != Verdict::Failed)
    return check;
  std::vector<Datum> moved;
  for (int64_t run = 0; run < kNudgedRuns; ++run)
    moved.push_back(moved_like(expected, actual, run_nudged(static_cast<uint64_t>(run))));
  switch (explain(actual, expected, moved, tolerance)) {
    case Explanation::Rounding:
      return {.verdict = Verdict::Passed, .rounding = {name}};
    case Explanation::Unsteady:
      return {.verdict = Verdict::Unknown, .unsteady = {name}};
    case Explanation::None:
      break;
  }
  return check;
}

// What one of several checks adds to them; nothing once one has failed.
void add(Check& all, Check one) {
  all.error = std::max(all.error, one.error);
  if (all.verdict == Verdict::Failed)
    return;
  if (one.verdict == Verdict::Failed) {
    all.verdict = one.verdict;
    all.detail = std::move(one.detail);
  } else if (one.verdict == Verdict::Passed) {
    all.verdict = one.verdict;
  }
  std::ranges::move(one.rounding, std::back_inserter(all.rounding));
  std::ranges::move(one.unsteady, std::back_inserter(all.unsteady));
}

std::string names_of(const std::vector<std::string>& sources) {
  return fmt::format("{}", fmt::join(sources, ", "));
}

// --- nodes of kernel graphs ---

// What a buffer is computed by: its node, and those of buffers on the way that are no values.
class Signatures {
 public:
  explicit Signatures(const KernelGraph& graph) : graph_(graph) {
    for (const KernelNode& node : graph.nodes)
      for (BufferId id : node.writes)
        writers_.emplace(id, &node);
  }

  std::string of(BufferId id) const {
    const KernelNode& node = *writers_.at(id);
    std::string text = node.stage ? text_of(*node.stage) : print(node, graph_);
    for (BufferId read : node.reads)
      if (!graph_.buffers[read].value && writers_.contains(read))
        text += of(read);
    return text;
  }

 private:
  // Without what was decided about it.
  std::string text_of(const lowering::Stage& stage) const {
    const loops::Definition definition = readable_definition(graph_, stage);
    std::string text;
    for (const std::vector<loops::Axis>* axes : {&definition.axes, &definition.reduced})
      for (const loops::Axis& axis : *axes)
        text += fmt::format("{} in 0..{}\n", axis.variable, axis.size);
    return text + print_body(definition, graph_.buffers);
  }

  const KernelGraph& graph_;
  std::map<BufferId, const KernelNode*> writers_;
};

std::vector<int64_t> sampled_places(int64_t count, RandomGenerator& random) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::min(count, kSampledElements); ++i)
    places.push_back(
        count <= kSampledElements ? i : static_cast<int64_t>(random() % static_cast<uint64_t>(count)));
  return places;
}

Tensor elements_at(const Tensor& tensor, const std::vector<int64_t>& places) {
  Tensor elements(tensor.dtype(), {std::ssize(places)});
  const auto size = static_cast<size_t>(tensor.element_size());
  for (size_t i = 0; i < places.size(); ++i)
    std::ranges::copy(tensor.bytes().subspan(static_cast<size_t>(places[i]) * size, size),
                      elements.mutable_bytes().begin() + static_cast<ptrdiff_t>(i * size));
  return elements;
}

// --- schedules ---

// How many points the loops of a body have, about: what loops of other sizes begin with counts.
int64_t count_points(const std::vector<loops::Statement>& body, Bindings& variables) {
  int64_t sum = 1;
  for (const loops::Statement& statement : body) {
    const std::vector<loops::Statement>* inner = loops::body_of(statement);
    if (inner == nullptr)
      continue;
    int64_t iterations = 1;
    if (const auto* loop = std::get_if<loops::Loop>(&statement)) {
      const int64_t begin = loop->begin.evaluate(variables).value_or(0),
                    end = loop->end.evaluate(variables).value_or(kMostPoints);
      iterations = std::max<int64_t>((end - begin + loop->step - 1) / loop->step, 0);
      variables.insert_or_assign(loop->variable, begin);
    }
    sum += std::min(iterations * count_points(*inner, variables), kMostPoints);
  }
  return std::min(sum, kMostPoints);
}

// All parallel loops that surround everything else run one of their iterations alone.
void keep_one_iteration(std::vector<loops::Statement>& body, Bindings& variables, RandomGenerator& random) {
  for (loops::Statement& statement : body) {
    auto* loop = std::get_if<loops::Loop>(&statement);
    if (loop == nullptr || loop->mark != loops::Mark::Parallel)
      continue;
    const std::optional<int64_t> begin = loop->begin.evaluate(variables), end = loop->end.evaluate(variables);
    if (!begin || !end || *end <= *begin)
      continue;
    const auto iterations = static_cast<uint64_t>((*end - *begin + loop->step - 1) / loop->step);
    const int64_t kept = *begin + static_cast<int64_t>(random() % iterations) * loop->step;
    loop->begin = kept;
    loop->end = std::min(kept + loop->step, *end);
    variables.insert_or_assign(loop->variable, kept);
    keep_one_iteration(loop->body, variables, random);
  }
}

bool calls_routines(const std::vector<loops::Statement>& body) {
  return std::ranges::any_of(body, [](const loops::Statement& statement) {
    const std::vector<loops::Statement>* inner = loops::body_of(statement);
    return std::holds_alternative<loops::Call>(statement) || (inner != nullptr && calls_routines(*inner));
  });
}

class ScheduleChecks {
 public:
  ScheduleChecks(const compiler::FusedGraph& fused, const compiler::CompileContext& context,
                 const RecordedValues& recorded, const LoweringChecksOptions& options)
      : graph_(fused.graph()),
        kernels_(fused, context),
        elements_(graph_, known_from(recorded)),
        options_(options),
        random_(options.seed) {}

  LoweringCheck run() {
    LoweringCheck result{.pass = "schedule", .level = Level::Scheduled, .numbers = {}, .lint = {}};
    result.lint.verdict = Verdict::DoesNotApply;
    size_t number = 0, large = 0;
    begin(options_.listener, "interpreting kernel", std::ssize(kernels_.by_group()));
    for (const auto& [group, whole] : kernels_.by_group()) {
      loops::NamedKernel named = whole;
      step(options_.listener, names_of(named.sources));
      const Part part = choose_part(named);
      if (part == Part::None) {
        ++large;
      } else if (result.numbers.verdict != Verdict::Failed) {
        ++result.changes;
        add(result.numbers, check(named, part));
        if (result.numbers.verdict == Verdict::Failed) {
          result.kernel = number;
          result.sources = named.sources;
          result.numbers.detail =
              fmt::format("kernel {}: {}: {}", number, names_of(named.sources), result.numbers.detail);
        }
      }
      ++number;
    }
    if (large > 0)
      result.numbers.unchecked.push_back(fmt::format(
          "{} of {} kernels, as interpreting them would take long, or no operands are known", large, number));
    return result;
  }

 private:
  Bindings sizes_of(const loops::NamedKernel& named) const {
    Bindings sizes;
    const std::vector<std::string> own = named.kernel.size_symbols();
    for (size_t i = 0; i < own.size(); ++i)
      if (const auto size = elements_.sizes().find(named.symbols[i]); size != elements_.sizes().end())
        sizes.emplace(own[i], size->second);
    return sizes;
  }

  // How much of a kernel is interpreted. One that is large keeps one iteration of its parallel loops, where
  // none of it waits for others.
  enum class Part : uint8_t { None, Iteration, Whole };

  Part choose_part(loops::NamedKernel& named) {
    const auto is_known = [&](const std::string& name) {
      const BufferId id = graph_.buffers.id_of(name);
      int64_t count = 1;
      for (const Dim& size : graph_.buffers[id].elements.sizes)
        count *= size.evaluate(elements_.sizes()).value_or(kMostPoints);
      return count <= kMostElements && elements_.can_compute(id);
    };
    Bindings variables = sizes_of(named);
    if (calls_routines(named.kernel.body) || !std::ranges::all_of(named.reads, is_known) ||
        !std::ranges::all_of(named.writes, is_known))
      return Part::None;
    Part part = Part::Whole;
    int64_t points = count_points(named.kernel.body, variables);
    if (points >= kMostPoints && loops::parallel_regions_of(named.kernel).size() == 1) {
      part = Part::Iteration;
      variables = sizes_of(named);
      keep_one_iteration(named.kernel.body, variables, random_);
      points = count_points(named.kernel.body, variables);
    }
    if (points >= kMostPoints || points_ + points > kMostPointsOfAll)
      return Part::None;
    points_ += points;
    return part;
  }

  // In the shape that the kernel gives it, whose axes may be fused.
  Tensor in_memory(const std::string& name, const loops::Buffer& buffer, const Bindings& sizes) {
    const auto elements = std::make_shared<Tensor>(elements_.in_memory(graph_.buffers.id_of(name)));
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(*size.evaluate(sizes));
    return {elements->dtype(), extents, elements, elements->bytes()};
  }

  static std::vector<int64_t> places_of(const std::vector<bool>& written) {
    std::vector<int64_t> places;
    for (size_t i = 0; i < written.size(); ++i)
      if (written[i])
        places.push_back(static_cast<int64_t>(i));
    return places;
  }

  Check check(const loops::NamedKernel& named, Part part) {
    const Bindings sizes = sizes_of(named);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < named.reads.size(); ++i)
      inputs.push_back(in_memory(named.reads[i], named.kernel.inputs[i], sizes));
    Check all;
    try {
      const std::vector<loops::PartialOutput> outputs = loops::interpret_partly(named.kernel, inputs, sizes);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::vector<int64_t> written = places_of(outputs[i].written);
        if (part == Part::Whole && std::ssize(written) < outputs[i].elements.count())
          throw user_error("{} elements are never written",
                           outputs[i].elements.count() - std::ssize(written));
        const auto run_nudged = [&](uint64_t seed) {
          RandomGenerator random(seed);
          std::vector<Tensor> moved;
          for (const Tensor& input : inputs)
            moved.push_back(nudged(input, random).tensor());
          return elements_at(loops::interpret_partly(named.kernel, moved, sizes)[i].elements, written);
        };
        const Tensor expected = in_memory(named.writes[i], named.kernel.outputs[i], sizes);
        add(all, judge(elements_at(outputs[i].elements, written), elements_at(expected, written), run_nudged,
                       names_of(named.sources), options_.tolerance));
      }
    } catch (const UserError& error) {
      all = {.verdict = Verdict::Failed, .detail = error.what()};
    }
    return all;
  }

  const KernelGraph& graph_;
  const compiler::Kernels kernels_;
  ElementInterpreter elements_;
  const LoweringChecksOptions& options_;
  RandomGenerator random_;
  int64_t points_ = 0;
};

}  // namespace

LoweringCheck KernelGraphChecks::look(std::string_view pass, const KernelGraph& graph) {
  LoweringCheck result{.pass = std::string(pass), .numbers = {}, .lint = {.verdict = Verdict::Passed}};
  if (const std::vector<std::string> wrong = lowering::check(graph); !wrong.empty()) {
    result.lint = {.verdict = Verdict::Failed, .detail = wrong.front()};
    return result;
  }
  const Signatures signatures(graph);
  ElementInterpreter elements(graph, known_from(recorded_));
  RandomGenerator random(options_.seed);
  for (const KernelNode& node : graph.nodes)
    for (BufferId id : node.writes) {
      if (!elements.can_compare(id))
        continue;
      const KernelBuffer& buffer = graph.buffers[id];
      std::string& seen = seen_[buffer.name()];
      std::string signature = signatures.of(id);
      if (seen == signature)
        continue;
      seen = std::move(signature);
      ++result.changes;
      const Tensor& value = *find_tensor(recorded_, buffer.value);
      const std::vector<int64_t> places = sampled_places(value.count(), random);
      const std::string sources = names_of(node.stage->sources);
      Check one;
      try {
        const auto run_nudged = [&](uint64_t seed) {
          NudgedValues values(recorded_, seed);
          return ElementInterpreter(graph, [&](Value each) { return values.find(each); }).compute(id, places);
        };
        one = judge(elements.compute(id, places), elements_at(value, places), run_nudged, sources,
                    options_.tolerance);
      } catch (const UserError& error) {
        one = {.verdict = Verdict::Failed, .detail = error.what()};
      }
      if (one.verdict == Verdict::Failed) {
        one.detail = fmt::format("{}: {}", sources, one.detail);
        result.sources = node.stage->sources;
        add(result.numbers, std::move(one));
        return result;
      }
      add(result.numbers, std::move(one));
    }
  return result;
}

std::vector<LoweringCheck> check_lowering(const Graph& target_graph, const RecordedValues& recorded,
                                          const compiler::CompileContext& context,
                                          const LoweringChecksOptions& options) {
  std::vector<LoweringCheck> results;
  const auto is_wrong = [&] { return std::ranges::any_of(results, &LoweringCheck::failed); };
  KernelGraphChecks checks(recorded, options);
  const auto look = [&](std::string_view pass, const KernelGraph& graph) {
    if (is_wrong())
      return;
    step(options.listener, pass);
    LoweringCheck result = checks.look(pass, graph);
    if (result.changes > 0 || result.lint.verdict == Verdict::Failed)
      results.push_back(std::move(result));
  };
  begin(options.listener, "checking kernel-graph pass", std::ssize(compiler::FusedGraph::passes()) + 1);
  KernelGraph lowered = lowering::lower_graph(target_graph);
  look("lower", lowered);
  compiler::KernelGraphContext passes = kernel_graph_context(context);
  passes.after_pass = [&](const compiler::KernelGraphPass& pass, const KernelGraph& graph) {
    look(pass.name, graph);
  };
  const compiler::FusedGraph fused(std::move(lowered), passes);
  if (is_wrong())
    return results;
  if (LoweringCheck schedule = ScheduleChecks(fused, context, recorded, options).run();
      schedule.changes > 0 || !schedule.numbers.unchecked.empty())
    results.push_back(std::move(schedule));
  return results;
}

}  // namespace tenon
