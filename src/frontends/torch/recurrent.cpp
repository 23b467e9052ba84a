// recurrent.cpp — PyTorch's recurrent layers: RNN, GRU, LSTM, of several layers and directions.
#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

// How a kind of layer differs: the gates of our weights are these of PyTorch's.
struct Kind {
  std::string_view op;
  std::vector<int64_t> gates;
  Attributes attributes = {};
};

// The rows of a weight or bias belong to gates; in our order.
Value reordered(Value weight, const std::vector<int64_t>& gates) {
  const auto rows = weight.dim(0).constant();
  if (!rows || *rows % static_cast<int64_t>(gates.size()) != 0)
    throw user_error("a weight {} has no {} gates", weight.type(), gates.size());
  if (gates.size() == 1)
    return weight;
  const std::vector<Value> parts =
      split(weight, std::vector<int64_t>(gates.size(), *rows / static_cast<int64_t>(gates.size())), 0);
  std::vector<Value> ordered;
  for (int64_t gate : gates)
    ordered.push_back(parts[static_cast<size_t>(gate)]);
  return concat(ordered, 0);
}

// What each direction has, stacked.
Value stacked(const std::vector<Value>& directions) {
  std::vector<Value> parts;
  for (Value each : directions)
    parts.push_back(unsqueeze(each, {0}));
  return parts.size() == 1 ? parts.front() : concat(parts, 0);
}

struct Layers {
  const NodeView& n;
  const Kind& kind;
  bool biases = n.flag("has_biases", true);
  int64_t directions = n.flag("bidirectional", false) ? 2 : 1;
  std::vector<Value> weights = n.tensors("params");

  // The weights of one layer: of each direction that of the input, that of the state, and two biases.
  std::vector<Operand> operands_of(size_t layer) const {
    const size_t each = biases ? 4 : 2, count = static_cast<size_t>(directions);
    if (weights.size() < (layer + 1) * count * each)
      throw user_error("{}: it has {} weights, but layer {} needs more", n.op(), weights.size(), layer);
    std::vector<Value> w, r, bias;
    for (size_t direction = 0; direction < count; ++direction) {
      const Value* own = &weights[(layer * count + direction) * each];
      w.push_back(reordered(own[0], kind.gates));
      r.push_back(reordered(own[1], kind.gates));
      if (biases)
        bias.push_back(concat({reordered(own[2], kind.gates), reordered(own[3], kind.gates)}, 0));
    }
    return {{"w", stacked(w)}, {"r", stacked(r)}, {"bias", biases ? stacked(bias) : Value()}};
  }

  // The part of the initial state, or of what it is at the end, that belongs to one layer.
  Value state_of(Value all, int64_t layer) const {
    return slice(all, 0, layer * directions, (layer + 1) * directions);
  }
};

std::vector<Value> recurrent(const NodeView& n, const Kind& kind, const std::vector<Value>& states) {
  n.ignore("dropout");
  if (n.flag("train", false) && n.real("dropout", 0) != 0)
    throw unsupported("{} while training\n  hint: call model.eval() before the export", n.op());
  const Layers layers = {n, kind};
  const bool batch_first = n.flag("batch_first", false);
  Value x = n.tensor("input");
  if (n.rank_of(x) != 3)
    throw unsupported("{}: its input is {}", n.op(), x.type());
  x = batch_first ? transpose(x, {1, 0, 2}) : x;
  std::vector<std::vector<Value>> last(states.size());
  for (int64_t layer = 0; layer < n.integer("num_layers", 1); ++layer) {
    std::vector<Operand> operands = layers.operands_of(static_cast<size_t>(layer));
    operands.emplace_back("x", x);
    constexpr std::string_view names[] = {"initial_h", "initial_c"};
    for (size_t i = 0; i < states.size(); ++i)
      operands.emplace_back(names[i], layers.state_of(states[i], layer));
    Attributes attributes = kind.attributes;
    attributes.emplace("direction", layers.directions == 2 ? "bidirectional" : "forward");
    const std::vector<Value> results = n.make(kind.op, operands, attributes);
    // [time, directions, batch, hidden] as [time, batch, directions · hidden]
    const auto hidden = results[0].dim(3).constant();
    if (!hidden)
      throw unsupported("{}: a state of dynamic size", n.op());
    x = layers.directions == 1 ? squeeze(results[0], {1})
                               : n.make_one("reshape",
                                            {{"x", transpose(results[0], {0, 2, 1, 3})},
                                             {"shape", n.vector({int64_t{0}, int64_t{0}, 2 * *hidden})}},
                                            {{"allow_zero", false}});
    for (size_t i = 0; i < states.size(); ++i)
      last[i].push_back(results[i + 1]);
  }
  std::vector<Value> results = {batch_first ? transpose(x, {1, 0, 2}) : x};
  for (const std::vector<Value>& each : last)
    results.push_back(each.size() == 1 ? each.front() : concat(each, 0));
  return results;
}

std::vector<Value> convert_lstm(const NodeView& n) {
  // input, forget, candidate, output; ours are input, output, forget, candidate
  const Kind kind = {"lstm", {0, 3, 1, 2}};
  const std::vector<Value> states = n.tensors("hx");
  if (states.size() != 2)
    throw user_error("lstm: hx has {} tensors, but must have 2", states.size());
  return recurrent(n, kind, states);
}
std::vector<Value> convert_gru(const NodeView& n) {
  // reset, update, candidate; ours are update, reset, candidate
  const Kind kind = {"gru", {1, 0, 2}, {{"reset_after", true}}};
  return recurrent(n, kind, {n.tensor("hx")});
}
Convert plain(std::string_view activation) {
  return [activation](const NodeView& n) {
    const std::string name(activation);
    const bool both = n.flag("bidirectional", false);
    const Kind kind = {
        "rnn", {0}, {{"activations", both ? Attribute::Strings{name, name} : Attribute::Strings{name}}}};
    return recurrent(n, kind, {n.tensor("hx")});
  };
}

}  // namespace

const Conversions& recurrent_conversions() {
  static const Conversions conversions = {
      {"gru.input", convert_gru},
      {"lstm.input", convert_lstm},
      {"rnn_relu.input", plain("relu")},
      {"rnn_tanh.input", plain("tanh")},
  };
  return conversions;
}

}  // namespace tenon::torch
