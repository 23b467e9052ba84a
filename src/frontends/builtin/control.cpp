// control.cpp — built-in models with control flow: a branch, a loop, a scan.
#include "ops/control.h"

#include "frontends/builtin/builtin.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/trace.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::builtin {
namespace {

// 2x where the sum of x is positive, else x - 1.
std::unique_ptr<Graph> cond() {
  return trace({f32({4, 4})}, [](Value x) {
    Graph& graph = x.graph();
    const Value condition = greater(reduce_sum(x, {0, 1}), scalar(graph, DType::F32, 0));
    Region then = trace_region(graph, "then", {x.type()}, [](Value y) { return y * 2.0; });
    Region otherwise = trace_region(graph, "else", {x.type()}, [](Value y) { return y - 1.0; });
    return if_else(condition, {x}, std::move(then), std::move(otherwise));
  });
}

// Five times x = 1.5 relu(x) + 0.1, counted by i.
std::unique_ptr<Graph> while_loop_model() {
  return trace({f32({4, 4})}, [](Value x) {
    Graph& graph = x.graph();
    const Value i = scalar(graph, DType::I64, 0);
    const Value condition = less(i, scalar(graph, DType::I64, 5));
    Region body = trace_region(graph, "body", {{i64({}), "iteration"}, {i64({}), "i"}, {x.type(), "x"}},
                               [](Value iteration, Value counted, Value y) {
                                 const Value next = counted + 1.0;
                                 const Value go_on = less(next, scalar(iteration.graph(), DType::I64, 5));
                                 return std::vector<Value>{go_on, next, relu(y) * 1.5 + 0.1};
                               });
    return while_loop(graph, {.condition = condition, .carried = {i, x}}, std::move(body)).back();
  });
}

// Along the rows of x: carried = 0.5 carried + row; what is collected is the product of both before that.
std::unique_ptr<Graph> scan_model() {
  return trace({f32({6, 4})}, [](Value x) {
    Graph& graph = x.graph();
    const Value zeros = constant(graph, Literal::splat(filled(DType::F32, {}, 0), {4}));
    const Type row = f32({4});
    Region body =
        trace_region(graph, "body", {{row, "carried"}, {row, "row"}}, [](Value carried, Value slice) {
          return std::vector<Value>{carried * 0.5 + slice, carried * slice};
        });
    const Scan over_rows = {.carried = {zeros},
                            .scanned = {x},
                            .axes = {0},
                            .reversed = {0},
                            .output_axes = {0},
                            .output_reversed = {0}};
    return scan(graph, over_rows, std::move(body)).back();
  });
}

}  // namespace

const Models& control_models() {
  static const Models models = {
      {"cond", "one of two branches, by the sign of a sum", cond},
      {"while_loop", "a loop of five iterations", while_loop_model},
      {"scan", "a recurrence along the rows", scan_model},
  };
  return models;
}

}  // namespace tenon::builtin
