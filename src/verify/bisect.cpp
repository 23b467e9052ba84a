#include "verify/bisect.h"

#include <algorithm>

#include "compiler/compile.h"
#include "compiler/target_graph.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "tensor/npy.h"
#include "verify/checks.h"
#include "verify/cut_out.h"
#include "verify/hint_at_inputs.h"
#include "verify/lowering_checks.h"
#include "verify/rewrite_checks.h"
#include "verify/small_sizes.h"
#include "verify/verify_compiled.h"

namespace tenon {
namespace {

// How far the small model that shows what is wrong may reach back: the first that is enough.
constexpr int64_t kDepths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32};

using compiler::TargetPipeline;

// The passes of one level, and how what they make is compared.
struct Passes {
  std::vector<Pass> pipeline;
  VerifyOptions options;
};

// Whether one of these passes, run on this model, breaks it as the rewrite does. A pass may stand in several
// places.
bool breaks(const Graph& model, const Data& inputs, const Application& application, const Passes& passes) {
  return std::ranges::any_of(passes.pipeline, [&](const Pass& pass) {
    if (pass.name != application.pass)
      return false;
    const std::unique_ptr<Graph> after = model.clone();
    Journal journal(passes.options.numerics);
    journal.set_pass(pass.name);
    const std::vector<RewriteCheck> checks =
        check_rewrites(*after, record_values(*after, inputs), journal, [&] { pass.run(*after, journal); },
                       {.tolerance = passes.options.tolerance});
    const auto is_wrong = [&](const RewriteCheck& check) {
      return check.application.rule == application.rule && check.numbers.verdict == Verdict::Failed;
    };
    return std::ranges::any_of(checks, is_wrong) ||
           compare_with_sample(model, {inputs, evaluate(model, inputs)}, evaluate(*after, inputs),
                               passes.options)
                   .verdict == Verdict::Failed;
  });
}

bool is_named(const Node& node, const std::vector<std::string>& names) {
  const auto is_known = [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (is_known(node.describe()) || std::ranges::any_of(node.sources(), is_known))
    return true;
  for (const auto& region : node.regions())
    for (const Node* inner : region->nodes())
      if (is_named(*inner, names))
        return true;
  return false;
}

class Bisection {
 public:
  Bisection(const Graph& model, const BisectOptions& options)
      : options_(options), portable_{options.verify.pipeline, options.verify} {
    if (options.context) {
      target_pipeline_.emplace(*options.context);
      target_ = {target_pipeline_->passes(), options_for_target(options.verify, *options.context)};
    }
    if (options.inputs) {
      model_ = model.clone();
      inputs_ = *options.inputs;
      expected_ = options.expected ? *options.expected : run(*model_, "running node");
      return;
    }
    model_ = with_small_sizes(model, listener());
    std::mt19937_64 random(options.verify.seed);
    Sample sample = hint_at_inputs("are drawn", "", [&] {
      return telling_sample(*model_, random, heard_by(listener(), "running node", *model_));
    });
    inputs_ = std::move(sample.inputs);
    expected_ = std::move(sample.outputs);
  }

  std::optional<Culprit> run() {
    const int64_t all = rewritten(kAll).count();
    if (agrees(all)) {
      std::optional<Culprit> culprit = first_beyond_its_class();
      return culprit || !options_.context ? std::move(culprit) : wrong_program();
    }
    int64_t good = 0, bad = all;  // after so many rewrites
    if (!agrees(good))
      throw user_error("the model does not agree with the expected outputs even before it is optimised");
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (agrees(middle) ? good : bad) = middle;
    }
    const Rewritten broken = rewritten(bad);
    return culprit_of(broken.last(), broken.level(), outcome_of(broken, "running node"));
  }

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  struct Rewritten {
    std::unique_ptr<Graph> graph;
    Journal portable, target;

    Level level() const { return target.count() > 0 ? Level::Target : Level::Portable; }
    int64_t count() const { return portable.count() + target.count(); }
    Application last() const { return numbered_through(level(), journal().applications().back()); }
    Application numbered_through(Level of, Application application) const {
      if (of == Level::Target)
        application.number += portable.count();
      return application;
    }

   private:
    const Journal& journal() const { return target.count() > 0 ? target : portable; }
  };

  const Listener& listener() const { return options_.verify.listener; }
  const Passes& passes_of(Level level) const { return level == Level::Portable ? portable_ : target_; }

  Data run(const Graph& graph, std::string_view what) const {
    return evaluate(graph, inputs_, heard_by(listener(), what, graph));
  }

  // The target pipeline follows once the portable one has no more to do.
  Rewritten rewritten(int64_t applications) const {
    const NumericsBudget numerics = options_.verify.numerics;
    Rewritten result{model_->clone(), Journal(numerics, applications), Journal(numerics, 0)};
    optimize(*result.graph, result.portable, {.pipeline = portable_.pipeline});
    if (target_pipeline_ && applications > result.portable.count()) {
      result.graph = compiler::copy_for_loops(*result.graph);
      result.target = Journal(numerics, applications - result.portable.count());
      target_pipeline_->run(*result.graph, result.target);
    }
    return result;
  }

  Check compare_with_expected(const Data& actual, const VerifyOptions& options) const {
    return options_.expected ? compare_all(*model_, actual, expected_, options)
                             : compare_with_sample(*model_, {inputs_, expected_}, actual, options);
  }

  // What was rewritten must still run.
  Check outcome_of(const Rewritten& rewritten, std::string_view what) const {
    try {
      return compare_with_expected(run(*rewritten.graph, what), passes_of(rewritten.level()).options);
    } catch (const UserError& error) {
      if (rewritten.count() == 0)
        throw;
      return {.verdict = Verdict::Failed, .detail = fmt::format("it no longer runs: {}", error.what())};
    }
  }

  bool agrees(int64_t applications) const {
    const std::string what = fmt::format("after {} rewrites, running node", applications);
    return outcome_of(rewritten(applications), what).verdict != Verdict::Failed;
  }

  std::optional<Culprit> first_beyond_its_class() const {
    const Rewritten all = rewritten(kAll);
    begin(listener(), "checking rewrite", all.count());
    const std::unique_ptr<Graph> graph = model_->clone();
    Journal journal(options_.verify.numerics);
    std::optional<Culprit> culprit = first_beyond_its_class(all, Level::Portable, *graph, journal, [&] {
      optimize(*graph, journal, {.pipeline = portable_.pipeline});
    });
    if (culprit || !target_pipeline_)
      return culprit;
    const std::unique_ptr<Graph> for_target = compiler::copy_for_loops(*graph);
    Journal target(options_.verify.numerics);
    return first_beyond_its_class(all, Level::Target, *for_target, target,
                                  [&] { target_pipeline_->run(*for_target, target); });
  }

  std::optional<Culprit> first_beyond_its_class(const Rewritten& all, Level level, const Graph& graph,
                                                Journal& journal,
                                                const std::function<void()>& rewrite) const {
    const std::vector<RewriteCheck> checks = check_rewrites(
        graph, record_values(graph, inputs_), journal, rewrite,
        {.tolerance = passes_of(level).options.tolerance,
         .before_check = [&](const Application& application) { step(listener(), application.rule); }});
    for (const auto& [application, numbers] : checks)
      if (numbers.verdict == Verdict::Failed)
        return culprit_of(all.numbered_through(level, application), level, numbers);
    return std::nullopt;
  }

  // The program of the optimised model, where it does not compute what that does.
  std::optional<Culprit> wrong_program() const {
    const std::unique_ptr<Graph> optimised = model_->clone();
    Journal journal(options_.verify.numerics);
    optimize(*optimised, journal, {.pipeline = portable_.pipeline});
    Check numbers = outcome_of_program(*optimised, *options_.context);
    if (numbers.verdict != Verdict::Failed)
      return std::nullopt;
    Culprit culprit{.level = Level::Compiled,
                    .application = {},
                    .numbers = std::move(numbers),
                    .model = nullptr,
                    .inputs = {},
                    .program = blame(*optimised)};
    return culprit;
  }

  Check outcome_of_program(const Graph& optimised, const compiler::CompileContext& context) const {
    try {
      const std::unique_ptr<runtime::Executor> program = compile(optimised, context);
      return compare_with_expected(program->run(inputs_, {.threads = threads_of(context)}), target_.options);
    } catch (const UserError& error) {
      return {.verdict = Verdict::Failed, .detail = fmt::format("it does not run: {}", error.what())};
    }
  }

  // A pass over the kernel graph, or a schedule; nothing where these are right.
  std::optional<WrongProgram> wrong_lowering(const Graph& optimised) const {
    Journal journal(options_.verify.numerics);
    const std::unique_ptr<Graph> graph = make_target_graph(optimised, *options_.context, journal);
    for (const LoweringCheck& check : check_lowering(
             *graph, record_values(*graph, inputs_), *options_.context,
             {.tolerance = target_.options.tolerance, .seed = options_.verify.seed, .listener = listener()}))
      if (check.failed())
        return WrongProgram{check.level == Level::Scheduled ? std::string(name(KernelFault::Schedule))
                                                            : fmt::format("kernel-graph pass {}", check.pass),
                            check.kernel, check.sources};
    return std::nullopt;
  }

  WrongProgram blame(const Graph& optimised) const {
    if (std::optional<WrongProgram> wrong = wrong_lowering(optimised))
      return *wrong;
    const compiler::ExplainedProgram explained = compile_explained(optimised, *options_.context);
    begin(listener(), "interpreting kernel", static_cast<int64_t>(explained.kernels.size()));
    const std::optional<WrongKernel> wrong = find_wrong_kernel(
        explained.plain, explained.kernels, options_.context->target,
        {.tolerance = target_.options.tolerance, .before_kernel = [&](size_t kernel) {
           step(listener(), fmt::format("{}", fmt::join(explained.fusion.after[kernel].sources, ", ")));
         }});
    if (wrong)
      return {std::string(name(wrong->fault)), wrong->kernel, explained.fusion.after[wrong->kernel].sources};
    compiler::CompileContext unfused = *options_.context;
    unfused.fuse = false;
    const bool is_right = outcome_of_program(optimised, unfused).verdict != Verdict::Failed;
    return {is_right ? "fusion" : "runtime", std::nullopt, {}};
  }

  Culprit culprit_of(const Application& application, Level level, const Check& numbers) const {
    Culprit culprit{
        .level = level, .application = application, .numbers = numbers, .model = nullptr, .inputs = {}};
    const std::unique_ptr<Graph> before = rewritten(application.number - 1).graph;
    if (Piece piece = smallest(*before, application, passes_of(level)); piece.graph) {
      culprit.model = std::move(piece.graph);
      culprit.inputs = std::move(piece.inputs);
    } else if (breaks(*before, inputs_, application, passes_of(level))) {
      culprit.model = before->clone();
      culprit.inputs = inputs_;
    }
    return culprit;
  }

  // A small part of the graph that the pass breaks too, when fed with what flows there.
  Piece smallest(const Graph& graph, const Application& application, const Passes& passes) const {
    const RecordedValues recorded =
        record_values(graph, inputs_, heard_by(listener(), "recording node", graph));
    begin(listener(), "making it small, step", static_cast<int64_t>(std::size(kDepths)));
    for (int64_t depth : kDepths) {
      step(listener(), "");
      for (const Node* node : graph.nodes())
        if (is_named(*node, application.nodes))
          if (Piece piece = cut_out(graph, *node, depth, recorded);
              breaks(*piece.graph, piece.inputs, application, passes))
            return piece;
    }
    return {};
  }

  const BisectOptions& options_;
  std::optional<TargetPipeline> target_pipeline_;
  Passes portable_, target_;
  std::unique_ptr<Graph> model_;
  Data inputs_, expected_;
};

// Writes it as ONNX; else says why not.
std::string try_onnx(const Culprit& culprit, const std::filesystem::path& path, const Passes& passes) {
  try {
    onnx::write_onnx(*culprit.model, path);
    const std::unique_ptr<Graph> back = onnx::read_onnx(path);
    if (breaks(*back, culprit.inputs, culprit.application, passes))
      return "";
  } catch (const UserError& error) {
    return error.what();
  }
  std::filesystem::remove(path);
  return "written as ONNX, it is spelled in other ops, in which the rewrite finds nothing to do";
}

std::string try_onnx_of(const Culprit& culprit, const std::filesystem::path& path,
                        const BisectOptions& options) {
  if (culprit.level == Level::Portable)
    return try_onnx(culprit, path, {options.verify.pipeline, options.verify});
  const TargetPipeline pipeline(*options.context);
  return try_onnx(culprit, path, {pipeline.passes(), options_for_target(options.verify, *options.context)});
}

}  // namespace

std::optional<Culprit> bisect(const Graph& model, const BisectOptions& options) {
  return Bisection(model, options).run();
}

WrittenCulprit write_culprit(const Culprit& culprit, const std::filesystem::path& path,
                             const BisectOptions& options) {
  WrittenCulprit written = {.model = path, .inputs = "", .why_not_onnx = ""};
  if (path.extension() == ".onnx")
    written.why_not_onnx = try_onnx_of(culprit, path, options);
  if (path.extension() != ".onnx" || !written.why_not_onnx.empty())
    save(*culprit.model, written.model.replace_extension(".tenon"));
  NamedTensors inputs;
  for (Value input : culprit.model->inputs())
    if (const Datum& datum = culprit.inputs[static_cast<size_t>(input.index())];
        std::holds_alternative<Tensor>(datum))
      inputs.emplace_back(fmt::format("input_{}", input.index()), datum.tensor());
  if (!inputs.empty()) {
    written.inputs = written.model;
    write_npz(written.inputs.replace_extension(".npz"), inputs);
  }
  return written;
}

}  // namespace tenon
