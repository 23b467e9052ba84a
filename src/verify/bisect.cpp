#include "verify/bisect.h"

#include <algorithm>

#include "frontends/onnx/import.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "tensor/npy.h"
#include "verify/checks.h"
#include "verify/cut_out.h"
#include "verify/hint_at_inputs.h"
#include "verify/rewrite_checks.h"
#include "verify/small_sizes.h"

namespace tenon {
namespace {

// How far the small model that shows what is wrong may reach back: the first that is enough.
constexpr int64_t kDepths[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32};

// Whether the pass of the rewrite, run on this model, breaks it in the same way.
bool breaks(const Graph& model, const Data& inputs, const Application& application,
            const BisectOptions& options) {
  const auto pass = std::ranges::find(options.verify.pipeline, application.pass, &Pass::name);
  CHECK(pass != options.verify.pipeline.end(), "a rewrite of {}, which is no pass of the pipeline",
        application.pass);
  const std::unique_ptr<Graph> after = model.clone();
  Journal journal(options.verify.numerics);
  journal.set_pass(pass->name);
  const std::vector<RewriteCheck> checks =
      check_rewrites(*after, record_values(*after, inputs), journal, [&] { pass->run(*after, journal); },
                     {.tolerance = options.verify.tolerance});
  const auto is_wrong = [&](const RewriteCheck& check) {
    return check.application.rule == application.rule && check.numbers.verdict == Verdict::Failed;
  };
  return std::ranges::any_of(checks, is_wrong) ||
         compare_with_sample(model, {inputs, evaluate(model, inputs)}, evaluate(*after, inputs),
                             options.verify)
                 .verdict == Verdict::Failed;
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
  Bisection(const Graph& model, const BisectOptions& options) : options_(options) {
    if (options.inputs) {
      model_ = model.clone();
      inputs_ = *options.inputs;
      expected_ = options.expected ? *options.expected : run(*model_, "running node");
      return;
    }
    model_ = with_small_sizes(model, listener());
    RandomGenerator random(options.verify.seed);
    Sample sample = hint_at_inputs("are drawn", "", [&] {
      return telling_sample(*model_, random, heard_by(listener(), "running node", *model_));
    });
    inputs_ = std::move(sample.inputs);
    expected_ = std::move(sample.outputs);
  }

  std::optional<Culprit> run() {
    const int64_t all = optimised(std::numeric_limits<int64_t>::max()).journal.count();
    if (agrees(all))
      return first_beyond_its_class();
    int64_t good = 0, bad = all;  // after so many rewrites
    if (!agrees(good))
      throw user_error("the model does not agree with the expected outputs even before it is optimised");
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (agrees(middle) ? good : bad) = middle;
    }
    const Optimised broken = optimised(bad);
    return culprit_of(broken.journal.applications().back(), outcome_of(broken, "running node"));
  }

 private:
  struct Optimised {
    std::unique_ptr<Graph> graph;
    Journal journal;
  };

  const Listener& listener() const { return options_.verify.listener; }

  Data run(const Graph& graph, std::string_view what) const {
    return evaluate(graph, inputs_, heard_by(listener(), what, graph));
  }

  Optimised optimised(int64_t applications) const {
    Optimised result{model_->clone(), Journal(options_.verify.numerics, applications)};
    optimize(*result.graph, result.journal, {.pipeline = options_.verify.pipeline});
    return result;
  }

  // What was rewritten must still run.
  Check outcome_of(const Optimised& optimised, std::string_view what) const {
    try {
      const Data actual = run(*optimised.graph, what);
      return options_.expected ? compare_all(*model_, actual, expected_, options_.verify)
                               : compare_with_sample(*model_, {inputs_, expected_}, actual, options_.verify);
    } catch (const UserError& error) {
      if (optimised.journal.count() == 0)
        throw;
      return {.verdict = Verdict::Failed, .detail = fmt::format("it no longer runs: {}", error.what())};
    }
  }

  bool agrees(int64_t applications) const {
    const std::string what = fmt::format("after {} rewrites, running node", applications);
    return outcome_of(optimised(applications), what).verdict != Verdict::Failed;
  }

  std::optional<Culprit> first_beyond_its_class() const {
    const std::unique_ptr<Graph> graph = model_->clone();
    Journal journal(options_.verify.numerics);
    begin(listener(), "checking rewrite", optimised(std::numeric_limits<int64_t>::max()).journal.count());
    const std::vector<RewriteCheck> checks = check_rewrites(
        *graph, record_values(*graph, inputs_), journal,
        [&] { optimize(*graph, journal, {.pipeline = options_.verify.pipeline}); },
        {.tolerance = options_.verify.tolerance,
         .before_check = [&](const Application& application) { step(listener(), application.rule); }});
    for (const auto& [application, numbers] : checks)
      if (numbers.verdict == Verdict::Failed)
        return culprit_of(application, numbers);
    return std::nullopt;
  }

  Culprit culprit_of(const Application& application, const Check& numbers) const {
    Culprit culprit{.application = application, .numbers = numbers, .model = nullptr, .inputs = {}};
    const std::unique_ptr<Graph> before = optimised(application.number - 1).graph;
    if (Piece piece = smallest(*before, application); piece.graph) {
      culprit.model = std::move(piece.graph);
      culprit.inputs = std::move(piece.inputs);
    } else if (breaks(*before, inputs_, application, options_)) {
      culprit.model = before->clone();
      culprit.inputs = inputs_;
    }
    return culprit;
  }

  // A small part of the graph that the pass breaks too, when fed with what flows there.
  Piece smallest(const Graph& graph, const Application& application) const {
    const RecordedValues recorded =
        record_values(graph, inputs_, heard_by(listener(), "recording node", graph));
    begin(listener(), "making it small, step", static_cast<int64_t>(std::size(kDepths)));
    for (int64_t depth : kDepths) {
      step(listener(), "");
      for (const Node* node : graph.nodes())
        if (is_named(*node, application.nodes))
          if (Piece piece = cut_out(graph, *node, depth, recorded);
              breaks(*piece.graph, piece.inputs, application, options_))
            return piece;
    }
    return {};
  }

  const BisectOptions& options_;
  std::unique_ptr<Graph> model_;
  Data inputs_, expected_;
};

// Writes it as ONNX; else says why not.
std::string try_onnx(const Culprit& culprit, const std::filesystem::path& path,
                     const BisectOptions& options) {
  try {
    onnx::write_onnx(*culprit.model, path);
    const std::unique_ptr<Graph> back = onnx::read_onnx(path);
    if (breaks(*back, culprit.inputs, culprit.application, options))
      return "";
  } catch (const UserError& error) {
    return error.what();
  }
  std::filesystem::remove(path);
  return "written as ONNX, it is spelled in other ops, in which the rewrite finds nothing to do";
}

}  // namespace

std::optional<Culprit> bisect(const Graph& model, const BisectOptions& options) {
  return Bisection(model, options).run();
}

WrittenCulprit write_culprit(const Culprit& culprit, const std::filesystem::path& path,
                             const BisectOptions& options) {
  WrittenCulprit written = {.model = path, .inputs = "", .why_not_onnx = ""};
  if (path.extension() == ".onnx")
    written.why_not_onnx = try_onnx(culprit, path, options);
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
