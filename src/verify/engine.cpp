#include "verify/engine.h"

#include "base/error.h"
#include "compiler/compile.h"

namespace tenon {

using compiler::compile;
using runtime::RunOptions;

Engine parse_engine(std::string_view name) {
  if (name == "reference")
    return Engine::Reference;
  if (name == "compiled")
    return Engine::Compiled;
  throw user_error("there is no engine {}; there are reference and compiled", name);
}

Runner::Runner(const Graph& graph, Engine engine, const api::ContextOptions& how)
    : graph_(graph),
      executor_(engine == Engine::Compiled ? compile(graph, api::default_context(how)) : nullptr) {}

Data Runner::operator()(const Data& inputs, const RunOptions& options) const {
  if (executor_)
    return executor_->run(inputs, options);
  return evaluate(graph_, inputs, {.seed = options.seed});
}

}  // namespace tenon
