#include "tune/tune.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "schedule/cpu/contraction_candidates.h"
#include "verify/verify.h"

namespace tenon {

using compiler::CompileContext;
using compiler::TunedChoice;
using compiler::TunedChoices;
using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::ContractionKey;
using lowering::Stage;
using runtime::Executor;
using runtime::RunOptions;
using schedule::choice_made;
using schedule::contraction_candidates;
using schedule::describe;

namespace {

constexpr double kLeastShare = 0.004;      // of a run: what takes less is not worth compiling anything for
constexpr double kWorthConfirming = 0.98;  // part of the time: what takes more will hardly be adopted
constexpr size_t kMostTried = 12;          // choices for one contraction
// Parts of the time there is: for measuring what there is, for looking, and for compiling one program there.
constexpr double kMeasuring = 0.03, kSearching = 0.7, kCompiling = 0.06;

using Clock = std::chrono::steady_clock;

struct OutOfTime {};

// What is known of one contraction while others are tried.
struct Candidate {
  TunedContraction known;
  Stage best_stage;
  double best = 1;                       // part of the time that the first takes
  std::set<ContractionChoice> seen;      // in full, or as asked for
  std::optional<ContractionChoice> now;  // tried in this round
};

class Tuner {
 public:
  Tuner(const Graph& graph, const Data& inputs, const TuneOptions& options)
      : graph_(graph), inputs_(inputs), options_(options), compile_(options.compile) {}

  TuneResult run() && {
    compile_.before_kernel = [&](int64_t) { tell("compiling"); };
    first_ = compile_entrant(graph_, compile_);
    start_ = Clock::now();
    expected_ = first_.executor->run(inputs_, run_options());
    list_candidates();
    search();
    confirm();
    finish();
    return std::move(result_);
  }

 private:
  double spent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double left() const { return std::max(options_.seconds - spent(), 0.0); }
  RunOptions run_options() const { return {.threads = threads()}; }
  int threads() const { return compile_.threads == 0 ? compile_.target.cores : compile_.threads; }
  void tell(std::string_view what) const {
    if (options_.progress)
      options_.progress(what, start_ == Clock::time_point() ? options_.seconds : left());
  }

  // --- what there is to try ---

  void list_candidates() {
    measure_in_turn({&first_}, inputs_, threads(), kMeasuring * options_.seconds, [&] { tell("measuring"); });
    seconds_before_ = first_.timing().fastest;
    for (const auto& [key, contraction] : first_.contractions) {
      const ContractionChoice made = choice_made(contraction.stage, compile_.target);
      const double seconds = first_.timing_of(key).fastest;
      Candidate candidate{.known = {.key = key,
                                    .sources = contraction.sources,
                                    .tried = 0,
                                    .before = made,
                                    .after = made,
                                    .seconds_before = seconds,
                                    .seconds_after = seconds},
                          .best_stage = contraction.stage,
                          .seen = {made},
                          .now = {}};
      if (!contraction_candidates(contraction.stage, compile_.target).empty())
        candidates_.push_back(std::move(candidate));
    }
    std::ranges::stable_sort(candidates_, std::greater(),
                             [](const Candidate& each) { return each.known.seconds_before; });
  }

  // What may still be tried for a contraction: what is like its best so far.
  std::vector<ContractionChoice> choices_left(const Candidate& candidate) const {
    if (candidate.known.seconds_before < kLeastShare * seconds_before_)
      return {};
    std::vector<ContractionChoice> choices = contraction_candidates(candidate.best_stage, compile_.target);
    std::erase_if(choices, [&](const ContractionChoice& choice) { return candidate.seen.contains(choice); });
    choices.resize(std::min(choices.size(), kMostTried - static_cast<size_t>(candidate.known.tried)));
    return choices;
  }

  // --- looking ---

  // However little time there is, one program is compared.
  void search() {
    try {
      while (spent() < deadline_ && choose_next()) {
        compare_next();
        deadline_ = kSearching * options_.seconds;
      }
    } catch (const OutOfTime&) {
    }
  }

