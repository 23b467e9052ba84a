#include "passes/target/dft_to_matmul.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "passes/target/factored_dft.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kLongest = 1 << 20;  // signal that is transformed here: constants are as long

// A transform along the last axis but one, the last being of parts.
struct Lengths {
  int64_t given, signal, result;
};

// A real signal is the real part of what the first half of its spectrum gives, if all but what mirrors itself
// counts twice. What mirrors itself is real, whatever is given for its imaginary part.
Value half_of_spectrum(Value x, int64_t signal) {
  const int64_t count = *x.dim(-2).constant();
  std::vector<double> weights(static_cast<size_t>(count), 2);
  std::vector<int64_t> counts(static_cast<size_t>(2 * count), 1);
  for (const int64_t k : {int64_t{0}, signal / 2})
    if (2 * k % signal == 0 && k < count) {
      weights[static_cast<size_t>(k)] = 1;
      counts[static_cast<size_t>(2 * k + 1)] = 0;
    }
  Graph& graph = x.graph();
  const Value mask = constant(graph, narrow<int64_t>(DType::Bool, {count, 2}, counts));
  return where(mask, x, scalar(graph, x.dtype(), 0)) *
         constant(graph, narrow<double>(x.dtype(), {count, 1}, weights));
}

Value multiplied(const Node& dft, Value x, const Lengths& lengths) {
  const bool inverse = dft.attr("inverse"), real_result = inverse && dft.attr("onesided");
  x = slice(x, -2, 0, std::min(lengths.given, real_result ? lengths.signal / 2 + 1 : lengths.signal));
  if (real_result)
    x = half_of_spectrum(x, lengths.signal);
  return factored_dft(transpose_last_two(x), {lengths.signal, lengths.result, real_result ? 1 : 2}, inverse);
}

std::optional<Value> product_for(const Node& dft) {
  const Value x = dft.in("x");
  if (dft.is_late("axis") || !x.shape().ranked() || (x.dtype() != DType::F32 && x.dtype() != DType::F64) ||
      (dft.has("length") && !known_number(dft, "length").is_constant()))
    return std::nullopt;
  const int64_t axis = checked_axis("dft", dft.attr("axis"), x.rank());
  const std::optional<int64_t> given = x.dim(axis).constant(), parts = x.dim(-1).constant(),
                               result = dft.result().dim(axis).constant();
  if (!given || !parts || !result || std::min({*given, *parts, *result}) < 1)
    return std::nullopt;
  const int64_t signal = dft.has("length") ? *known_number(dft, "length").constant()
                         : dft.attr("onesided") && dft.attr("inverse") ? *result
                                                                       : *given;
  if (signal > kLongest)
    return std::nullopt;

  // The axis of the signal next to the last.
  std::vector<int64_t> order, back(static_cast<size_t>(x.rank()));
  for (int64_t i = 0; i + 1 < x.rank(); ++i)
    if (i != axis)
      order.push_back(i);
  order.insert(order.end(), {axis, x.rank() - 1});
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return transpose(multiplied(dft, transpose(x, order), {*given, signal, *result}), back);
}

}  // namespace

void dft_to_matmul(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("dft"))
      continue;
    if (!journal.is_open())
      return;
    const InsertBefore here(node);
    const WithSources sources(*node);
    if (const std::optional<Value> product = product_for(*node);
        product && product->type() == node->result().type()) {
      journal.applied("dft-to-matmul", {node}, Numerics::Reassociates);
      graph.replace(node, {*product});
    }
  }
}

}  // namespace tenon
