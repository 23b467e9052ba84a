#include "verify/schedule_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "compiler/build_kernels.h"
#include "loops/interpret.h"
#include "loops/parallel_regions.h"
#include "lowering/interpret_elements.h"
#include "verify/conditioning.h"
#include "verify/judge.h"

namespace tenon {

using loops::NamedKernel;
using lowering::BufferId;
using lowering::ElementInterpreter;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

// Points of the loops that are interpreted, of one kernel and of all; and elements of a buffer, each counted
// as often as something is added to it.
constexpr int64_t kMostPoints = 200'000, kTotalPoints = 5'000'000, kMostElements = 1'000'000;

// How many points the loops of a body have, up to kMostPoints. The bounds of an inner loop count as they are
// in the first iteration of those around it.
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
      iterations = std::clamp<int64_t>((end - begin + loop->step - 1) / loop->step, 0, kMostPoints);
      variables.insert_or_assign(loop->variable, begin);
    }
    sum += std::min(iterations * count_points(*inner, variables), kMostPoints);
  }
  return std::min(sum, kMostPoints);
}

// The parallel loops of a region, each of which is all there is in the one around it, run one iteration.
void keep_one_iteration(std::vector<loops::Statement>& body, Bindings& variables, std::mt19937_64& random) {
  for (loops::Statement& statement : body) {
    auto* loop = std::get_if<loops::Loop>(&statement);
    if (loop == nullptr || !loops::is_parallel(loop->mark))
      continue;
    const std::optional<int64_t> begin = loop->begin.evaluate(variables), end = loop->end.evaluate(variables);
    if (!begin || !end || *end <= *begin)
      continue;
    const auto iterations = static_cast<uint64_t>((*end - *begin + loop->step - 1) / loop->step);
    const int64_t kept = *begin + static_cast<int64_t>(random() % iterations) * loop->step;
    loop->begin = kept;
    loop->end = std::min(kept + loop->step, *end);
    variables.insert_or_assign(loop->variable, kept);
    if (loop->body.size() == 1)
      keep_one_iteration(loop->body, variables, random);
  }
}

class ScheduleChecks {
 public:
  ScheduleChecks(const compiler::FusedGraph& fused, const compiler::CompileContext& context,
                 const RecordedBuffers& recorded, const LoweringChecksOptions& options)
      : graph_(fused.graph()),
        kernels_(fused, context),
        value_of_([&recorded](const lowering::KernelBuffer& buffer) { return recorded.find(buffer); }),
        sizes_(sizes_of_values(graph_, value_of_)),
        elements_(graph_, sizes_, value_of_),
        options_(options),
        random_(options.seed) {
    for (const KernelNode& node : graph_.nodes)
      for (BufferId id : node.writes)
        writers_.emplace(id, &node);
  }

  LoweringCheck run() {
    LoweringCheck result{.pass = "schedule", .level = Level::Scheduled};
    result.lint.verdict = Verdict::DoesNotApply;
    size_t kernel = 0, unchecked = 0;
    begin(options_.listener, "interpreting kernel", std::ssize(kernels_.by_group()));
    for (const auto& [group, named] : kernels_.by_group()) {
      const std::string nodes = fmt::format("{}", fmt::join(named.sources, ", "));
      step(options_.listener, nodes);
      const size_t number = kernel++;
      if (result.failed() || !seen_.insert(kernels_.number_of(group)).second)
        continue;
      NamedKernel run = named;
      const Part part = choose_part(run);
      if (part == Part::None) {
        ++unchecked;
        continue;
      }
      ++result.changes;
      add_check(result.numbers, check(run, part, nodes));
      if (result.failed()) {
        result.kernel = number;
        result.sources = named.sources;
        result.numbers.detail = fmt::format("kernel {}: {}: {}", number, nodes, result.numbers.detail);
      }
    }
    if (unchecked > 0)
      result.numbers.unchecked.push_back(fmt::format(
          "{} of {} kernels, too large to interpret or with transformed operands", unchecked, seen_.size()));
    return result;
  }

 private:
  // How much of a kernel is interpreted.
  enum class Part : uint8_t { None, Iteration, Whole };

  Bindings sizes_of(const NamedKernel& named) const {
    Bindings sizes;
    const std::vector<std::string> own = named.kernel.size_symbols();
    for (size_t i = 0; i < own.size(); ++i)
      if (const auto size = sizes_.find(named.symbols[i]); size != sizes_.end())
        sizes.emplace(own[i], size->second);
    return sizes;
  }