  // Those that take longest come first; as many as can be compiled in a part of the time.
  bool choose_next() {
    const double kernels = kCompiling * options_.seconds / seconds_per_kernel_;
    int64_t chosen = 0;
    rounds_left_ = 0;
    for (Candidate& candidate : candidates_) {
      const std::vector<ContractionChoice> choices = choices_left(candidate);
      rounds_left_ = std::max(rounds_left_, choices.size());
      candidate.now.reset();
      if (!choices.empty() && static_cast<double>(chosen) <= kernels) {
        candidate.now = choices.front();
        ++chosen;
      }
    }
    return chosen > 0;
  }

  // As long as leaves the same for each comparison that follows.
  double seconds_to_compare() const {
    const double searching = kSearching * options_.seconds - spent(),
                 compiling = seconds_per_kernel_ * static_cast<double>(chosen_now());
    const auto rounds = static_cast<double>(rounds_left_);
    return (searching - (rounds - 1) * compiling) / rounds;
  }

  int64_t chosen_now() const {
    return std::ranges::count_if(candidates_,
                                 [](const Candidate& candidate) { return candidate.now.has_value(); });
  }
  ContractionChoices choices_now() const {
    ContractionChoices choices = compile_.tuning;
    for (const Candidate& candidate : candidates_)
      if (candidate.now)
        choices.insert_or_assign(candidate.known.key, *candidate.now);
    return choices;
  }

  void compare_next() {
    const double start = spent();
    std::optional<Entrant> second = compile_now();
    seconds_per_kernel_ = (spent() - start) / static_cast<double>(chosen_now());
    drop_wrong(second);
    if (!second)
      return;
    measure_in_turn({&first_, &*second}, inputs_, threads(), seconds_to_compare(),
                    [&] { tell(fmt::format("comparing program {}", result_.programs)); });
    for (Candidate& candidate : candidates_)
      if (candidate.now)
        note(candidate, *second);
  }

  static void note_tried(Candidate& candidate) {
    if (candidate.seen.insert(*candidate.now).second)
      ++candidate.known.tried;
  }

  void note(Candidate& candidate, const Entrant& second) const {
    note_tried(candidate);
    const ContractionKey key = candidate.known.key;
    const auto found = second.contractions.find(key);
    if (found == second.contractions.end())
      return;  // it became part of something else
    const TimedContraction& contraction = found->second;
    const ContractionChoice made = choice_made(contraction.stage, compile_.target);
    candidate.seen.insert(made);
    const double part = second.timing_of(key).fastest / first_.timing_of(key).fastest;
    if (part >= candidate.best)
      return;
    candidate.best = part;
    candidate.best_stage = contraction.stage;
    candidate.known.after = made;
  }

  // Kernels that were compiled before come from the cache.
  Entrant compile_now() {
    const auto check_time = [&] {
      if (spent() >= deadline_)
        throw OutOfTime();
    };
    check_time();
    CompileContext options = compile_;
    options.tuning = choices_now();
    options.before_kernel = [&](int64_t) {
      tell(fmt::format("compiling program {}", result_.programs + 1));
      check_time();
    };
    Entrant entrant = compile_entrant(graph_, options);
    ++result_.programs;
    return entrant;
  }

  // --- results ---

  std::optional<std::string> mismatch(const Executor& executor) const {
    const Check check =
        compare_all(graph_, executor.run(inputs_, run_options()), expected_, {.numerics = compile_.numerics});
    return check.verdict == Verdict::Failed ? std::optional(check.detail) : std::nullopt;
  }

  // Where outputs differ, choices are put in one after another, and those that make them differ are dropped;
  // then the program is one without them, or nothing where none is left. Choices may round differently, which
  // shows where outputs depend on it, as integers do that floats are cut to. Strict numerics leave no room
  // for that.
  void drop_wrong(std::optional<Entrant>& entrant) {
    if (!mismatch(*entrant->executor))
      return;
    entrant.reset();
    std::vector<std::optional<ContractionChoice>> all;
    for (Candidate& candidate : candidates_)
      all.push_back(std::exchange(candidate.now, std::nullopt));
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (!all[i])
        continue;
      candidates_[i].now = all[i];
      Entrant next = compile_now();
      if (const std::optional<std::string> difference = mismatch(*next.executor))
        drop(candidates_[i], *difference);
      else
        entrant = std::move(next);
    }
  }

