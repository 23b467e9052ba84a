#include "compiler/target_graph.h"

#include <cctype>

#include "base/error.h"
#include "compiler/compile.h"

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

std::unique_ptr<Graph> make_target_graph(const Graph& graph, const CompileContext& context, Journal& journal,
                                         OptimizeOptions options) {
  if (context.precision == MatmulPrecision::BF16 && context.numerics == NumericsBudget::Strict)
    throw user_error("precision bf16 is incompatible with numerics strict");
  std::unique_ptr<Graph> copy = copy_for_loops(graph);
  CompileContext for_weights = context;
  for_weights.before_kernel = nullptr;
  const TargetContext target{
      .target = context.target,
      .numerics = context.numerics,
      .precision = context.precision,
      .run_constants = [&](const Graph& weights) {
        return compile(weights, for_weights)->run({}, {.seed = 0, .threads = context.target.cores});
      }};
  options.pipeline = target_pipeline(target);
  options.disabled.insert(context.disabled.begin(), context.disabled.end());
  run_pipeline(*copy, journal, options);
  return copy;
}

}  // namespace tenon::compiler
