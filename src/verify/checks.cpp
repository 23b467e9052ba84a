#include "verify/checks.h"

#include <cmath>

#include "autodiff/gradient.h"
#include "ir/lint.h"
#include "tensor/wide.h"
#include "verify/compare.h"
#include "verify/conditioning.h"
#include "verify/rewrite_checks.h"
#include "verify/tolerances.h"

namespace tenon {
namespace {

constexpr std::string_view kProvesNothing = "all outputs are nearly zero, so that agreeing proves nothing";

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end())
    names.push_back(name);
}

// What one comparison said, of the value of that name.
Check of(const std::string& name, Check one) {
  for (const auto names : {&Check::nearly_zero, &Check::rounding, &Check::unsteady, &Check::was_nan})
    for (std::string& each : one.*names)
      each = name;
  if (one.verdict == Verdict::Failed)
    one.detail = name + ": " + one.detail;
  return one;
}

// Adds what another comparison said. The last that failed is told of.
void add(Check& check, const Check& one) {
  check.error = std::max(check.error, one.error);
  for (const auto names : {&Check::nearly_zero, &Check::rounding, &Check::unsteady, &Check::was_nan})
    for (const std::string& name : one.*names)
      add_once(check.*names, name);
  if (one.verdict == Verdict::Failed ||
      (one.verdict == Verdict::Passed && check.verdict == Verdict::Unknown)) {
    check.verdict = one.verdict;
    check.detail = one.detail;
  } else if (check.verdict == Verdict::Unknown) {
    check.detail = one.detail;
  }
}

// Where all that was compared proved nothing, `nearly_zero` says so if that is why.
void say_why_unknown(Check& check, std::string_view nearly_zero) {
  if (check.verdict == Verdict::Unknown && check.unsteady.empty())
    check.detail = nearly_zero;
}

// Unknown where both are nearly zero: sums that cancel, say, of which rounding is left.
Check compare_within(double tolerance, const Datum& actual, const Datum& expected) {
  if (!std::holds_alternative<Tensor>(expected)) {
    const std::string mismatch = first_mismatch(actual, expected, tolerance, 0);
    return {.verdict = mismatch.empty() ? Verdict::Passed : Verdict::Failed, .detail = mismatch};
  }
  const Comparison comparison = compare(actual.tensor(), expected.tensor(), tolerance);
  if (comparison.proves_nothing && comparison.worst_error < kNearlyZero && tolerance > 0)
    return {.nearly_zero = {""}};
  return {.verdict = comparison.agree ? Verdict::Passed : Verdict::Failed,
          .error = comparison.scale > 0 ? comparison.worst_error / comparison.scale : 0,
          .detail = comparison.detail};
}

// The same with NaN again where there was NaN: what overflowed, or a query whose keys are all masked, may
// have become a number. `was_nan` is set if so.
Datum with_nan_again(const Datum& actual, const Datum& expected, bool& was_nan) {
  const Tensor *a = std::get_if<Tensor>(&actual), *b = std::get_if<Tensor>(&expected);
  if (a == nullptr || b == nullptr || a->dtype() != b->dtype() || a->extents() != b->extents() ||
      !is_float(b->dtype()))
    return actual;
  std::vector<double> numbers = widen<double>(*a);
  const std::vector<double> wanted = widen<double>(*b);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (std::isnan(wanted[i]) && std::isfinite(numbers[i])) {
      numbers[i] = wanted[i];
      was_nan = true;
    }
  return was_nan ? Datum(narrow<double>(a->dtype(), a->extents(), numbers)) : actual;
}

// Compares what graphs give for inputs with what `model` does, by what that makes of rounding.
class Judge {
 public:
  Judge(const Graph& model, const Data& inputs, double tolerance)
      : model_(model), inputs_(inputs), tolerances_(tolerances_of(model, tolerance)) {}

  Check compare(size_t output, const Datum& actual, const Datum& expected) {
    bool was_nan = false;
    const Datum comparable = with_nan_again(actual, expected, was_nan);
    Check check = compare_within(tolerances_[output], comparable, expected);
    if (check.verdict == Verdict::Failed)
      excuse(check, output, comparable, expected);
    if (was_nan && check.verdict != Verdict::Failed)
      check.was_nan = {""};
    return check;
  }

 private:
  void excuse(Check& check, size_t output, const Datum& actual, const Datum& expected) {
    if (!nudged_)
      nudged_ = run_nudged(model_, inputs_);
    std::vector<Datum> runs;
    for (const Data& run : *nudged_)
      runs.push_back(run[output]);
    switch (explain(actual, expected, runs, tolerances_[output])) {
      case Explanation::None:
        return;
      case Explanation::Rounding:
        check = {.verdict = Verdict::Passed, .error = check.error, .rounding = {""}};
        return;
      case Explanation::Unsteady:
        check = {.unsteady = {""}};
        return;
    }
  }

  const Graph& model_;
  const Data& inputs_;
  std::vector<double> tolerances_;
  std::optional<std::vector<Data>> nudged_;
};

template <class T>
std::map<std::string, T> by_name(const Graph& graph, const std::vector<T>& outputs) {
  std::map<std::string, T> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace(graph.output_names()[i], outputs[i]);
  return named;
}

