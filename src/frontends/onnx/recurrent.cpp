// recurrent.cpp — ONNX recurrent layers: RNN, GRU, LSTM.
#include <algorithm>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

// What we call an activation, and which numbers it takes from the lists of a node.
struct ActivationName {
  std::string_view onnx, ours;
  bool takes_alpha = false, takes_beta = false;
  double alpha = 0, beta = 0;  // where the lists have none left
};

constexpr ActivationName kActivations[] = {
    {"affine", "affine", true, true, 1, 0},
    {"elu", "elu", true, false, 1},
    {"hardsigmoid", "hard_sigmoid", true, true, 0.2, 0.5},
    {"leakyrelu", "leaky_relu", true, false, 0.01},
    {"relu", "relu"},
    {"scaledtanh", "scaled_tanh", true, true, 1, 1},
    {"sigmoid", "sigmoid"},
    {"softplus", "softplus"},
    {"softsign", "softsign"},
    {"tanh", "tanh"},
    {"thresholdedrelu", "thresholded_relu", true, false, 1},
};

// The numbers in activation_alpha and activation_beta are for those activations that take some, in order.
void add_activations(const NodeView& n, Attributes& attributes) {
  if (!n.has("activations"))
    return;
  // The default of ONNX's schema, also for one direction: ONNX Runtime writes it into nodes that have none.
  if (n.op_type() == "RNN" && n.texts("activations") == std::vector<std::string>{"Tanh", "Tanh"})
    return;
  const std::vector<double> alphas =
      n.has("activation_alpha") ? n.reals("activation_alpha") : std::vector<double>();
  const std::vector<double> betas =
      n.has("activation_beta") ? n.reals("activation_beta") : std::vector<double>();
  auto alpha = alphas.begin(), beta = betas.begin();
  Attribute::Strings names;
  Attribute::Floats own_alphas, own_betas;
  for (std::string name : n.texts("activations")) {
    const std::string given = name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto it = std::find_if(std::begin(kActivations), std::end(kActivations),
                                 [&](const ActivationName& a) { return a.onnx == name; });
    if (it == std::end(kActivations))
      throw user_error("{}: there is no activation \"{}\"", n.op_type(), given);
    names.emplace_back(it->ours);
    own_alphas.push_back(it->takes_alpha && alpha != alphas.end() ? *alpha++ : it->alpha);
    own_betas.push_back(it->takes_beta && beta != betas.end() ? *beta++ : it->beta);
  }
  attributes.emplace("activations", names);
  if (!alphas.empty())
    attributes.emplace("alpha", own_alphas);
  if (!betas.empty())
    attributes.emplace("beta", own_betas);
}

Value swap_time_and_batch(Value x) { return x ? transpose(x, {1, 0, 2}) : x; }

std::vector<Value> convert_recurrent(const NodeView& n, std::string_view op, Attributes attributes) {
  attributes.emplace("direction", n.text("direction", "forward"));
  if (n.has("clip"))
    attributes.emplace("clip", n.real("clip"));
  add_activations(n, attributes);
  // Layout 1 has the batch in front; ours is layout 0.
  const bool batch_first = n.flag("layout", false);
  const auto state = [&](size_t index) {
    return batch_first ? swap_time_and_batch(n.maybe(index)) : n.maybe(index);
  };
  std::vector<Operand> operands = {{"x", batch_first ? swap_time_and_batch(n.in(0)) : n.in(0)},
                                   {"w", n.in(1)},
                                   {"r", n.in(2)},
                                   {"bias", n.maybe(3)},
                                   {"lengths", n.maybe(4)},
                                   {"initial_h", state(5)}};
  if (op == "lstm") {
    operands.emplace_back("initial_c", state(6));
    operands.emplace_back("peepholes", n.maybe(7));
  }
  std::vector<Value> results = n.make(op, std::move(operands), std::move(attributes));
  if (batch_first) {
    results[0] = transpose(results[0], {2, 0, 1, 3});
    for (size_t i = 1; i < results.size(); ++i)
      results[i] = swap_time_and_batch(results[i]);
  }
  return results;
}

std::vector<Value> convert_rnn(const NodeView& n) { return convert_recurrent(n, "rnn", {}); }
std::vector<Value> convert_gru(const NodeView& n) {
  return convert_recurrent(n, "gru", {{"reset_after", n.flag("linear_before_reset", false)}});
}
std::vector<Value> convert_lstm(const NodeView& n) {
  return convert_recurrent(n, "lstm", {{"coupled_gates", n.flag("input_forget", false)}});
}

}  // namespace

const Conversions& recurrent_conversions() {
  static const Conversions conversions = {
      {"GRU", convert_gru},
      {"LSTM", convert_lstm},
      {"RNN", convert_rnn},
  };
  return conversions;
}

}  // namespace tenon::onnx
