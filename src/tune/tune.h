// tune.h — which way to compute the contractions of a model is the fastest, by measuring.
//
// A program is compiled with other choices for many contractions at once, and run in turn with the one
// that there is. What looks faster runs again in the end, all of it at once, and is adopted where it is.
#pragma once

#include "compiler/tuned_choices.h"
#include "tune/entrant.h"

namespace tenon {

struct TuneOptions {
  compiler::CompileContext compile;  // with the number of threads
  double seconds = 60;               // for all of it, about, but the first compilation
  // Told what is being done, and how many seconds are left.
  std::function<void(std::string_view what, double left)> progress = nullptr;
};

struct TunedContraction {
  lowering::ContractionKey key = 0;
  std::vector<std::string> sources;              // nodes of the user's model
  int64_t tried = 0;                             // other choices
  lowering::ContractionChoice before, after;     // in full; the same where nothing was adopted
  double seconds_before = 0, seconds_after = 0;  // of all its steps, each in its fastest run

  bool is_adopted() const { return before != after; }
  double speed_up() const { return seconds_before / seconds_after; }
};

// One with which outputs differ.
struct DroppedChoice {
  std::vector<std::string> sources;    // nodes of the user's model
  lowering::ContractionChoice choice;  // as it was asked for
  std::string difference;              // for people
};

struct TuneResult {
  std::vector<TunedContraction> contractions;    // those that take longest first
  double seconds_before = 0, seconds_after = 0;  // of all steps, each in its fastest run
  int64_t programs = 0;                          // that were compared with the one that there was
  size_t runs = 0;                               // of the last comparison
  std::vector<DroppedChoice> dropped;
  int64_t unconfirmed = 0;  // choices that looked faster when time ran out

  compiler::TunedChoices adopted() const;
};

// The graph is optimised. What its contractions are now is what the options choose, or else what was adopted
// before. Throws InternalError where numerics are strict and a program gives other results.
TuneResult tune(const Graph& graph, const Data& inputs, const TuneOptions& options);

}  // namespace tenon