// Inputs and seeds for a model with its gradients, and what it gives for them. Nothing where there is none:
// the size of an output is only known when it has run, say, so that no seed can be drawn; `problem` tells.
std::optional<Sample> gradient_sample(const Graph& graph, std::mt19937_64& random,
                                      const VerifyOptions& options, std::string& problem) {
  try {
    if (!options.inputs)
      return seeing_sample(graph, random);
    Sample sample{random_inputs(graph, random), {}};  // the seeds of the gradients follow the inputs
    std::ranges::copy(*options.inputs, sample.inputs.begin());
    sample.outputs = evaluate(graph, sample.inputs);
    return sample;
  } catch (const UserError& error) {
    problem = error.what();
    return std::nullopt;
  }
}

// What two graphs with their gradients give for one sample.
Check compare_gradients(const Graph& was, const Graph& is, const Sample& sample,
                        const VerifyOptions& options) {
  Check check;
  const std::optional<Data> outputs = run_rewritten(is, sample.inputs, check);
  if (!outputs)
    return check;
  const std::map<std::string, Datum> actual = by_name(is, *outputs);
  Judge judge(was, sample.inputs, options.tolerance);
  for (size_t i = 0; i < sample.outputs.size(); ++i) {
    const std::string& name = was.output_names()[i];
    if (const auto it = actual.find(name); it == actual.end())
      add_once(check.missing, name);
    else if (name.starts_with("grad_"))
      add(check, of(name, judge.compare(i, it->second, sample.outputs[i])));
  }
  return check;
}

}  // namespace

std::optional<Data> run_rewritten(const Graph& graph, const Data& inputs, Check& check,
                                  const EvaluateOptions& options) {
  try {
    return evaluate(graph, inputs, options);
  } catch (const UserError& error) {
    check = {.verdict = Verdict::Failed, .detail = fmt::format("it no longer runs: {}", error.what())};
    return std::nullopt;
  }
}

Check compare_all(const Graph& model, const Data& actual, const Data& expected,
                  const VerifyOptions& options) {
  const std::vector<double> tolerances = tolerances_of(model, options.tolerance);
  Check check;
  for (size_t i = 0; i < expected.size(); ++i)
    add(check,
        of(model.output_names()[i], options.numerics == NumericsBudget::Strict
                                        ? compare_by_class(actual[i], expected[i], Numerics::BitExact, 0)
                                        : compare_within(tolerances[i], actual[i], expected[i])));
  say_why_unknown(check, kProvesNothing);
  return check;
}

Check compare_with_sample(const Graph& model, const Sample& sample, const Data& actual,
                          const VerifyOptions& options) {
  // Gradients are sums, whose order may change even under strict numerics; outputs keep their bits.
  if (options.numerics == NumericsBudget::Strict)
    return compare_all(model, actual, sample.outputs, options);
  Check check;
  Judge judge(model, sample.inputs, options.tolerance);
  for (size_t i = 0; i < sample.outputs.size(); ++i)
    add(check, of(model.output_names()[i], judge.compare(i, actual[i], sample.outputs[i])));
  say_why_unknown(check, kProvesNothing);
  return check;
}

Check check_numbers(const Graph& before, const Graph& after, const VerifyOptions& options) {
  Check check;
  std::mt19937_64 random(options.seed);
  const int64_t samples = options.inputs ? 1 : options.samples;
  for (int64_t drawn = 0; drawn < samples && check.verdict != Verdict::Failed; ++drawn) {
    const Sample sample = options.inputs ? Sample{*options.inputs, evaluate(before, *options.inputs)}
                                         : telling_sample(before, random);
    const std::optional<Data> actual = run_rewritten(after, sample.inputs, check);
    if (actual)
      add(check, compare_with_sample(before, sample, *actual, options));
  }
  return check;
}

Check check_gradients(const Graph& before, const Graph& after, const VerifyOptions& options) {
  try {
    const std::unique_ptr<Graph> was = differentiate(before), is = differentiate(after);
    std::mt19937_64 random(options.seed);
    std::string problem;
    const std::optional<Sample> sample = gradient_sample(*was, random, options, problem);
    if (!sample)
      return {.detail = "not compared: " + problem};
    Check check = compare_gradients(*was, *is, *sample, options);
    if (check.verdict == Verdict::Unknown && check.nearly_zero.empty() && check.unsteady.empty())
      return {.verdict = Verdict::NoGradient,
              .detail = "no output depends smoothly on an input or a parameter that is still there",
              .missing = std::move(check.missing)};
    say_why_unknown(check, "all gradients are nearly zero, so that agreeing proves nothing");
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

Check check_parameters(const Graph& before, const Graph& after) {
  return compare_held_numbers(count_held_numbers(before, SharedNumbers::CountForEachReader), after);
}

Check compare_held_numbers(int64_t read_before, const Graph& after) {
  const int64_t held = count_held_numbers(after);
  return held <= read_before ? Check{.verdict = Verdict::Passed}
                             : Check{.verdict = Verdict::Failed,
                                     .detail = fmt::format("{} numbers became {}", read_before, held)};
}

}  // namespace tenon
