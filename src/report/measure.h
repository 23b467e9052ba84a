// measure.h — how long each step of a program takes, beside what the machine could do in that time.
#pragma once

#include "compiler/compile.h"
#include "report/ceilings.h"
#include "verify/listener.h"

namespace tenon {

// What the time of a step goes into.
enum class Bound : uint8_t {
  Compute,   // operations, at the rate of registers
  Memory,    // bytes, at the rate of the level they come from
  Overhead,  // starting the step and its threads, for it does little
  Code,      // none of these: its loops are slow, being short or strided, say, or it runs on the host
};
std::string_view name(Bound bound);

// Of a step whose operations and bytes need so many seconds at least, whose fastest run took so many, and
// whose threads take `dispatch` seconds to start.
Bound bound_of(double computing, double moving, double fastest, double dispatch);

// A step of a program, or a whole run of it.
struct MeasuredStep {
  enum class Kind : uint8_t { Kernel, Host, View, Copy };  // Copy: between the host and a device

  Kind kind = Kind::View;
  std::string name;                                  // kernel3, or the op that runs on the host
  bool is_tuned = false;                             // computed as was chosen by measuring
  std::vector<std::string> sources = {};             // nodes of the model
  std::vector<std::string> reads = {}, writes = {};  // types
  // Where they are known. Operations are what the formulas hold, bytes the sizes of what is read and written.
  std::optional<double> flops = {}, bytes = {};
  double constant_bytes = 0;         // part of these that every run reads anew
  std::vector<double> seconds = {};  // of each run; of a kernel on a GPU, by the clock of that
  std::vector<runtime::RegionLaunch> launches = {};  // of a kernel on a GPU

  double typical = 0;               // seconds, the mean over the typical runs
  double at_least = 0;              // seconds that the machine needs for its operations and bytes
  std::optional<Bound> bound = {};  // where operations or bytes are known

  double ceiling() const { return at_least / typical; }  // part of the time that the machine needs
};

struct Measurement {
  int threads = 1;
  std::optional<Gpu> gpu = {};  // that kernels ran on
  Bindings sizes;               // what symbols stood for, also those of dynamic sizes
  Ceilings ceilings;
  std::vector<double> before_steps;  // seconds of each run that passed before its first step
  std::vector<MeasuredStep> steps;   // one for each of the program's
  MeasuredStep whole;

  size_t runs() const { return whole.seconds.size(); }
  // The middle half of the runs, from the fastest to the slowest. Means over them are as steady as medians,
  // and those of the parts of a run add up to that of the whole.
  std::vector<size_t> typical_runs() const;
  // The run that took as long as half of them do.
  size_t median_run() const;
  // Typical seconds in which no step ran but views: inputs are checked, memory is allocated and outputs are
  // handed over.
  double outside_steps() const;
  // Typical seconds of all steps of a kind.
  double seconds_of(MeasuredStep::Kind kind) const;
  // Part of the threads that a multiprocessor can have, which it has of these at once.
  double occupancy(const runtime::RegionLaunch& launch) const;
};

struct MeasureOptions {
  int threads = 1;
  double seconds = 2;  // for as many runs as that allows, 5 at least and 100,000 at most
  Listener listener = {};
};

Measurement measure(const runtime::Executor& executor, const compiler::FusionReport& fusion,
                    const Data& inputs, const Target& target, const MeasureOptions& options);

}  // namespace tenon
