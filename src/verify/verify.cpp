#include "verify/verify.h"

#include "verify/checks.h"
#include "verify/hint_at_inputs.h"
#include "verify/rewrite_checks.h"
#include "verify/small_sizes.h"

namespace tenon {
namespace {

constexpr std::string_view kEverything = "everything";
constexpr std::string_view kNotAsked = "not compared: they were not asked for";
// How many numbers it computes in one run; those of nested graphs as if they ran once.
int64_t count_computed_numbers(const Graph& graph) {
  int64_t count = 0;
  for (const Node* node : graph.nodes()) {
    for (Value result : node->results())
      if (result.type().is_tensor() && result.shape().ranked())
        count += element_count(result.shape().extents().value_or(Extents{}));
    for (const auto& region : node->regions())
      count += count_computed_numbers(*region);
  }
  return count;
}

// How many passes change something.
int64_t count_changing_passes(const Graph& graph, const VerifyOptions& options) {
  int64_t count = 0;
  Journal journal(options.numerics);
  optimize(*graph.clone(), journal,
           {.pipeline = options.pipeline, .after_pass = [&](const Pass&, const Graph&) { ++count; }});
  return count;
}

// Runs `work`, which runs a graph that nothing broke: where it fails, the inputs are not what it takes.
template <class Work>
decltype(auto) run_unbroken(const VerifyOptions& options, Work&& work) {
  return options.inputs ? work() : hint_at_inputs("are drawn", "", work);
}

PassVerification verify_unbroken(const Graph& before, const Graph& after, const VerifyOptions& options) {
  return run_unbroken(options, [&] { return verify_graphs(before, after, options); });
}

// The same as verify_graphs, but a graph that an earlier pass broke need not run.
PassVerification verify_after_broken(const Graph& before, const Graph& after, const VerifyOptions& options) {
  try {
    return verify_graphs(before, after, options);
  } catch (const UserError& error) {
    const Check unknown = {.detail =
                               fmt::format("not compared: what stood there cannot be run: {}", error.what())};
    return {.pass = "",
            .numbers = unknown,
            .gradients = unknown,
            .lint = check_lint(after),
            .parameters = check_parameters(before, after)};
  }
}

std::vector<PassVerification> verify_pass_by_pass(const Graph& first, const VerifyOptions& options) {
  begin(options.listener, "checking pass", count_changing_passes(first, options) + 1);
  const std::unique_ptr<Graph> graph = first.clone();
  std::unique_ptr<Graph> before = first.clone();
  std::vector<PassVerification> results;
  Journal journal(options.numerics);
  int64_t applications = 0;
  const auto after_pass = [&](const Pass& pass, const Graph& after) {
    step(options.listener, pass.name);
    const bool is_broken = std::ranges::any_of(results, &PassVerification::failed);
    PassVerification result = (is_broken ? verify_after_broken : verify_unbroken)(*before, after, options);
    result.pass = pass.name;
    result.changes = journal.count() - applications;
    applications = journal.count();
    results.push_back(std::move(result));
    before = after.clone();
  };
  optimize(*graph, journal, {.pipeline = options.pipeline, .after_pass = after_pass});
  step(options.listener, kEverything);
  PassVerification all = verify_unbroken(first, *graph, options);
  all.pass = kEverything;
  all.changes = journal.count();
  results.push_back(std::move(all));
  return results;
}

int64_t count_rewrites(const Graph& graph, const VerifyOptions& options) {
  Journal journal(options.numerics);
  optimize(*graph.clone(), journal, {.pipeline = options.pipeline});
  return journal.count();
}

// One run before, one after, and each rewrite by itself.
class LargeVerification {
 public:
  LargeVerification(const Graph& model, const VerifyOptions& options)
      : options_(options),
        model_(model.clone()),
        graph_(model.clone()),
        journal_(options.numerics),
        read_first_(count_held_numbers(model, SharedNumbers::CountForEachReader)) {}

  std::vector<PassVerification> run() {
    RecordedValues recorded = run_unbroken(options_, [&] { return record(); });
    Data expected;
    for (Value output : graph_->outputs())
      expected.push_back(recorded.at(output.data()));
    begin(options_.listener, "checking rewrite", count_rewrites(*graph_, options_));
    const std::vector<RewriteCheck> checks = check_rewrites(
        *graph_, std::move(recorded), journal_, [&] { rewrite(); },
        {.tolerance = options_.tolerance,
         .before_check = [&](const Application& application) { step(options_.listener, application.rule); }});
    size_t done = 0;
    for (PassVerification& result : results_) {
      const auto changes = static_cast<size_t>(result.changes);
      result.numbers = join_checks(std::span(checks).subspan(done, changes));
      done += changes;
    }
    add(kEverything, journal_.count(), *graph_, read_first_);
    results_.back().numbers = compare_whole({inputs_, std::move(expected)});
    if (options_.gradients == GradientChecks::Always)
      results_.back().gradients = compare_whole_gradients();
    return std::move(results_);
  }

