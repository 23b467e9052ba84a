#include "verify/verify.h"

#include "autodiff/gradient.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "verify/compare.h"
#include "verify/random_inputs.h"

namespace tenon {
namespace {

// Elements of parameters and constants above which passes are not checked one by one.
constexpr int64_t kLargeModel = 20'000'000;

// Values that are all below this prove nothing.
constexpr double kNearlyZero = 1e-3;

// The numbers in parameters and constants; single ones, such as an epsilon, are no weights.
int64_t weight_elements(const Graph& graph) {
  int64_t count = 0;
  for (const Node* node : graph.nodes()) {
    if (node->is("constant") || node->is("parameter")) {
      const Literal& literal = node->attr("value");
      const bool is_lazy = std::holds_alternative<Literal::Splat>(literal.form()) ||
                           std::holds_alternative<Literal::Iota>(literal.form());
      count += is_lazy || !is_float(literal.dtype()) || literal.count() == 1 ? 0 : literal.count();
    }
    for (const auto& region : node->regions())
      count += weight_elements(*region);
  }
  return count;
}

// Adds one comparison to what is known.
void add(Check& check, const std::string& name, const Datum& actual, const Datum& expected,
         double tolerance) {
  if (!std::holds_alternative<Tensor>(expected)) {
    const std::string mismatch = first_mismatch(actual, expected, tolerance, 0);
    if (!mismatch.empty())
      check = {Verdict::Failed, check.error, name + ": " + mismatch};
    return;
  }
  const Comparison comparison = compare(actual.tensor(), expected.tensor(), tolerance);
  // Sums that cancel: what is left of either is rounding.
  if (comparison.proves_nothing && comparison.worst_error <= tolerance * kNearlyZero)
    return;
  if (comparison.scale > 0)
    check.error = std::max(check.error, comparison.worst_error / comparison.scale);
  if (!comparison.agree)
    check = {Verdict::Failed, check.error, name + ": " + comparison.detail};
  else if (check.verdict == Verdict::Unknown && !comparison.proves_nothing)
    check.verdict = Verdict::Passed;
}

double tolerance_of(const VerifyOptions& options) {
  return options.numerics == NumericsBudget::Strict ? 0 : options.tolerance;
}

Check check_numbers(const Graph& before, const Graph& after, const VerifyOptions& options) {
  Check check;
  RandomGenerator random(options.seed);
  for (int64_t sample = 0; sample < options.samples && check.verdict != Verdict::Failed; ++sample) {
    const Data inputs = random_inputs(before, random);
    const Data expected = evaluate(before, inputs), actual = evaluate(after, inputs);
    for (size_t i = 0; i < expected.size(); ++i)
      add(check, before.output_names()[i], actual[i], expected[i], tolerance_of(options));
  }
  if (check.verdict == Verdict::Unknown)
    check.detail = "all outputs are nearly zero, so that agreeing proves nothing";
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
      if (const auto it = actual.find(name); name.starts_with("grad_") && it != actual.end())
        add(check, name, it->second, datum, tolerance_of(options));
    if (check.verdict == Verdict::Unknown)
      check.detail = "there are no gradients that are not nearly zero";
    return check;
  } catch (const UserError& error) {
    return {Verdict::Unknown, 0, error.what()};
  }
}

Check check_lint(const Graph& graph) {
  const std::vector<std::string> problems = lint(graph);
  return problems.empty() ? Check{Verdict::Passed, 0, ""} : Check{Verdict::Failed, 0, problems.front()};
}

Check check_parameters(const Graph& before, const Graph& after) {
  const int64_t was = weight_elements(before), is = weight_elements(after);
  return {is <= was ? Verdict::Passed : Verdict::Failed, 0,
          is <= was ? "" : fmt::format("{} numbers became {}", was, is)};
}

}  // namespace

Check compare_all(const Data& actual, const Data& expected, const std::vector<std::string>& names,
                  const VerifyOptions& options) {
  Check check;
  for (size_t i = 0; i < expected.size(); ++i)
    add(check, names[i], actual[i], expected[i], tolerance_of(options));
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
  result.changes = static_cast<int64_t>(journal.applications().size());
  return result;
}

std::vector<PassVerification> verify_pipeline(const Graph& model, const VerifyOptions& options) {
  const std::unique_ptr<Graph> first = with_small_sizes(model), graph = first->clone();
  std::unique_ptr<Graph> before = first->clone();
  std::vector<PassVerification> results;
  Journal journal(options.numerics);
  const bool is_large = weight_elements(*first) > kLargeModel;
  size_t applications = 0;
  const auto record = [&](PassVerification result, std::string_view pass) {
    result.pass = pass;
    result.changes = static_cast<int64_t>(journal.applications().size() - applications);
    applications = journal.applications().size();
    results.push_back(std::move(result));
  };
  const auto after_pass = [&](const Pass& pass, const Graph& after) {
    if (is_large)
      return;
    if (options.before_pass)
      options.before_pass(pass.name);
    record(verify_graphs(*before, after, options), pass.name);
    before = after.clone();
  };
  optimize(*graph, journal, {.pipeline = options.pipeline, .after_pass = after_pass});
  if (options.before_pass)
    options.before_pass("everything");
  VerifyOptions all = options;
  if (is_large)
    all.samples = 1;
  applications = 0;
  record(verify_graphs(*first, *graph, all), "everything");
  return results;
}

}  // namespace tenon
