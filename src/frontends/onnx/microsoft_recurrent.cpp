// microsoft_recurrent.cpp — ONNX Runtime's LSTM by quantised weights: products of bytes in each step, whose
// other factors are quantised there.
#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// One direction of the layer.
class DirectionOfBytes {
 public:
  DirectionOfBytes(const NodeView& n, int64_t direction, bool backward)
      : n_(n), graph_(n.graph()), direction_(direction), backward_(backward) {}

  // y [time, batch, hidden], the last h, the last c.
  std::vector<Value> make() const {
    const Value x = n_.in(0), r = part(2);
    Value sums = product(x, part(1), part(8), part(9));
    if (n_.maybe(3))
      sums = sums + bias();
    const Value shape = concat({size_along(x, 1), size_along(r, 0)}, 0);
    const Scan loop = {.carried = {initial(5, shape), initial(6, shape)},
                       .scanned = {sums},
                       .captured = {r, part(10), part(11)},
                       .axes = {0},
                       .reversed = {backward_ ? 1 : 0},
                       .output_axes = {0},
                       .output_reversed = {backward_ ? 1 : 0}};
    TracedInputs inputs;
    for (Value value : loop.carried)
      inputs.push_back({value.type()});
    inputs.push_back({Type::tensor(sums.dtype(), {sums.dim(1), sums.dim(2)})});
    for (Value value : loop.captured)
      inputs.push_back({value.type()});
    const std::vector<Value> results =
        scan(graph_, loop, trace_region(graph_, "body", inputs, [&](const std::vector<Value>& in) {
               return step(in[0], in[1], in[2] + product(in[0], in[3], in[4], in[5]));
             }));
    return {results[2], results[0], results[1]};
  }

 private:
  // Of an input that has a part for each direction.
  Value part(size_t index) const { return squeeze(slice(n_.in(index), 0, direction_, direction_ + 1), {0}); }

  // Rows x, quantised by the range of all of them, with the bytes w.
  Value product(Value x, Value w, Value scale, Value zero_point) const {
    return find_conversion(kDomain, "DynamicQuantizeMatMul")
        ->convert(n_.with({x, w, scale, zero_point, {}}, 1))
        .front();
  }

  // For the input and for the state, in one.
  Value bias() const {
    const Value both = reshape(part(3), {2, -1});
    return squeeze(slice(both, 0, 0, 1) + slice(both, 0, 1, 2), {0});
  }

  Value initial(size_t index, Value shape) const {
    return n_.maybe(index) ? reshape(part(index), shape) : fill(shape, filled(DType::F32, {}, 0));
  }

  // The next h and c, and what is put out.
  static std::vector<Value> step(Value h, Value c, Value sums) {
    const std::vector<Value> gates =
        split(sums, concat(std::vector<Value>(4, size_along(h, 1)), 0), -1);  // in, out, forget, cell
    const Value next = sigmoid(gates[2]) * c + sigmoid(gates[0]) * tanh(gates[3]);
    const Value y = sigmoid(gates[1]) * tanh(next);
    return {y, next, y};
  }

  const NodeView& n_;
  Graph& graph_;
  int64_t direction_;
  bool backward_;
};

std::vector<Value> convert_dynamic_quantize_lstm(const NodeView& n) {
  if (n.has("activations") || n.has("clip") || n.flag("input_forget", false) || n.maybe(4) || n.maybe(7))
    throw unsupported("DynamicQuantizeLSTM: activations, clip, input_forget, sequence_lens or peepholes");
  for (size_t i : {0, 1, 2})
    if (n.rank_of(n.in(i)) != 3)
      throw user_error("DynamicQuantizeLSTM: {} has rank {}, but must have 3", n.in(i).type(),
                       n.in(i).rank());
  enum class Kind { Forward, Reverse, Both };
  const auto kind = n.translate<Kind>(
      "direction", "forward",
      {{"forward", Kind::Forward}, {"reverse", Kind::Reverse}, {"bidirectional", Kind::Both}});
  const std::vector<Value> first = DirectionOfBytes(n, 0, kind == Kind::Reverse).make();
  const std::vector<Value> second =
      kind == Kind::Both ? DirectionOfBytes(n, 1, true).make() : std::vector<Value>();
  std::vector<Value> results;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t axis = i == 0 ? 1 : 0;
    const Value one = unsqueeze(first[i], {axis});
    results.push_back(second.empty() ? one : concat({one, unsqueeze(second[i], {axis})}, axis));
  }
  return results;
}

}  // namespace

const Conversions& microsoft_recurrent_conversions() {
  static const Conversions conversions = {
      {"DynamicQuantizeLSTM", convert_dynamic_quantize_lstm, kDomain},
  };
  return conversions;
}

}  // namespace tenon::onnx