  // Whether the elements of a buffer are known, or can be computed soon enough.
  bool has_elements(const std::string& name) const {
    const BufferId id = graph_.buffers.id_of(name);
    std::vector<Dim> factors = graph_.buffers[id].elements.sizes;
    if (const auto writer = writers_.find(id);
        writer != writers_.end() && writer->second->stage && value_of_(graph_.buffers[id]) == nullptr)
      for (const loops::Axis& axis : writer->second->stage->definition.reduced)
        factors.push_back(axis.size);
    int64_t count = 1;
    for (const Dim& factor : factors) {
      const std::optional<int64_t> size = factor.evaluate(sizes_);
      if (!size || __builtin_mul_overflow(count, *size, &count))
        return false;
    }
    return count <= kMostElements && elements_.can_compute(id);
  }

  // Of a large kernel that has one parallel region, so that none of it waits for another, one iteration is
  // kept.
  Part choose_part(NamedKernel& named) {
    const auto is_known = [&](const std::string& name) { return has_elements(name); };
    if (loops::calls_routines(named.kernel.body) || !std::ranges::all_of(named.reads, is_known) ||
        !std::ranges::all_of(named.writes, is_known) ||
        sizes_of(named).size() < named.kernel.size_symbols().size())
      return Part::None;
    Part part = Part::Whole;
    Bindings variables = sizes_of(named);
    int64_t points = count_points(named.kernel.body, variables);
    if (points >= kMostPoints && loops::parallel_regions_of(named.kernel).size() == 1) {
      part = Part::Iteration;
      variables = sizes_of(named);
      keep_one_iteration(named.kernel.body, variables, random_);
      points = count_points(named.kernel.body, variables);
    }
    if (points >= kMostPoints || points_ + points > kTotalPoints)
      return Part::None;
    points_ += points;
    return part;
  }

  // In the shape that the kernel gives it, whose axes may be fused.
  Tensor materialise(const std::string& name, const loops::Buffer& buffer, const Bindings& sizes) {
    const auto elements = std::make_shared<Tensor>(elements_.materialise(graph_.buffers.id_of(name)));
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(size.evaluate(sizes).value());
    return {elements->dtype(), extents, elements, elements->bytes()};
  }

  static std::vector<int64_t> indices_of(const std::vector<bool>& written) {
    std::vector<int64_t> indices;
    for (size_t i = 0; i < written.size(); ++i)
      if (written[i])
        indices.push_back(static_cast<int64_t>(i));
    return indices;
  }

  Check check(const NamedKernel& named, Part part, const std::string& nodes) {
    try {
      return compare_outputs(named, part, nodes);
    } catch (const UserError& error) {
      return {.verdict = Verdict::Failed, .detail = error.what()};
    }
  }

  Check compare_outputs(const NamedKernel& named, Part part, const std::string& nodes) {
    const Bindings sizes = sizes_of(named);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < named.reads.size(); ++i)
      inputs.push_back(materialise(named.reads[i], named.kernel.inputs[i], sizes));
    const std::vector<loops::PartialOutput> outputs = interpret_partly(named.kernel, inputs, sizes);
    Check all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<int64_t> written = indices_of(outputs[i].written);
      if (const int64_t left = outputs[i].elements.count() - std::ssize(written);
          part == Part::Whole && left > 0)
        throw user_error("{} elements are never written", left);
      const auto compute_nudged = [&](uint64_t seed) {
        std::mt19937_64 random(seed);
        std::vector<Tensor> moved;
        for (const Tensor& input : inputs)
          moved.push_back(nudged(input, random).tensor());
        return elements_at(interpret_partly(named.kernel, moved, sizes)[i].elements, written);
      };
      const Tensor expected = materialise(named.writes[i], named.kernel.outputs[i], sizes);
      add_check(all, judge(elements_at(outputs[i].elements, written), elements_at(expected, written),
                           compute_nudged, nodes, options_.tolerance));
    }
    return all;
  }

  const KernelGraph& graph_;
  const compiler::Kernels kernels_;
  const lowering::ValueLookup value_of_;
  const Bindings sizes_;
  ElementInterpreter elements_;
  const LoweringChecksOptions& options_;
  std::mt19937_64 random_;
  std::map<BufferId, const KernelNode*> writers_;
  std::set<size_t> seen_;  // kernels, by their number among those that differ
  int64_t points_ = 0;
};

}  // namespace

LoweringCheck check_schedules(const compiler::FusedGraph& fused, const compiler::CompileContext& context,
                              const RecordedBuffers& recorded, const LoweringChecksOptions& options) {
  return ScheduleChecks(fused, context, recorded, options).run();
}

}  // namespace tenon
