#include "verify/verify_compiled.h"

#include "compiler/compile.h"
#include "compiler/target_graph.h"
#include "tensor/rounding.h"
#include "verify/checks.h"
#include "verify/hint_at_inputs.h"
#include "verify/lowering_checks.h"
#include "verify/rewrite_checks.h"
#include "verify/small_sizes.h"
#include "verify/tolerances.h"

namespace tenon {

using compiler::CompileContext;
using compiler::TargetPipeline;

namespace {

constexpr std::string_view kProgram = "compiled program";
constexpr double kStrictTolerance = 1e-5;

PassVerification row(Level level, std::string_view pass, int64_t changes) {
  const Check none = {.verdict = Verdict::DoesNotApply};
  return {.pass = std::string(pass),
          .changes = changes,
          .numbers = {},
          .gradients = none,
          .lint = none,
          .parameters = none,
          .level = level};
}

// Adds what the same check says on another sample.
void add_sample(Check& check, Check one) {
  one.error = std::max(one.error, check.error);
  for (const auto names : {&Check::nearly_zero, &Check::rounding, &Check::unsteady, &Check::was_nan})
    for (const std::string& name : check.*names)
      if (std::ranges::find(one.*names, name) == (one.*names).end())
        (one.*names).push_back(name);
  if (one.verdict == Verdict::Unknown && check.verdict == Verdict::Passed) {
    one.verdict = Verdict::Passed;
    one.detail = "";
  }
  check = std::move(one);
}

class CompiledVerification {
 public:
  CompiledVerification(const Graph& optimised, const CompileContext& context, const VerifyOptions& options)
      : context_(context),
        options_(options_for_target(options, context)),
        optimised_(compiler::copy_for_loops(optimised)),
        graph_(optimised_->clone()),
        pipeline_(context),
        journal_(options.numerics) {}

  std::vector<PassVerification> run() {
    if (is_large(*optimised_))
      check_each_rewrite();
    else
      check_each_pass();
    check_lowered();
    results_.push_back(check_program());
    return std::move(results_);
  }

 private:
  const Listener& listener() const { return options_.listener; }

  int64_t count_changing_passes() const {
    int64_t count = 0;
    Journal journal(context_.numerics);
    pipeline_.run(*graph_->clone(), journal,
                  {.pipeline = {}, .after_pass = [&](const Pass&, const Graph&) { ++count; }});
    return count;
  }

  void draw_samples() {
    std::mt19937_64 random(options_.seed);
    const int64_t samples = options_.inputs ? 1 : options_.samples;
    for (int64_t drawn = 0; drawn < samples; ++drawn)
      samples_.push_back(options_.inputs ? Sample{*options_.inputs, evaluate(*optimised_, *options_.inputs)}
                                         : telling_sample(*optimised_, random));
  }

  // What the reference evaluator gives after a pass is what it gives before the next.
  void check_each_pass() {
    draw_samples();
    begin(listener(), "checking target pass", count_changing_passes() + 1);
    std::vector<std::optional<Sample>> known(samples_.begin(), samples_.end());
    std::unique_ptr<Graph> before = graph_->clone();
    const auto after_pass = [&](const Pass& pass, const Graph& after) {
      step(listener(), pass.name);
      add_row(pass, after);
      // Whatever a rewrite replaced is there until remove-dead.
      std::unique_ptr<Graph> live = after.clone();
      Journal unread;
      remove_dead(*live, unread);
      results_.back().numbers = compare_on(known, *before, *live);
      before = std::move(live);
    };
    pipeline_.run(*graph_, journal_, {.pipeline = {}, .after_pass = after_pass});
    step(listener(), kProgram);
  }

  // `known` is what `before` gives, and becomes what `after` gives; nothing where that does not run.
  Check compare_on(std::vector<std::optional<Sample>>& known, const Graph& before, const Graph& after) const {
    Check check;
    for (std::optional<Sample>& sample : known) {
      if (!sample)
        return {.detail = "not compared: what stood there cannot be run"};
      Check one;
      std::optional<Data> actual = run_rewritten(after, sample->inputs, one);
      if (actual)
        one = compare_with_sample(before, *sample, *actual, options_);
      if (check.verdict != Verdict::Failed)
        add_sample(check, std::move(one));
      if (actual)
        sample->outputs = *std::move(actual);
      else
        sample.reset();
    }
    return check;
  }

