// replace_pattern.h — a rewrite written as two functions, as in torch.fx: every place that computes what the
// first does computes what the second does instead.
//
//   replace_pattern(graph, [](Value x) { return x * sigmoid(x); }, [](Value x) { return silu(x); });
//
// An occurrence is a piece of the graph that the pattern would be traced to, if it were traced with the
// values that the piece is made of: the same ops, attributes and constants. So the inputs of the pattern
// stand for values of any dtype and shape, and what a function takes from them (x.dim(1), x.rank(),
// x.dtype()) counts as it is there. Operands of a commutative op may stand in either order, a constant beside
// an elementwise op may be broadcast (2.0 is any tensor of twos), and two inputs may be one value. Nothing
// outside of the piece may use what lies within, unless it is a result. Parameters are no constants.
#pragma once

#include "ops/trace.h"
#include "rewrite/journal.h"

namespace tenon {

// A function as `trace` takes it, of any number of values.
class TracedFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, TracedFunction>) TracedFunction(F function)
      : call_([function](const std::vector<Value>& inputs) mutable {
          return tracing::apply(function, inputs);
        }) {
    if constexpr (constexpr size_t count = tracing::count_values<F>(); count <= tracing::kMostValues)
      input_count_ = count;
  }

  // Nothing for a function that takes a vector.
  std::optional<size_t> input_count() const { return input_count_; }
  std::vector<Value> operator()(const std::vector<Value>& inputs) const { return call_(inputs); }

 private:
  std::optional<size_t> input_count_;
  std::function<std::vector<Value>(const std::vector<Value>&)> call_;
};

struct PatternRewrite {
  std::string name = "replace-pattern";  // for the journal
  // How exact it is: what verifying and bisecting hold it to. One that the journal's budget does not allow is
  // left out.
  Numerics numerics = Numerics::Reassociates;
  // What the pattern is traced with to learn its form; without any, f32 tensors of unknown rank. They say
  // nothing about what it may stand for, but functions that ask for a rank need one.
  TracedInputs inputs = {};
  TracedFunction pattern;
  // Called at each occurrence with the values that the inputs stand for. What it gives must have the types of
  // what it replaces; where it gives an empty Value, the occurrence stays as it is.
  TracedFunction replacement;
};

// Replaces every occurrence, in nested graphs too, but not in what replacements made. Of those that overlap,
// the first in the graph's order counts. Returns how many were replaced.
int64_t replace_pattern(Graph& graph, const PatternRewrite& rewrite, Journal& journal);
int64_t replace_pattern(Graph& graph, TracedFunction pattern, TracedFunction replacement);

// Both functions as formulas: (exp(x0) * exp(x1)) => exp((x0 + x1)). A replacement that asks more of its
// values than the pattern is told by these words alone, and what a formula is too long for by an ellipsis.
std::string formula_of(const PatternRewrite& rewrite);

}  // namespace tenon
