// expect_compiled.h — graphs with constant weights, and whether compiled code gives what the evaluator does.
#pragma once

#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/compile.h"
#include "compiler/interpret_scheduled.h"
#include "ir/parse.h"
#include "ops/data.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {

// Pseudo-random numbers between -1 and 1.
inline Tensor numbers(DType dtype, const Extents& extents, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(element_count(extents)));
  for (double& value : values) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    value = static_cast<double>(seed >> 40) / (1 << 23) - 1;
  }
  return narrow<double>(dtype, extents, values);
}

// A graph whose inputs called w… are constants.
inline std::unique_ptr<Graph> read(std::string_view text) {
  register_ops();
  std::unique_ptr<Graph> graph = parse(text);
  uint64_t seed = 100;
  for (Value input : graph->inputs())
    if (input.name().starts_with("w")) {
      const InsertBefore here(graph->first());
      input.replace_all_uses(constant(*graph, numbers(input.dtype(), *input.shape().extents(), ++seed)));
    }
  return graph;
}

// For an Arm whose registers hold matrices of what the feature tells.
inline compiler::CompileContext with_matrices_in_registers(const char* feature) {
  compiler::CompileContext options = without_cache();
  options.target.architecture = Architecture::Arm64;
  options.target.features = {feature};
  options.target.vector_bytes = 16;
  options.target.vector_registers = 32;
  options.target.fused_multiply_add = true;
  options.target.matrix_tiles = false;
  return options;
}

inline std::string kernels_in(const Graph& graph, const compiler::CompileContext& options = without_cache()) {
  std::string text;
  for (const loops::Kernel& kernel : kernels_of(graph, options))
    text += loops::print(kernel);
  return text;
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// `sizes` says what each symbol of the inputs stands for.
inline Data inputs_for(const Graph& graph, const std::map<std::string, int64_t>& sizes) {
  Data inputs;
  for (Value input : graph.inputs()) {
    Extents extents;
    for (const Dim& dim : input.shape().dims())
      extents.push_back(dim.evaluate(sizes).value());
    inputs.emplace_back(numbers(input.dtype(), extents, inputs.size() + 1));
  }
  return inputs;
}

inline void expect_near_evaluated(const Data& got, const Data& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].tensor().extents(), wanted[i].tensor().extents());
    const std::vector<double> a = widen<double>(got[i].tensor()), b = widen<double>(wanted[i].tensor());
    double largest = 0;
    for (double each : b)
      largest = std::max(largest, std::abs(each));
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], 1e-5 * largest) << "output " << i << ", element " << k;
  }
}

// Code for another architecture cannot run here: kernels for it are interpreted.
inline void expect_as_evaluated(const Graph& graph, const std::map<std::string, int64_t>& sizes = {},
                                const compiler::CompileContext& options = without_cache()) {
  const Data inputs = inputs_for(graph, sizes);
  const Data wanted = evaluate(graph, inputs);
  if (options.target.architecture != without_cache().target.architecture) {
    RandomGenerator random(0);
    return expect_near_evaluated(InterpretedGraph(graph, options).run(inputs, random), wanted);
  }
  const std::unique_ptr<runtime::Executor> program = compile(graph, options);
  for (const int threads : {1, 2, 3})
    expect_near_evaluated(program->run(inputs, {.seed = 0, .threads = threads}), wanted);
}

}  // namespace tenon