  void check_each_rewrite() {
    std::mt19937_64 random(options_.seed);
    const auto record = [&](const Data& inputs) {
      RecordedValues recorded =
          record_values(*graph_, inputs, heard_by(listener(), "running optimised node", *graph_));
      samples_ = {{inputs, {}}};
      for (Value output : graph_->outputs())
        samples_.front().outputs.push_back(recorded.at(output.data()));
      return recorded;
    };
    RecordedValues recorded =
        options_.inputs ? record(*options_.inputs) : run_on_random_inputs(*graph_, random, {}, record);
    Journal counted(context_.numerics);
    pipeline_.run(*graph_->clone(), counted);
    begin(listener(), "checking target rewrite", counted.count());
    const std::vector<RewriteCheck> checks = check_rewrites(
        *graph_, std::move(recorded), journal_,
        [&] {
          pipeline_.run(*graph_, journal_,
                        {.pipeline = {},
                         .after_pass = [&](const Pass& pass, const Graph& after) { add_row(pass, after); }});
        },
        {.tolerance = options_.tolerance,
         .before_check = [&](const Application& application) { step(listener(), application.rule); }});
    size_t done = 0;
    for (PassVerification& result : results_) {
      const auto changes = static_cast<size_t>(result.changes);
      result.numbers = join_checks(std::span(checks).subspan(done, changes));
      done += changes;
    }
  }

  void add_row(const Pass& pass, const Graph& after) {
    results_.push_back(
        row(Level::Target, pass.name, journal_.count() - std::exchange(done_, journal_.count())));
    results_.back().lint = check_lint(after);
  }

  void check_lowered() {
    if (std::ranges::any_of(results_, &PassVerification::failed)) {
      results_.push_back(row(Level::Lowered, "lower", 0));
      results_.back().numbers = {.detail = "not compared: the graph is wrong before it is lowered"};
      return;
    }
    const RecordedValues recorded =
        record_values(*graph_, samples_.front().inputs, heard_by(listener(), "running target node", *graph_));
    for (LoweringCheck& check :
         check_lowering(*graph_, recorded, context_,
                        {.tolerance = options_.tolerance, .seed = options_.seed, .listener = listener()})) {
      results_.push_back(row(check.level, check.pass, check.changes));
      results_.back().numbers = std::move(check.numbers);
      results_.back().lint = std::move(check.lint);
    }
  }

  PassVerification check_program() const {
    PassVerification result = row(Level::Compiled, kProgram, journal_.count());
    try {
      const std::unique_ptr<runtime::Executor> executor = compile(*optimised_, context_);
      for (const Sample& sample : samples_) {
        const Data actual = executor->run(sample.inputs, {.threads = threads_of(context_)});
        add_sample(result.numbers, compare_with_sample(*optimised_, sample, actual, options_));
        if (result.numbers.verdict == Verdict::Failed)
          break;
      }
    } catch (const UserError& error) {
      result.numbers = {.verdict = Verdict::Failed,
                        .detail = fmt::format("it does not run: {}", error.what())};
    }
    return result;
  }

  const CompileContext& context_;
  const VerifyOptions options_;
  std::unique_ptr<Graph> optimised_, graph_;  // the same before and after the target pipeline
  TargetPipeline pipeline_;
  Journal journal_;
  int64_t done_ = 0;  // rewrites of earlier passes
  std::vector<Sample> samples_;
  std::vector<PassVerification> results_;
};

// Whether it computes something else, or nothing. Gradients and numbers held are lost in compiling anyway.
bool computes_wrong(const PassVerification& result) {
  return result.numbers.verdict == Verdict::Failed || result.lint.verdict == Verdict::Failed;
}

}  // namespace

VerifyOptions options_for_target(VerifyOptions options, const CompileContext& context) {
  if (options.numerics == NumericsBudget::Strict) {
    options.tolerance = std::min(options.tolerance, kStrictTolerance);
    options.numerics = NumericsBudget::Default;
  }
  if (context.precision == MatmulPrecision::BF16)
    options.tolerance = std::max(options.tolerance, kRoundingSteps * rounding_step(DType::BF16));
  return options;
}

int threads_of(const CompileContext& context) {
  return context.threads != 0 ? context.threads : context.target.cores;
}

std::vector<PassVerification> verify_compiled(const Graph& optimised, const CompileContext& context,
                                              const VerifyOptions& options) {
  const std::unique_ptr<Graph> sized = options.inputs ? with_sizes_of(optimised, *options.inputs)
                                                      : with_small_sizes(optimised, options.listener);
  const auto run = [&] { return CompiledVerification(*sized, context, options).run(); };
  return options.inputs ? run() : hint_at_inputs("are drawn", "", run);
}

std::vector<PassVerification> verify_model(const Graph& model, const CompileContext& context,
                                           const VerifyOptions& options) {
  const std::unique_ptr<Graph> graph =
      options.inputs ? with_sizes_of(model, *options.inputs) : with_small_sizes(model, options.listener);
  std::vector<PassVerification> results = verify_pipeline(*graph, options);
  if (std::ranges::any_of(results, computes_wrong)) {
    results.push_back(row(Level::Compiled, kProgram, 0));
    results.back().numbers.detail = "not compared: the optimised model is wrong already";
    return results;
  }
  Journal journal(options.numerics);
  optimize(*graph, journal, {.pipeline = options.pipeline});
  std::ranges::move(verify_compiled(*graph, context, options), std::back_inserter(results));
  return results;
}

}  // namespace tenon
