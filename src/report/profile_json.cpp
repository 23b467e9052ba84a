// profile_json.cpp — where the time of a program goes, as JSON for scripts, and as a trace to look at.
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/print_profile.h"

namespace tenon {

using Json = nlohmann::ordered_json;

namespace {

std::string_view name(MeasuredStep::Kind kind) {
  switch (kind) {
    case MeasuredStep::Kind::Kernel:
      return "kernel";
    case MeasuredStep::Kind::Host:
      return "host";
    case MeasuredStep::Kind::View:
      return "view";
    case MeasuredStep::Kind::Copy:
      return "copy";
  }
  return "";
}

// Of the trace: slices in two rows, one for what is done before the model runs, one for a run.
class TraceWriter {
 public:
  explicit TraceWriter(const std::string& model) {
    add_name("process_name", kPreparing, "tenon: " + model);
    add_name("thread_name", kPreparing, "reading and compiling");
    add_name("thread_name", kRunning, "a run, step by step");
  }

  void add_preparation(const Preparation& preparation) {
    double at = 0;
    at = add(kPreparing, "prepare", "read the model", at, preparation.reading, Json::object());
    for (const PassReport& pass : preparation.passes)
      at = add(kPreparing, "prepare", pass.pass, at, pass.milliseconds / 1e3,
               {{"changes", pass.changes}, {"nodes", pass.nodes}});
    at = add(kPreparing, "prepare", "fuse and generate code", at, preparation.compiling, Json::object());
    start_ = std::ceil(at * 1e6) / 1e6;
  }

  void add_run(const Measurement& measurement, const Modules& modules) {
    const size_t run = measurement.median_run();
    const Json whole = as_json(measurement.whole, measurement);
    add(kRunning, "run", "run", start_, measurement.whole.seconds[run], whole);
    double at =
        add(kRunning, "run", "before the steps", start_, measurement.before_steps[run], Json::object());
    for (const MeasuredStep& step : measurement.steps) {
      Json details = as_json(step, measurement);
      details["module"] = modules.of(step.sources);
      const std::string title =
          step.sources.empty() ? step.name : fmt::format("{} {}", step.name, step.sources.front());
      at = add(kRunning, name(step.kind), title, at, step.seconds[run], std::move(details));
    }
  }

  Json take() && { return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}}; }

 private:
  static constexpr int kPreparing = 1, kRunning = 2;

  void add_name(const std::string& event, int thread, const std::string& name) {
    events_.push_back(
        {{"name", event}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", {{"name", name}}}});
  }

  // A slice; returns where it ends.
  double add(int thread, std::string_view category, const std::string& name, double from, double seconds,
             Json details) {
    const double begin = microseconds(from), end = microseconds(from + seconds);
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"pid", 1},
                       {"tid", thread},
                       {"ts", begin},
                       {"dur", end - begin},
                       {"args", std::move(details)}});
    return from + seconds;
  }

  // As the format counts. Perfetto leaves out slices that overlap once the beginning and the duration of each
  // are cut off at nanoseconds. Whole numbers of 1/1024 µs do not: a double holds them and what they add up
  // to exactly, and the parts of a sum that are cut off never come to more than it.
  static double microseconds(double seconds) { return std::round(seconds * 1e6 * 1024) / 1024; }

  Json events_ = Json::array();
  double start_ = 0;  // of the run, in whole microseconds, so that what is cut off of its end is no more than
                      // of that of its steps
};

}  // namespace

Json as_json(const MeasuredStep& step, const Measurement& measurement) {
  Json json;
  const bool is_whole = &step == &measurement.whole;
  if (!is_whole)
    json = {{"name", step.name},       {"kind", name(step.kind)}, {"tuned", step.is_tuned},
            {"sources", step.sources}, {"reads", step.reads},     {"writes", step.writes}};
  json["milliseconds"] = 1e3 * step.typical;
  json["share"] = step.typical / measurement.whole.typical;
  if (step.flops) {
    json["flops"] = *step.flops;
    json["gflops"] = *step.flops / step.typical / 1e9;
  }
  if (step.bytes) {
    json["bytes"] = *step.bytes;
    json["gbps"] = *step.bytes / step.typical / 1e9;
  }
  if (step.at_least > 0)
    json["ceiling"] = step.ceiling();
  if (step.bound)
    json["bound"] = name(*step.bound);
  for (const runtime::RegionLaunch& launch : step.launches)
    json["launches"].push_back({{"blocks", launch.blocks},
                                {"threads", launch.threads},
                                {"registers", launch.registers},
                                {"spilled_bytes", launch.spilled_bytes},
                                {"shared_bytes", launch.shared_bytes},
                                {"occupancy", measurement.occupancy(launch)}});
  return json;
}

Json as_json(const Ceilings& ceilings) {
  Json bandwidths = Json::array();
  for (const Ceilings::Bandwidth& level : ceilings.bandwidths)
    bandwidths.push_back({{"name", level.name}, {"gbps", level.bytes_per_second / 1e9}});
  return {{"peak_gflops", ceilings.flops_per_second / 1e9}, {"bandwidths", bandwidths}};
}

Json as_json(const Gpu& gpu, const Measurement& measurement) {
  return {{"device", gpu.name},
          {"kernels_ms", 1e3 * measurement.seconds_of(MeasuredStep::Kind::Kernel)},
          {"host_ms", 1e3 * measurement.seconds_of(MeasuredStep::Kind::Host)},
          {"copies_ms", 1e3 * measurement.seconds_of(MeasuredStep::Kind::Copy)}};
}

Json profile_as_json(const std::string& model, const Measurement& measurement, const Modules& modules) {
  Json json = {{"model", model}, {"threads", measurement.threads}, {"runs", measurement.runs()}};
  if (measurement.gpu)
    json.update(as_json(*measurement.gpu, measurement));
  json.update(as_json(measurement.ceilings));
  json["total"] = as_json(measurement.whole, measurement);
  json["outside_steps"] = {{"milliseconds", 1e3 * measurement.outside_steps()},
                           {"share", measurement.outside_steps() / measurement.whole.typical}};
  json["steps"] = Json::array();
  for (const MeasuredStep& step : measurement.steps)
    if (step.kind != MeasuredStep::Kind::View) {
      Json& row = json["steps"].emplace_back(as_json(step, measurement));
      row["module"] = modules.of(step.sources);
    }
  json["modules"] = Json::array();
  for (const ModuleTime& time : times_of_modules(measurement, modules))
    json["modules"].push_back(
        {{"module", time.module}, {"milliseconds", 1e3 * time.seconds}, {"steps", time.steps}});
  return json;
}

Json trace_as_json(const std::string& model, const Measurement& measurement, const Preparation& preparation,
                   const Modules& modules) {
  TraceWriter writer(model);
  writer.add_preparation(preparation);
  writer.add_run(measurement, modules);
  return std::move(writer).take();
}

}  // namespace tenon
