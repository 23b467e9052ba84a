#include "verify/verify.h"

#include "autodiff/gradient.h"
#include "ir/lint.h"
#include "verify/compare.h"
#include "verify/hint_at_inputs.h"
#include "verify/random_inputs.h"
#include "verify/rewrite_checks.h"
#include "verify/tolerances.h"

namespace tenon {
namespace {

constexpr std::string_view kEverything = "everything";
constexpr std::string_view kProvesNothing = "all outputs are nearly zero, so that agreeing proves nothing";
constexpr std::string_view kUnsteady =
    "the model itself changes as much if its inputs change by a rounding step, so that comparing proves "
    "nothing";

// Adds what one comparison said of the value of that name.
void add(Check& check, const std::string& name, const Check& one) {
  check.error = std::max(check.error, one.error);
  if (one.verdict == Verdict::Failed) {
    check.verdict = Verdict::Failed;
    check.detail = name + ": " + one.detail;
  } else if (one.verdict == Verdict::Passed && check.verdict == Verdict::Unknown) {
    check.verdict = Verdict::Passed;
  } else if (one.verdict == Verdict::Unknown &&
             std::ranges::find(check.nearly_zero, name) == check.nearly_zero.end()) {
    check.nearly_zero.push_back(name);
  }
}

// Unknown where both are nearly zero: sums that cancel, say, of which rounding is left.
Check compare_within(double tolerance, const Datum& actual, const Datum& expected) {
  if (!std::holds_alternative<Tensor>(expected)) {
    const std::string mismatch = first_mismatch(actual, expected, tolerance, 0);
    return {.verdict = mismatch.empty() ? Verdict::Passed : Verdict::Failed, .detail = mismatch};
  }
  const Comparison comparison = compare(actual.tensor(), expected.tensor(), tolerance);
  if (comparison.proves_nothing && comparison.worst_error < kNearlyZero && tolerance > 0)
    return {};
  return {.verdict = comparison.agree ? Verdict::Passed : Verdict::Failed,
          .error = comparison.scale > 0 ? comparison.worst_error / comparison.scale : 0,
          .detail = comparison.detail};
}

// Under strict numerics the outputs keep their bits. Gradients are sums, whose order may change.
Check compare_outputs(double tolerance, const Datum& actual, const Datum& expected,
                      const VerifyOptions& options) {
  return options.numerics == NumericsBudget::Strict
             ? compare_by_class(actual, expected, Numerics::BitExact, 0)
             : compare_within(tolerance, actual, expected);
}

// Runs a graph that was rewritten. Where it cannot be run, the check has failed.
std::optional<Data> run_rewritten(const Graph& graph, const Data& inputs, Check& check,
                                  const EvaluateOptions& options = {}) {
  try {
    return evaluate(graph, inputs, options);
  } catch (const UserError& error) {
    check = {.verdict = Verdict::Failed, .detail = fmt::format("it no longer runs: {}", error.what())};
    return std::nullopt;
  }
}

Check check_numbers(const Graph& before, const Graph& after, const VerifyOptions& options) {
  Check check;
  RandomGenerator random(options.seed);
  const int64_t samples = options.inputs ? 1 : options.samples;
  const std::vector<double> tolerances = tolerances_of(before, options.tolerance);
  for (int64_t sample = 0; sample < samples && check.verdict != Verdict::Failed; ++sample) {
    const auto [inputs, expected] = options.inputs
                                        ? Sample{*options.inputs, evaluate(before, *options.inputs)}
                                        : telling_sample(before, random);
    const std::optional<Data> actual = run_rewritten(after, inputs, check);
    for (size_t i = 0; actual && i < expected.size(); ++i)
      add(check, before.output_names()[i],
          compare_outputs(tolerances[i], (*actual)[i], expected[i], options));
  }
  if (check.verdict == Verdict::Unknown)
    check.detail = kProvesNothing;
  return check;
}

template <class T>
std::map<std::string, T> by_name(const Graph& graph, const std::vector<T>& outputs) {
  std::map<std::string, T> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace(graph.output_names()[i], outputs[i]);
  return named;
}

// Inputs and seeds for a model with its gradients, and what it gives for them. Nothing where there is none:
// the size of an output is only known when it has run, say, so that no seed can be drawn; `problem` tells.
std::optional<Sample> gradient_sample(const Graph& graph, RandomGenerator& random,
                                      const VerifyOptions& options, std::string& problem) {
  try {
    Sample sample{random_inputs(graph, random), {}};
    if (options.inputs)  // the seeds of the gradients follow
      std::ranges::copy(*options.inputs, sample.inputs.begin());
    sample.outputs = evaluate(graph, sample.inputs);
    return sample;
  } catch (const UserError& error) {
    problem = error.what();
    return std::nullopt;
  }
}

Check check_gradients(const Graph& before, const Graph& after, const VerifyOptions& options) {
  try {
    const std::unique_ptr<Graph> was = differentiate(before), is = differentiate(after);
    RandomGenerator random(options.seed);
    std::string problem;
    const std::optional<Sample> sample = gradient_sample(*was, random, options, problem);
    if (!sample)
      return {.detail = "not compared: " + problem};
    const std::map<std::string, Datum> expected = by_name(*was, sample->outputs);
    Check check;
    const std::optional<Data> outputs = run_rewritten(*is, sample->inputs, check);
    if (!outputs)
      return check;
    const std::map<std::string, Datum> actual = by_name(*is, *outputs);
    const std::map<std::string, double> tolerances = by_name(*was, tolerances_of(*was, options.tolerance));
    for (const auto& [name, datum] : expected)
      if (const auto it = actual.find(name); it == actual.end())
        check.missing.push_back(name);
      else if (name.starts_with("grad_"))
        add(check, name, compare_within(tolerances.at(name), it->second, datum));
    if (check.verdict == Verdict::Unknown && check.nearly_zero.empty())
      return {.verdict = Verdict::NoGradient,
              .detail = "no output depends smoothly on an input or a parameter that is still there",
              .missing = std::move(check.missing)};
    if (check.verdict == Verdict::Unknown)
      check.detail = "all gradients are nearly zero, so that agreeing proves nothing";
    return check;
  } catch (const UnsupportedError& error) {
    return {.verdict = Verdict::NoGradient, .detail = error.what()};
  }
}

Check check_lint(const Graph& graph) {
  const std::vector<std::string> problems = lint(graph);
  return problems.empty() ? Check{.verdict = Verdict::Passed}
                          : Check{.verdict = Verdict::Failed, .detail = problems.front()};
}

Check compare_counts(int64_t was, int64_t is) {
  return is <= was
             ? Check{.verdict = Verdict::Passed}
             : Check{.verdict = Verdict::Failed, .detail = fmt::format("{} numbers became {}", was, is)};
}

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
            .parameters = compare_counts(count_held_numbers(before), count_held_numbers(after))};
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

// Adds what is known of one rewrite.
void add(Check& check, const RewriteCheck& one) {
  const auto& [application, numbers] = one;
  const std::string rewrite = fmt::format("rewrite {} ({})", application.number, application.rule);
  check.error = std::max(check.error, numbers.error);
  if (numbers.verdict == Verdict::Failed && check.verdict != Verdict::Failed) {
    check.verdict = Verdict::Failed;
    check.detail = fmt::format("{}, {}, of {}: {}", rewrite, name(application.numerics),
                               fmt::join(application.nodes, ", "), numbers.detail);
  } else if (numbers.verdict == Verdict::Passed && check.verdict == Verdict::Unknown) {
    check.verdict = Verdict::Passed;
  } else if (numbers.verdict == Verdict::Unknown && numbers.unchecked.empty()) {
    check.nearly_zero.push_back(rewrite);
  } else if (numbers.verdict == Verdict::Unknown) {
    check.unchecked.push_back(fmt::format("{}: {}", rewrite, fmt::join(numbers.unchecked, ", ")));
  }
}

// What the rewrites of one pass say together.
Check joined(std::span<const RewriteCheck> rewrites) {
  Check check;
  for (const RewriteCheck& one : rewrites)
    add(check, one);
  if (check.verdict == Verdict::Unknown)
    check.detail = rewrites.empty() ? "the pass told of no rewrite"
                                    : "no rewrite could be compared with what stood there";
  return check;
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
        held_first_(count_held_numbers(model)) {
    RandomGenerator random(options.seed);
    inputs_ = options.inputs ? *options.inputs
                             : run_unbroken(options, [&] { return random_inputs(model, random); });
  }

  std::vector<PassVerification> run() {
    RecordedValues recorded = run_unbroken(options_, [&] {
      return record_values(*graph_, inputs_, heard_by(options_.listener, "running node", *graph_));
    });
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
      result.numbers = joined(std::span(checks).subspan(done, changes));
      done += changes;
    }
    add(kEverything, journal_.count(), *graph_, held_first_);
    results_.back().numbers = compare_whole({inputs_, std::move(expected)});
    return std::move(results_);
  }

