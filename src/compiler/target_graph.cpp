#include "compiler/target_graph.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace tenon::compiler {

std::unique_ptr<Graph> copy_for_loops(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    if (input.type().is_tensor() && input.shape().ranked())
      for (const Dim& dim : input.shape().dims())
        for (const std::string& symbol : dim.symbols())
          symbols.insert(symbol);
  std::map<std::string, Dim> names;
  for (const std::string& symbol : symbols) {
    if (std::isdigit(static_cast<unsigned char>(symbol.back())) == 0)
      continue;
    std::string name = symbol;
    while (symbols.contains(name))
      name += '_';
    names.emplace(symbol, Dim::symbol(name));
  }
  return names.empty() ? graph.clone() : graph.bind(names);
}

TargetPipeline::TargetPipeline(const CompileContext& context)
    : context_(context),
      target_{.target = context_.target, .numerics = context_.numerics, .precision = context_.precision} {
  if (context.precision == MatmulPrecision::BF16 && context.numerics == NumericsBudget::Strict)
    throw user_error("precision bf16 is incompatible with numerics strict");
  passes_ = target_pipeline(target_);
  passes_.insert(std::ranges::find(passes_, "remove-dead", &Pass::name), context.added_passes.begin(),
                 context.added_passes.end());
}

void TargetPipeline::run(Graph& graph, Journal& journal, PipelineOptions options) const {
  options.pipeline = passes_;
  // A pass that this target does without need not be left out.
  for (const std::string& name : context_.disabled)
    if (std::ranges::find(passes_, name, &Pass::name) != passes_.end())
      options.disabled.insert(name);
  run_pipeline(graph, journal, options);
}

std::unique_ptr<Graph> make_target_graph(const Graph& graph, const CompileContext& context, Journal& journal,
                                         PipelineOptions options) {
  std::unique_ptr<Graph> copy = copy_for_loops(graph);
  TargetPipeline(context).run(*copy, journal, std::move(options));
  return copy;
}

}  // namespace tenon::compiler
