#include "report/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "compiler/describe.h"
#include "compiler/lower_graph.h"

namespace tenon {
namespace {

constexpr double kLeastRuns = 5, kMostRuns = 100'000;  // the time of every step is kept for each
// Where operations and bytes together explain less of a step's time, something else bounds it.
constexpr double kLeastExplained = 0.1;

using Clock = std::chrono::steady_clock;

// Not 0, for others divide by it: some clocks tick less often than short steps take.
double seconds_between(Clock::time_point start, Clock::time_point end) {
  constexpr double kLeast = 1e-9;
  return std::max(kLeast, std::chrono::duration<double>(end - start).count());
}

class Meter {
 public:
  Meter(const Program& program, const FusionReport& fusion, const Data& inputs, const MeasureOptions& options)
      : program_(program), fusion_(fusion), inputs_(inputs), options_(options), meter_(options.threads) {
    result_.threads = options.threads;
    result_.whole.name = "the whole run";
  }

  Measurement run() && {
    meter_.measure();
    program_.run(inputs_, {.threads = options_.threads, .sizes = &result_.sizes});  // warms up
    describe_steps();
    const double once = time_run();
    for (MeasuredStep& step : result_.steps)
      step.seconds.clear();
    const auto runs = static_cast<int64_t>(std::clamp(options_.seconds / once, kLeastRuns, kMostRuns));
    begin(options_.listener, "measuring run", runs);
    for (int64_t i = 0; i < runs; ++i) {
      step(options_.listener, "");
      result_.whole.seconds.push_back(time_run());
    }
    meter_.measure();
    result_.ceilings = meter_.ceilings();
    finish();
    return std::move(result_);
  }

 private:
  void describe_steps() {
    const Bindings& sizes = result_.sizes;
    size_t kernels = 0;
    for (const Step& step : program_.steps()) {
      MeasuredStep& measured = result_.steps.emplace_back();
      if (const auto* kernel = std::get_if<KernelStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Kernel, .name = kernel->name, .sources = kernel->sources};
        note_operations(fusion_.after.at(kernels++).cost.operations.evaluate(sizes), measured);
        note_types(*kernel, measured);
      } else if (const auto* host = std::get_if<HostStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Host,
                    .name = std::string(host->node->op().name),
                    .sources = labels_of(*host->node)};
        note_types(*host, measured);
      } else if (const auto* loops = std::get_if<LoopsStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Host, .name = "loops beside each other"};
        for (const HostStep& loop : loops->loops)
          for (const std::string& source : labels_of(*loop.node))
            measured.sources.push_back(source);
        note_types(*loops, measured);
      } else {
        const AliasStep& view = std::get<AliasStep>(step);
        measured = {.name = std::string(view.node->op().name), .sources = labels_of(*view.node)};
      }
      note_bytes(step, sizes, measured);
    }
  }

  static void note_operations(std::optional<int64_t> operations, MeasuredStep& measured) {
    if (operations)
      measured.flops = static_cast<double>(*operations);
  }

  template <class Call>
  void note_types(const Call& call, MeasuredStep& measured) const {
    for (size_t slot : call.reads)
      measured.reads.push_back(fmt::format("{}", program_.slots()[slot].type));
    for (size_t slot : call.writes)
      measured.writes.push_back(fmt::format("{}", program_.slots()[slot].type));
  }

  void note_bytes(const Step& step, const Bindings& sizes, MeasuredStep& measured) const {
    if (measured.kind == MeasuredStep::Kind::View)
      return;
    if (const int64_t moved = bytes_moved(program_, step, sizes); moved > 0)
      measured.bytes = static_cast<double>(moved);
    for_each_slot(step, [&](size_t slot) {
      if (const Slot& each = program_.slots()[slot]; each.home == Home::Constant)
        measured.constant_bytes += static_cast<double>(bytes_of(each.type, sizes).value_or(0));
    });
  }

  // Once, in seconds.
  double time_run() {
    const auto start = Clock::now();
    auto before = start;
    const std::function<void(size_t)> after_step = [&](size_t step) {
      const auto now = Clock::now();
      result_.steps[step].seconds.push_back(seconds_between(before, now));
      before = now;
    };
    program_.run(inputs_, {.threads = options_.threads, .after_step = &after_step});
    return seconds_between(start, Clock::now());
  }

  void finish() {
    double constants = 0;
    for (const MeasuredStep& step : result_.steps)
      constants += step.constant_bytes;
    MeasuredStep& whole = result_.whole;
    for (MeasuredStep& step : result_.steps) {
      finish(step, constants);
      whole.at_least += step.at_least;
      if (step.flops)
        whole.flops = whole.flops.value_or(0) + *step.flops;
      if (step.bytes)
        whole.bytes = whole.bytes.value_or(0) + *step.bytes;
    }
    whole.median = median(whole.seconds);
  }

  // A run reads each constant once, so it comes from where all of them fit.
  void finish(MeasuredStep& step, double constants) const {
    const Ceilings& ceilings = result_.ceilings;
    const double bytes = step.bytes.value_or(0), flops = step.flops.value_or(0);
    const double computing = flops / ceilings.flops_per_second;
    const double moving = (bytes - step.constant_bytes) / ceilings.bandwidth_for(bytes) +
                          step.constant_bytes / ceilings.bandwidth_for(constants);
    step.median = median(step.seconds);
    step.at_least = std::max(computing, moving);
    if (!step.flops && !step.bytes)
      return;
    // In the fastest run: others may use the machine in half of them.
    const double fastest = *std::min_element(step.seconds.begin(), step.seconds.end());
    if (step.at_least < kLeastExplained * fastest)
      step.bound = Bound::Overhead;
    else
      step.bound = computing > moving ? Bound::Compute : Bound::Memory;
  }

  static double median(std::vector<double> times) {
    const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  const Program& program_;
  const FusionReport& fusion_;
  const Data& inputs_;
  const MeasureOptions& options_;
  CeilingMeter meter_;
  Measurement result_;
};

}  // namespace

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::Compute:
      return "compute";
    case Bound::Memory:
      return "memory";
    case Bound::Overhead:
      return "overhead";
  }
  return "";
}

size_t Measurement::median_run() const {
  return static_cast<size_t>(std::find(whole.seconds.begin(), whole.seconds.end(), whole.median) -
                             whole.seconds.begin());
}

Measurement measure(const Program& program, const FusionReport& fusion, const Data& inputs,
                    const MeasureOptions& options) {
  return Meter(program, fusion, inputs, options).run();
}

}  // namespace tenon
