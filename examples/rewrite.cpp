// rewrite.cpp — a rewrite of one's own: two functions that compute the same, and the proof that they do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/print.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/registry.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "rewrite/replace_pattern.h"
#include "verify/verify.h"

using namespace tenon;

// What is looked for: wherever it stands, whatever x and y are.
const TracedFunction gate = [](Value x, Value y) { return relu(x) * y; };

// What takes its place is traced anew for the x and y of each.
void select_gates(Graph& graph, Journal& journal) {
  const auto select = [](Value x, Value y) {
    const Value zero = scalar(x.graph(), x.dtype(), 0), product = x * y;
    return where(greater(x, zero), product, zero);
  };
  replace_pattern(graph, {.name = "select-gate", .pattern = gate, .replacement = select}, journal);
}

// This one is wrong below 0.
void forget_gates(Graph& graph, Journal& journal) {
  const auto product = [](Value x, Value y) { return x * y; };
  replace_pattern(graph, {.name = "forget-gate", .pattern = gate, .replacement = product}, journal);
}

std::string_view word(const Check& check) {
  return check.verdict == Verdict::Passed   ? "passed"
         : check.verdict == Verdict::Failed ? "FAILED"
                                            : "unknown";
}

int main() {
  register_ops();
  const Type rows = f32({Dim::symbol("n"), 8});
  const std::unique_ptr<Graph> model =
      trace({{rows, "x"}, {rows, "y"}}, [](Value x, Value y) { return relu(x + 1.0) * y; });
  fmt::print("{}", print(*model));

  const std::unique_ptr<Graph> rewritten = model->clone();
  Journal journal;
  select_gates(*rewritten, journal);
  fmt::print("{}", print(*rewritten));
  for (const Application& application : journal.applications())
    fmt::print("{}. {} for {}\n", application.number, application.rule, fmt::join(application.nodes, ", "));

  // As passes they can be verified, and be part of a pipeline.
  const Pass passes[] = {{"select-gates", "selects instead of multiplying by 0", select_gates, "alone"},
                         {"forget-gates", "multiplies without relu", forget_gates, "alone"}};
  for (const Pass& pass : passes) {
    const PassVerification proof = verify_pass(*model, pass);
    fmt::print("{}: numbers {}, gradients {}, lint {}\n", pass.name, word(proof.numbers),
               word(proof.gradients), word(proof.lint));
  }
}
