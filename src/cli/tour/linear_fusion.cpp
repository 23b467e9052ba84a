// linear_fusion.cpp — the tour: products fused with what follows them.
#include "cli/compile_model.h"
#include "cli/tour/steps.h"
#include "compiler/print_program.h"
#include "frontends/builtin/builtin.h"

namespace tenon::cli {

using compiler::fusion_of;
using compiler::kernels_of;
using compiler::print_fusion;
using compiler::print_kernels;
using runtime::Executor;

namespace {

std::string fusion_text(const Graph& graph) {
  return lines_with(print_fusion(fusion_of(graph, api::default_context()), this_machine(), {}),
                    {"became", "operations,", ": ", "moved"});
}

}  // namespace

void show_linear_fusion(Screen& screen) {
  const std::unique_ptr<Graph> linear = builtin::make_model("tiny");
  optimize_model(*linear);
  screen.subheading("relu(linear(x)):");
  screen.excerpt(fusion_text(*linear));
  const std::unique_ptr<Executor> program = compile_model(*linear);
  screen.excerpt(print_kernels(program->program(), kernels_of(*linear, api::default_context())));
  const std::unique_ptr<Graph> product = builtin::make_model("matmul_bias_relu");
  optimize_model(*product);
  screen.subheading("relu(matmul(x, weight) + bias):");
  screen.excerpt(fusion_text(*product));
}

}  // namespace tenon::cli
