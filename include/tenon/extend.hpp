// extend.hpp — a tenon of your own: its command line, with rewrites and passes that you add to its optimiser.
//
//   int main(int argc, char** argv) {
//     tenon::add_rewrite({.name = "my-rule",
//                         .numerics = tenon::Numerics::BitExact,
//                         .pattern = [](tenon::Value x) { return relu(relu(x)); },
//                         .replacement = [](tenon::Value x) { return relu(x); }});
//     return tenon::command_line(argc, argv);
//   }
//
// What is added takes part in all that tenon does: optimize, verify, bisect, bench and the others. Link
// tenon::rooms. Unlike tenon.h and tenon.hpp, this shows graphs as Tenon itself has them, so that it may
// change with its version.
#pragma once

// Graphs, what passes write down, and add_pass, add_rewrite and add_op themselves.
#include "frontends/onnx/added_ops.h"
#include "passes/pipeline.h"
#include "rewrite/apply.h"
#include "rewrite/replace_pattern.h"
#include "rewrite/rule.h"

// What the functions of an op are written with.
#include "base/error.h"
#include "ir/evaluate.h"
#include "ops/shapes.h"
#include "tensor/wide.h"

// The ops as functions of values. One that has none is made by its name, as `tenon ops NAME` shows it:
//   x.graph().create("lp_pool", {{"x", x}}, {{"kernel", Attribute::Ints{2, 2}}})->result()
#include "ops/activation.h"
#include "ops/arg_reduce.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/convolve.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/determinant.h"
#include "ops/einsum.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/layer.h"
#include "ops/linear.h"
#include "ops/loss.h"
#include "ops/module.h"
#include "ops/normalise.h"
#include "ops/pad.h"
#include "ops/pool.h"
#include "ops/quantise.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/rotary.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/sequence.h"
#include "ops/signal.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/unary.h"

namespace tenon {

// What the program `tenon` does with these arguments. Returns its exit status: 0 done, 1 the answer is no, 2
// the input is at fault, or what was added, 3 a bug. To be called once, when all is added.
int command_line(int argc, char** argv);

}  // namespace tenon
