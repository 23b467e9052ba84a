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
// change with its version. Do not use it together with tenon.hpp in one file: both have a Program, for one.
#pragma once

// Graphs, what passes write down, and add_pass and add_rewrite themselves.
#include "passes/pipeline.h"
#include "rewrite/apply.h"
#include "rewrite/replace_pattern.h"
#include "rewrite/rule.h"

// The ops as functions of values, those that formulas are most often made of. Others are in ops/ too.
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/normalise.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace tenon {

// What the program `tenon` does with these arguments. Returns its exit status: 0 done, 1 the answer is no, 2
// the input is at fault, or what was added, 3 a bug. To be called once, when all is added.
int command_line(int argc, char** argv);

}  // namespace tenon