 private:
  // On the sample that was recorded, or, where rounding explains what differs there, on others.
  Check compare_whole(Sample sample) {
    RandomGenerator random(options_.seed);
    for (size_t draw = 1;; ++draw) {
      Check check;
      const std::optional<Data> actual = run_rewritten(
          *graph_, sample.inputs, check, heard_by(options_.listener, "running optimised node", *graph_));
      if (!actual)
        return check;
      check = compare_all(*model_, *actual, sample.outputs, options_);
      if (check.verdict != Verdict::Failed || options_.numerics == NumericsBudget::Strict ||
          !explained_by_rounding(*model_, sample, *actual, options_.tolerance))
        return check;
      if (options_.inputs || draw == spreads().size())
        return {.detail = std::string(kUnsteady)};
      sample.inputs = random_inputs(*model_, random, spreads()[draw]);
      sample.outputs = evaluate(*model_, sample.inputs, heard_by(options_.listener, "running node", *model_));
    }
  }

  void rewrite() {
    int64_t done = 0, held = held_first_;
    optimize(*graph_, journal_,
             {.pipeline = options_.pipeline, .after_pass = [&](const Pass& pass, const Graph& after) {
                add(pass.name, journal_.count() - std::exchange(done, journal_.count()), after, held);
                held = count_held_numbers(after);
              }});
  }

