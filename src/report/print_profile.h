// print_profile.h — where the time of a program goes, as text, as JSON, and as a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "passes/pipeline.h"
#include "report/measure.h"
#include "report/modules.h"

namespace tenon {

// What was done before the model ran, and how long that took.
struct Preparation {
  double reading = 0;  // in seconds
  std::vector<PassReport> passes = {};
  double compiling = 0;
};

// The `top` steps that take longest, a line for each, then the modules; of at most 100 columns.
std::string print_profile(const Measurement& measurement, const Modules& modules, size_t top);

// Time by module, the longest first.
struct ModuleTime {
  std::string module;
  double seconds = 0;
  int64_t steps = 0;
};
std::vector<ModuleTime> times_of_modules(const Measurement& measurement, const Modules& modules);

// A step, or the whole run; what is not known is left out.
nlohmann::ordered_json as_json(const MeasuredStep& step, const Measurement& measurement);
nlohmann::ordered_json as_json(const Ceilings& ceilings);
// The name of a GPU, and the time of what ran there, on the host and between them.
nlohmann::ordered_json as_json(const Gpu& gpu, const Measurement& measurement);
nlohmann::ordered_json profile_as_json(const std::string& model, const Measurement& measurement,
                                       const Modules& modules);

// One run, as Perfetto and chrome://tracing read it: the preparation, then the run that took as long as half
// of them do.
nlohmann::ordered_json trace_as_json(const std::string& model, const Measurement& measurement,
                                     const Preparation& preparation, const Modules& modules);

}  // namespace tenon
