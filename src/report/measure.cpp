#include "report/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "compiler/describe.h"
#include "lowering/lower_graph.h"
#include "passes/target/decompose_ops.h"

namespace tenon {

using compiler::bytes_moved;
using compiler::bytes_of;
using compiler::FusionReport;
using runtime::AliasStep;
using runtime::CopyStep;
using runtime::Executor;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::LoopsStep;
using runtime::Slot;
using runtime::Step;

namespace {

constexpr double kLeastRuns = 5, kMostRuns = 100'000;  // the time of every step is kept for each
// Where operations and bytes together explain less of a step's time, something else bounds it.
constexpr double kLeastExplained = 0.1;
// To start a step takes about so many seconds, beside what it takes to start its threads. What takes many
// times as long is not busy with that.
constexpr double kStart = 1e-6, kMostStarts = 10;

using Clock = std::chrono::steady_clock;

// Not 0, for others divide by it: some clocks tick less often than short steps take.
double seconds_between(Clock::time_point start, Clock::time_point end) {
  constexpr double kLeast = 1e-9;
  return std::max(kLeast, std::chrono::duration<double>(end - start).count());
}

class Meter {
 public:
  Meter(const Executor& executor, const FusionReport& fusion, const Data& inputs, const Target& target,
        const MeasureOptions& options)
      : executor_(executor), fusion_(fusion), inputs_(inputs), options_(options) {
    result_.threads = options.threads;
    result_.gpu = executor.program().target.gpu;
    if (!result_.gpu)
      meter_.emplace(target, options.threads);
    result_.whole.name = "the whole run";
  }

  Measurement run() && {
    measure_ceilings();
    executor_.run(inputs_, {.threads = options_.threads, .sizes = &result_.sizes});  // warms up
    describe_steps();
    const double once = time_run();
    result_.before_steps.clear();
    for (MeasuredStep& step : result_.steps)
      step.seconds.clear();
    const auto runs = static_cast<int64_t>(std::clamp(options_.seconds / once, kLeastRuns, kMostRuns));
    begin(options_.listener, "measuring run", runs);
    for (int64_t i = 0; i < runs; ++i) {
      step(options_.listener, "");
      result_.whole.seconds.push_back(time_run());
    }
    measure_ceilings();
    finish();
    return std::move(result_);
  }

 private:
  // Before the runs and after them: others may use the processor, too.
  void measure_ceilings() {
    if (meter_) {
      meter_->measure();
      result_.ceilings = meter_->ceilings();
    } else if (result_.ceilings.bandwidths.empty()) {
      result_.ceilings = measure_gpu(*result_.gpu, executor_.device());
    }
  }

  void describe_steps() {
    const Bindings& sizes = result_.sizes;
    size_t kernels = 0;
    for (const Step& step : executor_.program().steps) {
      MeasuredStep& measured = result_.steps.emplace_back();
      if (const auto* kernel = std::get_if<KernelStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Kernel,
                    .name = kernel->name(),
                    .is_tuned = kernel->is_tuned,
                    .sources = kernel->sources,
                    .launches = executor_.region_launches(result_.steps.size() - 1, sizes)};
        note_operations(fusion_.after.at(kernels++).cost.operations.evaluate(sizes), measured);
        note_types(*kernel, measured);
      } else if (const auto* host = std::get_if<HostStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Host, .name = host->op, .sources = host->sources};
        note_types(*host, measured);
      } else if (const auto* loops = std::get_if<LoopsStep>(&step)) {
        measured = {.kind = MeasuredStep::Kind::Host, .name = "loops beside each other"};
        for (const HostStep& loop : loops->loops)
          for (const std::string& source : loop.sources)
            measured.sources.push_back(source);
        note_types(*loops, measured);
      } else if (const auto* view = std::get_if<AliasStep>(&step)) {
        measured = {.name = view->op, .sources = view->sources};
      } else {
        const bool is_upload = std::get<CopyStep>(step).to == CopyStep::To::Device;
        measured = {.kind = MeasuredStep::Kind::Copy,
                    .name = is_upload ? "copy to the device" : "copy to the host"};
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
      measured.reads.push_back(fmt::format("{}", executor_.program().slots[slot].type));
    for (size_t slot : call.writes)
      measured.writes.push_back(fmt::format("{}", executor_.program().slots[slot].type));
  }

  void note_bytes(const Step& step, const Bindings& sizes, MeasuredStep& measured) const {
    if (measured.kind == MeasuredStep::Kind::View)
      return;
    if (const int64_t moved = bytes_moved(executor_.program(), step, sizes); moved > 0)
      measured.bytes = static_cast<double>(moved);
    for_each_slot(step, [&](size_t slot) {
      if (const Slot& each = executor_.program().slots[slot]; each.home == Home::Constant)
        measured.constant_bytes += static_cast<double>(bytes_of(each.type, sizes).value_or(0));
    });
  }