  void add(std::string_view pass, int64_t changes, const Graph& after, int64_t held_before) {
    results_.push_back(
        {.pass = std::string(pass),
         .changes = changes,
         .numbers = {},
         .gradients = {.detail =
                           "not compared: the model is large, so that each rewrite is checked by itself"},
         .lint = check_lint(after),
         .parameters = compare_counts(held_before, count_held_numbers(after))});
  }

  const VerifyOptions& options_;
  std::unique_ptr<Graph> model_, graph_;  // before and after
  Journal journal_;
  int64_t held_first_;  // numbers, before it was rewritten
  Data inputs_;
  std::vector<PassVerification> results_;
};

}  // namespace

Check compare_all(const Graph& model, const Data& actual, const Data& expected,
                  const VerifyOptions& options) {
  const std::vector<double> tolerances = tolerances_of(model, options.tolerance);
  Check check;
  for (size_t i = 0; i < expected.size(); ++i)
    add(check, model.output_names()[i], compare_outputs(tolerances[i], actual[i], expected[i], options));
  if (check.verdict == Verdict::Unknown)
    check.detail = kProvesNothing;
  return check;
}

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
  result.gradients = check_gradients(before, after, options);
  result.parameters = compare_counts(count_held_numbers(before), count_held_numbers(after));
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
