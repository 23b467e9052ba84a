#include "passes/target_pipeline.h"

#include "passes/target/compute_weights.h"
#include "passes/target/conv_transpose_to_conv.h"
#include "passes/target/convert_matmul_to_bf16.h"
#include "passes/target/decompose_ops.h"
#include "passes/target/decompose_pooling.h"
#include "passes/target/dft_to_matmul.h"
#include "passes/target/embed_constants.h"
#include "passes/target/fold_requantize.h"
#include "passes/target/quantized_matmul.h"
#include "passes/target/scatter_to_gather.h"
#include "passes/target/split_grouped_conv.h"
#include "passes/target/widen_convolutions.h"

namespace tenon {
namespace {

bool always(const TargetContext&) { return true; }
bool may_reassociate(const TargetContext& context) { return context.numerics != NumericsBudget::Strict; }
bool has_int8_dot_products(const TargetContext& context) {
  return may_reassociate(context) && context.target.has_int8_dot_products();
}
bool on_cpu(const TargetContext& context) { return !context.target.gpu; }
bool rounds_to_bf16(const TargetContext& context) { return context.precision == MatmulPrecision::BF16; }

constexpr std::string_view kMayReassociate = "numerics default or fast";

// Most passes look at the graph alone.
auto plain(void (*pass)(Graph&, Journal&)) {
  return [pass](Graph& graph, Journal& journal, const TargetContext&) { pass(graph, journal); };
}

void run_compute_weights_of_bytes(Graph& graph, Journal& journal, const TargetContext&) {
  if (graph.input_count() > 0)
    compute_weights_of_bytes(graph, journal);
}

// In a graph without inputs, computing the weights would be all there is to do.
void run_compute_weights(Graph& graph, Journal& journal, const TargetContext& context) {
  if (graph.input_count() > 0)
    compute_weights(graph, journal, /*keeps_halves=*/context.target.gpu.has_value());
}

void run_convert_to_bf16(Graph& graph, Journal& journal, const TargetContext&) {
  if (graph.input_count() > 0)
    convert_matmul_to_bf16(graph, journal);
}

}  // namespace

const std::vector<TargetPass>& target_passes() {
  static const std::vector<TargetPass> passes = {
      {"dft-to-matmul", "makes Fourier transforms products with the matrices of short ones", kMayReassociate,
       may_reassociate, plain(dft_to_matmul), "before decompose-ops, which has no kernel for the transform"},
      {"decompose-ops", "replaces ops without a lowering by their decomposition, dequantize excepted",
       kMayReassociate, may_reassociate,
       [](Graph& graph, Journal& journal, const TargetContext&) {
         decompose_ops(graph, journal, {"dequantize"});
       },
       "before dequantized-matmul, which matches products of dequantized operands"},
      {"compute-weights", "moves bytes that depend on weights alone to the prepare part", "", always,
       run_compute_weights_of_bytes,
       "before passes that look for constant bytes: those of a recurrent layer are slices"},
      {"dequantized-matmul", "multiplies int8 operands and scales the i32 sums",
       "int8 dot products, numerics default or fast", has_int8_dot_products, plain(dequantized_matmul),
       "while dequantize is still one node"},
      {"fold-requantize", "folds the scale of quantize into the scales before it", kMayReassociate,
       may_reassociate, plain(fold_requantize), "after dequantized-matmul, whose scales it folds"},
      {"decompose-ops", "replaces ops without a lowering by their decomposition", "", always,
       [](Graph& graph, Journal& journal, const TargetContext&) { decompose_ops(graph, journal); },
       "after the rewrites that match composite ops"},
      {"merge-equal", "keeps one of several equal nodes (CSE)", "", always, plain(merge_equal),
       "after decompose-ops: all layers may have decomposed one mask"},
      {"fold-constants", "computes what depends on small constants alone", "", always,
       [](Graph& graph, Journal& journal, const TargetContext& context) {
         (on_cpu(context) ? fold_constants : fold_constants_but_halves)(graph, journal);
       },
       "after decompose-ops: the gates of a recurrent layer are slices of one matrix"},
      {"quantized-matmul", "multiplies int8 operands less a zero point as int8", "", always,
       plain(quantized_matmul), "after fold-constants, which leaves zero points as literals"},
      {"scatter-to-gather", "gathers rows by their source instead of scattering them", "", always,
       plain(scatter_to_gather), "after decompose-ops, which makes scatters"},
      {"widen-convolutions", "computes convolutions of f16 and bf16 in f32", "CPU", on_cpu,
       plain(widen_convolutions),
       "before compute-weights, which then converts their weights once; a GPU reads halves as they are"},
      {"compute-weights", "moves what depends on weights alone to the prepare part", "", always,
       run_compute_weights, "before conv-transpose-to-conv, which asks whether weights are constants"},
      {"conv-transpose-to-conv", "makes transposed convolutions convolutions of each phase", "", always,
       plain(conv_transpose_to_conv), "after compute-weights"},
      {"compute-weights", "moves what depends on weights alone to the prepare part", "", always,
       run_compute_weights, "after conv-transpose-to-conv, which rearranges weights"},
      {"split-grouped-conv", "makes one convolution per group where weights are computed", "", always,
       plain(split_grouped_conv),
       "after compute-weights: weights that are no constants by now never will be"},
      {"convert-matmul-to-bf16", "rounds the factors of products to bf16", "precision bf16", rounds_to_bf16,
       run_convert_to_bf16, "after compute-weights, so that constant factors are seen as such"},
      {"compute-weights", "moves what depends on weights alone to the prepare part", "precision bf16",
       rounds_to_bf16, run_compute_weights, "after convert-matmul-to-bf16, which rounds weights as nodes"},
      {"decompose-pooling", "makes poolings by large windows several by small ones", "", always,
       plain(decompose_pooling), "no other pass matches pooling"},
      {"remove-dead", "erases nodes that nothing uses (DCE)", "", always, plain(remove_dead),
       "after all rewrites: what they replaced would be lowered too"},
      {"embed-constants", "hands nested graphs their constants", "", always, plain(embed_constants),
       "last: nested graphs are compiled by themselves, and fold and pack what is their own"},
  };
  return passes;
}

std::vector<Pass> target_pipeline(const TargetContext& context) {
  std::vector<Pass> pipeline;
  for (const TargetPass& pass : target_passes())
    if (pass.applies(context))
      pipeline.push_back(
          {.name = pass.name,
           .doc = pass.doc,
           .run = [&pass, &context](Graph& graph, Journal& journal) { pass.run(graph, journal, context); },
           .why_here = pass.why_here});
  return pipeline;
}

}  // namespace tenon