  // Once, in seconds.
  double time_run() {
    const auto start = Clock::now();
    auto before = start;
    const auto next = [&] {
      const auto last = std::exchange(before, Clock::now());
      return seconds_between(last, before);
    };
    const std::function<void()> before_steps = [&] { result_.before_steps.push_back(next()); };
    std::vector<double> of_kernels(result_.steps.size());
    const std::function<void(size_t)> after_step = [&](size_t step) {
      const double seconds = next();
      result_.steps[step].seconds.push_back(of_kernels[step] > 0 ? of_kernels[step] : seconds);
    };
    executor_.run(inputs_, {.threads = options_.threads,
                            .kernel_seconds = result_.gpu ? &of_kernels : nullptr,
                            .before_steps = &before_steps,
                            .after_step = &after_step});
    return seconds_between(start, Clock::now());
  }

  void finish() {
    double constants = 0;
    for (const MeasuredStep& step : result_.steps)
      constants += step.constant_bytes;
    MeasuredStep& whole = result_.whole;
    const std::vector<size_t> typical = result_.typical_runs();
    whole.typical = mean(whole.seconds, typical);
    for (MeasuredStep& step : result_.steps) {
      step.typical = mean(step.seconds, typical);
      finish(step, constants);
      whole.at_least += step.at_least;
      if (step.flops)
        whole.flops = whole.flops.value_or(0) + *step.flops;
      if (step.bytes)
        whole.bytes = whole.bytes.value_or(0) + *step.bytes;
    }
  }

  // A run reads each constant once, so it comes from where all of them fit.
  void finish(MeasuredStep& step, double constants) const {
    if (result_.gpu && step.kind != MeasuredStep::Kind::Kernel)
      return;  // the ceilings are those of the GPU
    const Ceilings& ceilings = result_.ceilings;
    const double bytes = step.bytes.value_or(0), flops = step.flops.value_or(0);
    const double computing = flops / ceilings.flops_per_second;
    const double moving = (bytes - step.constant_bytes) / ceilings.bandwidth_for(bytes) +
                          step.constant_bytes / ceilings.bandwidth_for(constants);
    step.at_least = std::max(computing, moving);
    if (!step.flops && !step.bytes)
      return;
    // In the fastest run: others may use the machine in half of them.
    const double fastest = *std::min_element(step.seconds.begin(), step.seconds.end());
    step.bound = bound_of(computing, moving, fastest, ceilings.dispatch_seconds);
  }

  static double mean(const std::vector<double>& times, const std::vector<size_t>& runs) {
    double sum = 0;
    for (size_t run : runs)
      sum += times[run];
    return sum / static_cast<double>(runs.size());
  }

  const Executor& executor_;
  const FusionReport& fusion_;
  const Data& inputs_;
  const MeasureOptions& options_;
  std::optional<CeilingMeter> meter_;  // of the processor, where kernels run on it
  Measurement result_;
};

}  // namespace

Bound bound_of(double computing, double moving, double fastest, double dispatch) {
  if (std::max(computing, moving) >= kLeastExplained * fastest)
    return computing > moving ? Bound::Compute : Bound::Memory;
  return fastest < kMostStarts * (kStart + dispatch) ? Bound::Overhead : Bound::Code;
}

std::string_view name(Bound bound) {
  switch (bound) {
    case Bound::Compute:
      return "compute";
    case Bound::Memory:
      return "memory";
    case Bound::Overhead:
      return "overhead";
    case Bound::Code:
      return "code";
  }
  return "";
}

double Measurement::seconds_of(MeasuredStep::Kind kind) const {
  double seconds = 0;
  for (const MeasuredStep& step : steps)
    if (step.kind == kind)
      seconds += step.typical;
  return seconds;
}

double Measurement::occupancy(const runtime::RegionLaunch& launch) const {
  return static_cast<double>(launch.blocks_per_multiprocessor * launch.threads) /
         static_cast<double>(gpu->threads_per_multiprocessor);
}

std::vector<size_t> Measurement::typical_runs() const {
  std::vector<size_t> order(runs());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return whole.seconds[a] < whole.seconds[b]; });
  const auto quarter = static_cast<int64_t>(runs() / 4);
  return {order.begin() + quarter, order.end() - quarter};
}

size_t Measurement::median_run() const {
  const std::vector<size_t> typical = typical_runs();
  return typical[typical.size() / 2];
}

double Measurement::outside_steps() const {
  double seconds = whole.typical;
  for (const MeasuredStep& step : steps)
    if (step.kind != MeasuredStep::Kind::View)
      seconds -= step.typical;
  return std::max(seconds, 0.0);
}

Measurement measure(const Executor& executor, const FusionReport& fusion, const Data& inputs,
                    const Target& target, const MeasureOptions& options) {
  return Meter(executor, fusion, inputs, target, options).run();
}

}  // namespace tenon
