// engine.h — what runs a graph: the reference evaluator, or code compiled for this machine.
#pragma once

#include "api/default_context.h"
#include "runtime/executor.h"

namespace tenon {

enum class Engine : uint8_t { Reference, Compiled };
Engine parse_engine(std::string_view name);

// A graph made ready to run. It must outlive this.
class Runner {
 public:
  Runner(const Graph& graph, Engine engine, const api::ContextOptions& how = {});

  const runtime::Executor* executor() const { return executor_.get(); }  // null for the reference evaluator

  Data operator()(const Data& inputs, const runtime::RunOptions& options = {}) const;

 private:
  const Graph& graph_;
  std::unique_ptr<runtime::Executor> executor_;
};

}  // namespace tenon
