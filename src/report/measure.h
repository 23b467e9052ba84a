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
  Overhead,  // something else, for the most part: starting threads, waiting, code that runs on the host
};
std::string_view name(Bound bound);

// A step of a program, or a whole run of it.
struct MeasuredStep {
  enum class Kind : uint8_t { Kernel, Host, View };

  Kind kind = Kind::View;
  std::string name;                                  // kernel3, or the op that runs on the host
  std::vector<std::string> sources = {};             // nodes of the model
  std::vector<std::string> reads = {}, writes = {};  // types
  // Where they are known. Operations are what the formulas hold, bytes the sizes of what is read and written.
  std::optional<double> flops = {}, bytes = {};
  double constant_bytes = 0;         // part of these that every run reads anew
  std::vector<double> seconds = {};  // of each run

  double median = 0;                // in seconds
  double at_least = 0;              // seconds that the machine needs for its operations and bytes
  std::optional<Bound> bound = {};  // where operations or bytes are known

  double ceiling() const { return at_least / median; }  // part of the time that the machine needs
};

struct Measurement {
  int threads = 1;
  Bindings sizes;  // what symbols stood for, also those that only running tells
  Ceilings ceilings;
  std::vector<MeasuredStep> steps;  // one for each of the program's
  MeasuredStep whole;

  size_t runs() const { return whole.seconds.size(); }
  // The run that took as long as half of them do.
  size_t median_run() const;
};

struct MeasureOptions {
  int threads = 1;
  double seconds = 2;  // for as many runs as that allows, 5 at least and 100,000 at most
  Listener listener = {};
};

Measurement measure(const Program& program, const FusionReport& fusion, const Data& inputs,
                    const MeasureOptions& options);

}  // namespace tenon