  void drop(Candidate& candidate, const std::string& difference) {
    if (compile_.numerics == NumericsBudget::Strict)
      throw InternalError(fmt::format("{}, computed with {}, differs: {}", candidate.known.sources.front(),
                                      describe(*candidate.now), difference));
    note_tried(candidate);
    result_.dropped.push_back({candidate.known.sources, *candidate.now, difference});
    candidate.now.reset();
  }

  // --- what is adopted ---

  // What looked better runs again, all of it at once, and what is faster there is adopted. Where that is not
  // all of it, the rest must be so once more, without the others. What there is no time for is not adopted.
  void confirm() {
    for (Candidate& candidate : candidates_)
      candidate.now =
          candidate.best <= kWorthConfirming ? std::optional(candidate.known.after) : std::nullopt;
    deadline_ = options_.seconds;
    try {
      const int64_t all = chosen_now();
      if (all > 0)
        run_again(left() / 2);
      if (chosen_now() > 0 && chosen_now() < all)
        run_again(left());
    } catch (const OutOfTime&) {
      result_.unconfirmed = chosen_now();
      adopt_nothing();
    }
    // As where each is faster, but leaves less in the caches of what others need.
    if (is_slower_)
      adopt_nothing();
  }

  void adopt_nothing() {
    for (Candidate& candidate : candidates_)
      candidate.now.reset();
  }

  void run_again(double seconds) {
    std::optional<Entrant> winners = compile_now();
    drop_wrong(winners);
    if (!winners)
      return;
    measure_in_turn({&first_, &*winners}, inputs_, threads(), seconds,
                    [&] { tell("running the best again"); });
    result_.seconds_before = first_.timing().fastest;
    result_.seconds_after = winners->timing().fastest;
    result_.runs = winners->runs();
    is_slower_ = is_adopted(winners->timing(), first_.timing());
    keep_faster(*winners);
  }

  void keep_faster(const Entrant& winners) {
    for (Candidate& candidate : candidates_) {
      if (!candidate.now)
        continue;
      const ContractionKey key = candidate.known.key;
      const Timing before = first_.timing_of(key), after = winners.timing_of(key);
      candidate.known.seconds_before = before.fastest;
      candidate.known.seconds_after = after.fastest;
      if (!winners.contractions.contains(key) || !is_adopted(before, after))
        candidate.now.reset();
    }
  }

  void finish() {
    if (chosen_now() == 0) {
      result_.seconds_before = result_.seconds_after = first_.timing().fastest;
      result_.runs = first_.runs();
    }
    for (Candidate& candidate : candidates_) {
      if (!candidate.now) {
        candidate.known.after = candidate.known.before;
        candidate.known.seconds_after = candidate.known.seconds_before;
      }
      result_.contractions.push_back(std::move(candidate.known));
    }
  }

  const Graph& graph_;
  const Data& inputs_;
  const TuneOptions& options_;
  CompileContext compile_;
  Clock::time_point start_;
  Entrant first_;
  Data expected_;
  std::vector<Candidate> candidates_;
  double seconds_before_ = 0;  // of a run, when it was measured alone
  double seconds_per_kernel_ = 0.1;
  double deadline_ = std::numeric_limits<double>::infinity();  // in seconds since the start, for compiling
  bool is_slower_ = false;                                     // the whole of what was run again last
  size_t rounds_left_ = 0;  // at least, before there is nothing left to try
  TuneResult result_;
};

}  // namespace

TunedChoices TuneResult::adopted() const {
  TunedChoices choices;
  for (const TunedContraction& each : contractions)
    if (each.is_adopted())
      choices.emplace(each.key, TunedChoice{each.after, each.seconds_before, each.seconds_after});
  return choices;
}

TuneResult tune(const Graph& graph, const Data& inputs, const TuneOptions& options) {
  return Tuner(graph, inputs, options).run();
}

}  // namespace tenon