 private:
  // What flows through the graph on the inputs given, or on a draw.
  RecordedValues record() {
    const auto run = [&](const Data& inputs) {
      inputs_ = inputs;
      return record_values(*graph_, inputs_, heard_by(options_.listener, "running node", *graph_));
    };
    std::mt19937_64 random(options_.seed);
    return options_.inputs ? run(*options_.inputs) : run_on_random_inputs(*graph_, random, {}, run);
  }

  // On the sample that was recorded, or, where that proves nothing, on others.
  Check compare_whole(Sample sample) {
    std::mt19937_64 random(options_.seed);
    for (size_t draw = 1;; ++draw) {
      Check check;
      const std::optional<Data> actual = run_rewritten(
          *graph_, sample.inputs, check, heard_by(options_.listener, "running optimised node", *graph_));
      if (!actual)
        return check;
      check = compare_with_sample(*model_, sample, *actual, options_);
      if (check.unsteady.empty() || check.verdict == Verdict::Failed || options_.inputs ||
          draw == spreads().size())
        return check;
      sample = run_on_random_inputs(*model_, random, spreads()[draw], [&](const Data& inputs) {
        return Sample{inputs,
                      evaluate(*model_, inputs, heard_by(options_.listener, "running node", *model_))};
      });
    }
  }

  Check compare_whole_gradients() {
    begin(options_.listener, "comparing gradients", 1);
    step(options_.listener, kEverything);
    return check_gradients(*model_, *graph_, options_);
  }

  void rewrite() {
    int64_t done = 0, read = read_first_;
    optimize(*graph_, journal_,
             {.pipeline = options_.pipeline, .after_pass = [&](const Pass& pass, const Graph& after) {
                add(pass.name, journal_.count() - std::exchange(done, journal_.count()), after, read);
                read = count_held_numbers(after, SharedNumbers::CountForEachReader);
              }});
  }

  void add(std::string_view pass, int64_t changes, const Graph& after, int64_t read_before) {
    results_.push_back({.pass = std::string(pass),
                        .changes = changes,
                        .numbers = {},
                        .gradients = {.detail = why_no_gradients()},
                        .lint = check_lint(after),
                        .parameters = compare_held_numbers(read_before, after)});
  }

  std::string why_no_gradients() const {
    switch (options_.gradients) {
      case GradientChecks::Auto:
        return "not compared: the model is large; --gradients always compares those of the whole";
      case GradientChecks::Always:
        return "not compared: the model is large, so that only those of the whole are";
      case GradientChecks::Never:
        return std::string(kNotAsked);
    }
    return "";
  }

  const VerifyOptions& options_;
  std::unique_ptr<Graph> model_, graph_;  // before and after
  Journal journal_;
  int64_t read_first_;  // numbers, before it was rewritten
  Data inputs_;
  std::vector<PassVerification> results_;
};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Passed:
      return "ok";
    case Verdict::Failed:
      return "FAILED";
    case Verdict::Unknown:
      return "unknown";
    case Verdict::NoGradient:
      return "no gradient";
    case Verdict::DoesNotApply:
      return "-";
  }
  return "";
}

std::string_view name(Level level) {
  switch (level) {
    case Level::Portable:
      return "portable";
    case Level::Target:
      return "target";
    case Level::Lowered:
      return "lowered";
    case Level::Scheduled:
      return "kernels";
    case Level::Compiled:
      return "compiled";
  }
  return "";
}

bool is_large(const Graph& model) {
  return count_held_numbers(model) + count_computed_numbers(model) > kLargeModel;
}

bool PassVerification::failed() const {
  for (const Check* check : {&numbers, &gradients, &lint, &parameters})
    if (check->verdict == Verdict::Failed)
      return true;
  return false;
}

PassVerification verify_graphs(const Graph& before, const Graph& after, const VerifyOptions& options) {
  PassVerification result;
  result.lint = check_lint(after);
  if (result.lint.verdict == Verdict::Failed) {
    for (Check* check : {&result.numbers, &result.gradients, &result.parameters})
      check->detail = "not compared: the graph is not well formed";
    return result;
  }
  result.numbers = check_numbers(before, after, options);
  result.gradients = options.gradients == GradientChecks::Never ? Check{.detail = std::string(kNotAsked)}
                                                                : check_gradients(before, after, options);
  result.parameters = check_parameters(before, after);
  return result;
}

PassVerification verify_pass(const Graph& model, const Pass& pass, const VerifyOptions& options) {
  const std::unique_ptr<Graph> before = with_small_sizes(model), after = before->clone();
  Journal journal(options.numerics);
  journal.set_pass(pass.name);
  pass.run(*after, journal);
  PassVerification result = verify_graphs(*before, *after, options);
  result.pass = pass.name;
  result.changes = journal.count();
  return result;
}

std::vector<PassVerification> verify_pipeline(const Graph& model, const VerifyOptions& options) {
  const std::unique_ptr<Graph> first =
      options.inputs ? with_sizes_of(model, *options.inputs) : with_small_sizes(model, options.listener);
  return is_large(*first) ? LargeVerification(*first, options).run() : verify_pass_by_pass(*first, options);
}

}  // namespace tenon
