#include "verify/bisect.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "verify/compare.h"
#include "verify/cut_out.h"
#include "verify/random_inputs.h"

namespace tenon {
namespace {

constexpr int64_t kMostDepth = 8;  // of the small model that shows what is wrong

class Bisection {
 public:
  Bisection(const Graph& model, const BisectOptions& options) : options_(options) {
    if (options.inputs) {
      model_ = model.clone();
      inputs_ = *options.inputs;
    } else {
      model_ = with_small_sizes(model);
      RandomGenerator random(options.verify.seed);
      inputs_ = random_inputs(*model_, random);
    }
    expected_ = options.expected ? *options.expected : evaluate(*model_, inputs_);
  }

  std::optional<Culprit> run() {
    const int64_t all =
        static_cast<int64_t>(optimised(std::numeric_limits<int64_t>::max()).journal.applications().size());
    if (agrees(all))
      return std::nullopt;
    int64_t good = 0, bad = all;  // after so many rewrites
    if (!agrees(good))
      throw user_error("the model does not agree with the expected outputs even before it is optimised");
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (agrees(middle) ? good : bad) = middle;
    }
    Optimised broken = optimised(bad);
    Culprit culprit{.application = broken.journal.applications().back(),
                    .numbers = compare_outputs(evaluate(*broken.graph, inputs_)),
                    .model = nullptr};
    culprit.model = smallest(*optimised(good).graph, culprit.application);
    return culprit;
  }

 private:
  struct Optimised {
    std::unique_ptr<Graph> graph;
    Journal journal;
  };

  Optimised optimised(int64_t applications) const {
    Optimised result{model_->clone(), Journal(options_.verify.numerics, applications)};
    optimize(*result.graph, result.journal, {.pipeline = options_.verify.pipeline});
    return result;
  }

  Check compare_outputs(const Data& actual) const {
    return compare_all(actual, expected_, model_->output_names(), options_.verify);
  }

  bool agrees(int64_t applications) const {
    return compare_outputs(evaluate(*optimised(applications).graph, inputs_)).verdict != Verdict::Failed;
  }

  // A small part of the graph that the pass breaks too, when fed with what flows there.
  std::unique_ptr<Graph> smallest(const Graph& graph, const Application& application) const {
    const auto pass = std::find_if(options_.verify.pipeline.begin(), options_.verify.pipeline.end(),
                                   [&](const Pass& each) { return each.name == application.pass; });
    for (int64_t depth = 1; depth <= kMostDepth; ++depth)
      for (const Node* node : graph.nodes())
        if (is_named(*node, application.nodes))
          if (Cut cut = cut_out(graph, *node, depth, inputs_); breaks(*cut.graph, cut.inputs, *pass))
            return std::move(cut.graph);
    return nullptr;
  }

  static bool is_named(const Node& node, const std::vector<std::string>& names) {
    const auto known = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    return known(node.describe()) || std::any_of(node.sources().begin(), node.sources().end(), known);
  }

  bool breaks(const Graph& part, const Data& inputs, const Pass& pass) const {
    const std::unique_ptr<Graph> after = part.clone();
    Journal journal(options_.verify.numerics);
    journal.set_pass(pass.name);
    pass.run(*after, journal);
    return compare_all(evaluate(*after, inputs), evaluate(part, inputs), part.output_names(), options_.verify)
               .verdict == Verdict::Failed;
  }

  const BisectOptions& options_;
  std::unique_ptr<Graph> model_;
  Data inputs_, expected_;
};

}  // namespace

std::optional<Culprit> bisect(const Graph& model, const BisectOptions& options) {
  return Bisection(model, options).run();
}

}  // namespace tenon
