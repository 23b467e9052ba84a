#include "report/explained_model.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/progress.h"

namespace tenon {

using compiler::CompileContext;
using compiler::FusedKernel;

namespace {

// A name by which a node is known again in the compiled program.
std::string tag_of(int64_t number) { return fmt::format("#{}", number); }

std::optional<int64_t> number_in(std::string_view tag) {
  int64_t number = 0;
  const char* end = tag.data() + tag.size();
  if (!tag.starts_with('#') || std::from_chars(tag.data() + 1, end, number).ptr != end)
    return std::nullopt;
  return number;
}

// Constants stay without: they are part of every node that reads them.
void set_tags(const Graph& from, Graph& to, const GraphHistory& history) {
  const std::vector<Node*> originals = from.nodes(), copies = to.nodes();
  CHECK(originals.size() == copies.size(), "a copy has {} nodes, not {}", copies.size(), originals.size());
  for (size_t i = 0; i < originals.size(); ++i) {
    if (originals[i]->op().category != Category::Data)
      copies[i]->set_sources({tag_of(history.number_of(*originals[i]))});
    for (size_t region = 0; region < originals[i]->regions().size(); ++region)
      set_tags(*originals[i]->regions()[region], *copies[i]->regions()[region], history);
  }
}

class Explainer {
 public:
  Explainer(Graph& graph, const Data& inputs, const CompileContext& compile, const MeasureOptions& measure,
            const std::vector<Pass>& pipeline)
      : graph_(graph), inputs_(inputs), compile_(compile), measure_(measure), pipeline_(pipeline) {}

  ExplainedModel run() {
    name_nodes(graph_);
    ExplainedModel model{.history = {},
                         .modules = Modules(graph_),
                         .journal = Journal(compile_.numerics),
                         .passes = {},
                         .stages = {},
                         .compiling = 0,
                         .compiled = {},
                         .measurement = {},
                         .nodes = {}};
    optimize_graph(model);
    compile_and_measure(model);
    take_off_tags(model);
    return model;
  }

 private:
  void optimize_graph(ExplainedModel& model) {
    model.history.record("as read", graph_);
    Progress progress("optimising", 0);
    PipelineOptions options{.pipeline = pipeline_};
    options.before_pass = [&](const Pass& pass, int64_t round) {
      progress.step(fmt::format("round {}, {}", round, pass.name));
    };
    options.after_pass = [&](const Pass& pass, const Graph& graph) {
      model.history.record(std::string(pass.name), graph);
      model.stages.resize(static_cast<size_t>(model.journal.count()), model.history.stages().size() - 1);
    };
    model.passes = optimize(graph_, model.journal, options);
    size_t stage = 0;
    for (const PassReport& report : model.passes)
      if (report.changes > 0) {
        GraphStage& changed = model.history.stages().at(++stage);
        changed.milliseconds = report.milliseconds;
        changed.changes = report.changes;
      }
  }

  // With a tag for the name of each node, so that steps can tell exactly which they compute. An error must
  // speak of the user's names, so that what went wrong is done again with those.
  void compile_and_measure(ExplainedModel& model) {
    const std::unique_ptr<Graph> tagged = graph_.clone();
    set_tags(graph_, *tagged, model.history);
    try {
      const auto start = std::chrono::steady_clock::now();
      model.compiled = compile_explained(*tagged, compile_);
      model.compiling = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      model.measurement =
          measure(*model.compiled.executor, model.compiled.fusion, inputs_, compile_.target, measure_);
    } catch (const UserError&) {
      compile(graph_, compile_)->run(inputs_, {.threads = measure_.threads});
      throw;
    }
  }

  static void take_off_tags(ExplainedModel& model) {
    for (MeasuredStep& step : model.measurement.steps)
      step.sources = sources_behind(step.sources, model.history, &model.nodes.emplace_back());
    for (FusedKernel& kernel : model.compiled.fusion.after)
      kernel.sources = sources_behind(kernel.sources, model.history, nullptr);
  }

  // Of the user's model, each once; `nodes` gets the numbers in the tags.
  static std::vector<std::string> sources_behind(const std::vector<std::string>& tags,
                                                 const GraphHistory& history, std::vector<int64_t>* nodes) {
    std::vector<std::string> sources;
    for (const std::string& tag : tags) {
      const std::optional<int64_t> number = number_in(tag);
      if (!number)
        continue;
      if (nodes != nullptr)
        nodes->push_back(*number);
      for (const std::string& source : history.nodes()[static_cast<size_t>(*number)].sources)
        if (std::find(sources.begin(), sources.end(), source) == sources.end())
          sources.push_back(source);
    }
    return sources;
  }

  Graph& graph_;
  const Data& inputs_;
  const CompileContext& compile_;
  const MeasureOptions& measure_;
  const std::vector<Pass>& pipeline_;
};

}  // namespace

ExplainedModel explain(Graph& graph, const Data& inputs, const CompileContext& compile,
                       const MeasureOptions& measure, const std::vector<Pass>& pipeline) {
  return Explainer(graph, inputs, compile, measure, pipeline).run();
}

}  // namespace tenon
