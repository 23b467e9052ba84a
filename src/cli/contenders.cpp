#include "cli/contenders.h"

#include <algorithm>
#include <cmath>

#include "base/progress.h"
#include "base/units.h"
#include "cli/milliseconds.h"
#include "cli/run_compiled.h"
#include "cli/saved_model.h"
#include "ir/evaluate.h"
#include "runtime/hot_sizes.h"

namespace tenon::cli {

using compiler::CompileContext;
using compiler::Needs;
using compiler::needs_of;
using compiler::sizes_of;
using runtime::kRunsUntilHot;

namespace {

constexpr int64_t kLeastRuns = 5;

// What this part of sorted times does not exceed.
double quantile(const std::vector<double>& times, double part) {
  return times[static_cast<size_t>(std::ceil(part * static_cast<double>(times.size()))) - 1];
}

}  // namespace

void Contender::compile(const Graph& optimised, double optimize_ms, CompileContext how) {
  how.cache = codegen::ObjectCache(folder->path());
  const auto timed = [&] { return milliseconds_of([&] { executor = compile_model(optimised, how); }); };
  compile_ms = optimize_ms + timed();
  executor.reset();  // so that it is in memory once
  cached_compile_ms = optimize_ms + timed();
  make_outputs();
}

void Contender::open(const std::string& program) {
  const auto timed = [&] {
    return milliseconds_of([&] { executor = open_saved_program(program).executor; });
  };
  compile_ms = timed();
  executor.reset();
  cached_compile_ms = timed();
  make_outputs();
}

void Contender::make_outputs() {
  if (executor->has_fixed_sizes())
    for (size_t slot : executor->program().outputs) {
      const TensorType& type = executor->program().slots[slot].type.as_tensor();
      outputs.emplace_back(type.dtype, *type.shape.extents());
    }
}

void Contender::run(const Data& inputs, const runtime::RunOptions& options) {
  if (!executor)
    evaluate(*graph, inputs, {.seed = options.seed});
  else if (executor->has_fixed_sizes())
    run_into(inputs, options);
  else
    executor->run(inputs, options);
}

// As a caller does who has the memory, on the device where that has its own.
void Contender::run_into(const Data& inputs, const runtime::RunOptions& options) {
  if (runtime::DeviceMemory* memory = executor->device().own_memory()) {
    if (device_outputs.empty())
      place_on_device(inputs, *memory);
    return run_on_device(options);
  }
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Datum& input : inputs)
    from.push_back(input.tensor().bytes().data());
  for (Tensor& output : outputs)
    to.push_back(output.mutable_bytes().data());
  executor->run_into(from, to, options);
}

void Contender::run_on_device(runtime::RunOptions options) {
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const std::shared_ptr<std::byte[]>& input : device_inputs)
    from.push_back(input.get());
  for (const std::shared_ptr<std::byte[]>& output : device_outputs)
    to.push_back(output.get());
  options.on_device = &device_ports;
  executor->run_into(from, to, options);
}

void Contender::time_on_device(const runtime::RunOptions& options) {
  if (device_outputs.empty())
    return;
  runtime::RunOptions queued = options;
  queued.stream = executor->device().own_memory()->default_stream();
  run_on_device(queued);
  queued.device_seconds = &device_times.emplace_back();
  run_on_device(queued);
  device_times.back() *= 1000;
}

void Contender::place_on_device(const Data& inputs, runtime::DeviceMemory& memory) {
  const std::unique_ptr<runtime::Workspace> workspace = executor->device().make_workspace();
  for (const Datum& input : inputs) {
    const std::span<const std::byte> bytes = input.tensor().bytes();
    device_inputs.push_back(memory.allocate(static_cast<int64_t>(bytes.size())));
    memory.upload(device_inputs.back().get(), bytes.data(), static_cast<int64_t>(bytes.size()), *workspace);
  }
  for (const Tensor& output : outputs)
    device_outputs.push_back(memory.allocate(static_cast<int64_t>(output.bytes().size())));
  memory.wait(*workspace);
  device_ports = {.inputs = std::vector<bool>(inputs.size(), true),
                  .outputs = std::vector<bool>(outputs.size(), true)};
}

double Contender::median() const { return quantile(times, 0.5); }
std::optional<double> Contender::device_median() const {
  return device_times.empty() ? std::nullopt : std::optional(quantile(device_times, 0.5));
}
double Contender::p95() const { return quantile(times, 0.95); }

void measure(std::vector<Contender>& contenders, const Data& inputs, double seconds,
             const runtime::RunOptions& options) {
  const auto run = [&](Contender& contender) {
    return milliseconds_of([&] { run_compiled([&] { contender.run(inputs, options); }); });
  };
  const double milliseconds = 1000 * seconds;
  double turn = 0;  // of all, once they are warm
  for (Contender& contender : contenders) {
    std::vector<double> times;
    const bool has_any_size = contender.executor && !contender.executor->has_fixed_sizes();
    const size_t least = has_any_size ? kRunsUntilHot : 1;  // so that it is compiled for this one
    for (double spent = 0; times.size() < least || spent < milliseconds / 10; spent += times.back())
      times.push_back(run(contender));
    std::sort(times.begin(), times.end());
    turn += quantile(times, 0.5);
  }
  const auto turns = std::max(kLeastRuns, static_cast<int64_t>(std::ceil(milliseconds / turn)));
  Progress progress("measuring run", turns);
  for (int64_t i = 0; i < turns; ++i) {
    progress.step("");
    for (Contender& contender : contenders) {
      contender.times.push_back(run(contender));
      run_compiled([&] { contender.time_on_device(options); });
    }
  }
  for (Contender& contender : contenders) {
    std::sort(contender.times.begin(), contender.times.end());
    std::sort(contender.device_times.begin(), contender.device_times.end());
    if (contender.executor)
      contender.needs =
          needs_of(contender.executor->program(), sizes_of(contender.executor->program(), inputs));
  }
}

void ContenderTable::add_times() {
  const auto time = [](double milliseconds) { return format_seconds(milliseconds / 1000); };
  add("median", [&](const Contender& each) { return time(each.median()); });
  add("p95", [&](const Contender& each) { return time(each.p95()); });
  if (std::ranges::any_of(contenders_,
                          [](const Contender& each) { return each.device_median().has_value(); }))
    add("  on the device", [&](const Contender& each) {
      return each.device_median() ? time(*each.device_median()) : std::string("-");
    });
}

void ContenderTable::add_speed_ups() {
  add("speed-up", [&](const Contender& each) {
    return fmt::format("{:.2f}x", contenders_.back().median() / each.median());
  });
}

void ContenderTable::add_bytes_moved() {
  add_need("bytes moved",
           [](const Needs& needs) { return format_bytes(static_cast<double>(needs.bytes_moved)); });
}

void ContenderTable::add_memory() {
  add_need("intermediate memory",
           [](const Needs& needs) { return format_bytes(static_cast<double>(needs.arena_bytes)); });
}

}  // namespace tenon::cli
