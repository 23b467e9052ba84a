#include "verify/verify.h"

#include "autodiff/gradient.h"
#include "ir/lint.h"
#include "verify/compare.h"
#include "verify/random_inputs.h"
#include "verify/rewrite_checks.h"

namespace tenon {
namespace {

constexpr std::string_view kEverything = "everything";
constexpr std::string_view kProvesNothing = "all outputs are nearly zero, so that agreeing proves nothing";

// Values that are all below this prove nothing.
constexpr double kNearlyZero = 1e-3;

// Adds one comparison to what is known.
void add(Check& check, const std::string& name, const Datum& actual, const Datum& expected,
         double tolerance) {
  const auto fail = [&](const std::string& detail) {
    check.verdict = Verdict::Failed;
    check.detail = name + ": " + detail;
  };
  if (!std::holds_alternative<Tensor>(expected)) {
    if (const std::string mismatch = first_mismatch(actual, expected, tolerance, 0); !mismatch.empty())
      fail(mismatch);
    else if (check.verdict == Verdict::Unknown)
      check.verdict = Verdict::Passed;
    return;
  }
  const Comparison comparison = compare(actual.tensor(), expected.tensor(), tolerance);
  // Sums that cancel, say: what is left of either is rounding.
  if (comparison.proves_nothing && comparison.worst_error < kNearlyZero && tolerance > 0) {
    if (std::ranges::find(check.nearly_zero, name) == check.nearly_zero.end())
      check.nearly_zero.push_back(name);
    return;
  }
  if (comparison.scale > 0)
    check.error = std::max(check.error, comparison.worst_error / comparison.scale);
  if (!comparison.agree)
    fail(comparison.detail);
  else if (check.verdict == Verdict::Unknown)
    check.verdict = Verdict::Passed;
}

// Under strict numerics the outputs keep their bits. Gradients are sums, whose order may change.
double tolerance_of_outputs(const VerifyOptions& options) {
  return options.numerics == NumericsBudget::Strict ? 0 : options.tolerance;
}

Check check_numbers(const Graph& before, const Graph& after, const VerifyOptions& options) {
  Check check;
  RandomGenerator random(options.seed);
  for (int64_t sample = 0; sample < options.samples && check.verdict != Verdict::Failed; ++sample) {
    const auto [inputs, expected] = telling_sample(before, random);
    const Data actual = evaluate(after, inputs);
    for (size_t i = 0; i < expected.size(); ++i)
      add(check, before.output_names()[i], actual[i], expected[i], tolerance_of_outputs(options));
  }
  if (check.verdict == Verdict::Unknown)
    check.detail = kProvesNothing;
  return check;
}

std::map<std::string, Datum> named_outputs(const Graph& graph, const Data& inputs) {
  const Data outputs = evaluate(graph, inputs);
  std::map<std::string, Datum> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace(graph.output_names()[i], outputs[i]);
  return named;
}

Check check_gradients(const Graph& before, const Graph& after, const VerifyOptions& options) {
  try {
    const std::unique_ptr<Graph> was = differentiate(before), is = differentiate(after);
    RandomGenerator random(options.seed);
    const Data inputs = random_inputs(*was, random);
    const std::map<std::string, Datum> expected = named_outputs(*was, inputs),
                                       actual = named_outputs(*is, inputs);
    Check check;
    for (const auto& [name, datum] : expected)
      if (const auto it = actual.find(name); it == actual.end())
        check.missing.push_back(name);
      else if (name.starts_with("grad_"))
        add(check, name, it->second, datum, options.tolerance);
    if (check.verdict == Verdict::Unknown && check.nearly_zero.empty())
      check.verdict = Verdict::NoGradient;
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

bool is_large(const Graph& graph) {
  return count_held_numbers(graph) + count_computed_numbers(graph) > kLargeModel;
}

// How many passes change something.
int64_t count_changing_passes(const Graph& graph, const VerifyOptions& options) {
  int64_t count = 0;
  Journal journal(options.numerics);
  optimize(*graph.clone(), journal,
           {.pipeline = options.pipeline, .after_pass = [&](const Pass&, const Graph&) { ++count; }});
  return count;
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
    PassVerification result = verify_graphs(*before, after, options);
    result.pass = pass.name;
    result.changes = journal.count() - applications;
    applications = journal.count();
    results.push_back(std::move(result));
    before = after.clone();
  };
  optimize(*graph, journal, {.pipeline = options.pipeline, .after_pass = after_pass});
  step(options.listener, kEverything);
  PassVerification all = verify_graphs(first, *graph, options);
  all.pass = kEverything;
  all.changes = journal.count();
  results.push_back(std::move(all));
  return results;
}

// What the rewrites of one pass say together.
Check joined(std::span<const RewriteCheck> rewrites) {
  Check check;
  for (const auto& [application, numbers] : rewrites) {
    check.error = std::max(check.error, numbers.error);
    const std::string rewrite = fmt::format("rewrite {} ({})", application.number, application.rule);
    if (numbers.verdict == Verdict::Failed && check.verdict != Verdict::Failed) {
      check.verdict = Verdict::Failed;
      check.detail = fmt::format("{}, {}, of {}: {}", rewrite, name(application.numerics),
                                 fmt::join(application.nodes, ", "), numbers.detail);
    } else if (numbers.verdict == Verdict::Passed && check.verdict == Verdict::Unknown) {
      check.verdict = Verdict::Passed;
    } else if (numbers.verdict == Verdict::Unknown) {
      check.nearly_zero.push_back(rewrite);
    }
  }
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
        graph_(model.clone()),
        journal_(options.numerics),
        held_first_(count_held_numbers(model)) {
    RandomGenerator random(options.seed);
    inputs_ = random_inputs(model, random);
  }

  std::vector<PassVerification> run() {
    RecordedValues recorded =
        record_values(*graph_, inputs_, heard_by(options_.listener, "running node", *graph_));
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
    const Data actual =
        evaluate(*graph_, inputs_, heard_by(options_.listener, "running optimised node", *graph_));
    add(kEverything, journal_.count(), *graph_, held_first_);
    results_.back().numbers = compare_all(actual, expected, graph_->output_names(), options_);
    return std::move(results_);
  }

 private:
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
  std::unique_ptr<Graph> graph_;
  Journal journal_;
  int64_t held_first_;  // numbers, before it was rewritten
  Data inputs_;
  std::vector<PassVerification> results_;
};

}  // namespace

Check compare_all(const Data& actual, const Data& expected, const std::vector<std::string>& names,
                  const VerifyOptions& options) {
  Check check;
  for (size_t i = 0; i < expected.size(); ++i)
    add(check, names[i], actual[i], expected[i], tolerance_of_outputs(options));
  if (check.verdict == Verdict::Unknown)
    check.detail = kProvesNothing;
  return check;
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
  if (result.lint.verdict == Verdict::Passed) {
    result.numbers = check_numbers(before, after, options);
    result.gradients = check_gradients(before, after, options);
  }
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
  const std::unique_ptr<Graph> first = with_small_sizes(model, options.listener);
  return is_large(*first) ? LargeVerification(*first, options).run() : verify_pass_by_pass(*first, options);
}

}  // namespace tenon
