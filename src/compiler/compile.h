// compile.h — a graph becomes a program: the way down, in one place.
#pragma once

#include "codegen/object_cache.h"
#include "fusion/cost.h"
#include "loops/kernel.h"
#include "rewrite/journal.h"
#include "runtime/program.h"
#include "target/target.h"

namespace tenon {

enum class Precision { F32, BF16 };

struct CompileOptions {
  Target target = this_machine();
  bool fuse = true;
  NumericsBudget numerics = NumericsBudget::Default;  // strict: convolutions add up windows as they are
  Precision precision = Precision::F32;               // of the factors of products in f32
  std::optional<codegen::ObjectCache> cache = codegen::default_cache();
  // How many will run it, for which it is cut into turns; 0: as many as the target has cores.
  int threads = 0;
  // For contractions; nothing: what measuring them has left in the default cache, where any is to be used.
  std::optional<ContractionChoices> choices = std::nullopt;
  // Told, one call at a time, of each kernel before code is generated for it, and how many there are.
  std::function<void(int64_t kernels)> before_kernel = nullptr;
};

// The program that computes what the graph computes. What no code can be generated for runs as the reference
// evaluator runs it.
std::unique_ptr<Program> compile(const Graph& graph, const CompileOptions& options = {});

// What fusion made of a graph.
struct FusedKernel {
  std::vector<std::string> sources;  // nodes of the user's model
  KernelCost cost;
  std::optional<Stage> contraction;  // that it computes, or that it moves elements for
};
struct UnfusedEdge {
  size_t from, to;  // kernels, in the order in which they run
  loops::Buffer buffer;
  std::string reason;
};
struct FusionReport {
  std::vector<KernelCost> before;  // a kernel for each step
  std::vector<FusedKernel> after;
  std::vector<UnfusedEdge> edges;
};
FusionReport fusion_of(const Graph& graph, const CompileOptions& options = {});

// The kernels of the program, in order, as they are handed to the code generator.
std::vector<loops::Kernel> kernels_of(const Graph& graph, const CompileOptions& options = {});

// A program, and what the two above say of it.
struct ExplainedProgram {
  std::unique_ptr<Program> program;
  FusionReport fusion;
  std::vector<loops::Kernel> kernels;
  std::vector<loops::Kernel> plain;  // the same before they are arranged for a machine, to be read
};
ExplainedProgram compile_explained(const Graph& graph, const CompileOptions& options = {});

}  // namespace tenon
