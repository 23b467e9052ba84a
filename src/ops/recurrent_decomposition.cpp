#include "ops/recurrent_decomposition.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/layer.h"
#include "ops/recurrent_layers.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/trace.h"

namespace tenon {
namespace {

// What the steps of one direction take from outside, as nodes; those of cells and gates as in those
// that are evaluated.
struct CellNodes {
  std::span<const RecurrentFunction> functions;
  bool variant;
  Value r, r_bias, peepholes;  // of the direction; empty: none
};

struct StateNodes {
  Value h, c;
};

// Each gate's columns of x.
std::vector<Value> gates_of(Value x, Value h, int64_t count) {
  return split(x, concat(std::vector<Value>(static_cast<size_t>(count), size_along(h, 1)), 0), -1);
}

StateNodes rnn_nodes(const CellNodes& cell, Value from_x, StateNodes state) {
  return {cell.functions[0](from_x + linear(state.h, cell.r, cell.r_bias)), {}};
}

StateNodes gru_nodes(const CellNodes& cell, Value from_x, StateNodes state) {
  const Value h = state.h;
  const std::vector<Value> x = gates_of(from_x, h, 3), past = gates_of(linear(h, cell.r, cell.r_bias), h, 3);
  const Value update = cell.functions[0](x[0] + past[0]), reset = cell.functions[0](x[1] + past[1]);
  Value from_h = reset * past[2];
  if (!cell.variant)
    from_h = gates_of(linear(reset * h, cell.r, cell.r_bias), h, 3)[2];
  return {(1.0 - update) * cell.functions[1](x[2] + from_h) + update * h, {}};
}

StateNodes lstm_nodes(const CellNodes& cell, Value from_x, StateNodes state) {
  const Value h = state.h;
  const std::vector<Value> sums = gates_of(from_x + linear(h, cell.r, cell.r_bias), h, 4);
  const std::vector<Value> peepholes =
      cell.peepholes ? gates_of(unsqueeze(cell.peepholes, {0}), h, 3) : std::vector<Value>();
  const auto peek = [&](size_t gate, Value c) {
    return peepholes.empty() ? sums[gate] : sums[gate] + peepholes[gate] * c;
  };
  const Value input = cell.functions[0](peek(0, state.c));
  const Value forget = cell.variant ? 1.0 - input : cell.functions[0](peek(2, state.c));
  const Value c = forget * state.c + input * cell.functions[1](sums[3]);
  return {cell.functions[0](peek(1, c)) * cell.functions[2](c), c};
}

// One direction of a layer as a scan over its steps, or as its only step.
template <const RecurrentLayer& layer, auto step>
class DirectionNodes {
 public:
  DirectionNodes(const Node& n, int64_t direction)
      : n_(n),
        graph_(n.graph()),
        x_(n.in("x")),
        direction_(direction),
        backward_(direction_of(n) == Direction::Reverse || direction == 1),
        by_length_(n.has("lengths")),
        hidden_(size_along(n.in("r"), 2)),
        batch_(size_along(x_, 1)),
        functions_(recurrent_functions(n, layer)) {
    const Value rows = size_along(n.in("r"), 1), bias = of_direction("bias");
    if (bias) {
      x_bias_ = slice(bias, int_vector(graph_, {0}), rows, {0});
      r_bias_ = slice(bias, rows, rows + rows, {0});
    }
  }

  // The results: y [time, batch, hidden], the last h, and where there is one the last c.
  std::vector<Value> make() const {
    const Scan loop = make_loop();
    std::vector<Value> results = x_.dim(0) == Dim(1) ? make_only_iteration(loop) : make_iterations(loop);
    if (backward_ && by_length_)
      results.back() = reversed(results.back());
    std::rotate(results.begin(), results.end() - 1, results.end());
    return results;
  }

 private:
  Value of_direction(std::string_view name) const {
    if (n_.op().find_operand(name) == nullptr || !n_.has(name))
      return {};
    const Value all = n_.in(name);
    return squeeze(direction_count(n_) == 1 ? all : slice(all, 0, direction_, direction_ + 1), {0});
  }

  Value initial(std::string_view name) const {
    const Value shape = concat({batch_, hidden_}, 0), given = of_direction(name);
    return given ? reshape(given, shape) : fill(shape, filled(x_.dtype(), {}, 0));
  }

  Value lengths() const { return cast(n_.in("lengths"), DType::I64); }

  Value reversed(Value value) const {
    return graph_
        .create("reverse_sequence", {{"x", value}, {"lengths", lengths()}},
                {{"time_axis", 0}, {"batch_axis", 1}})
        ->result();
  }

  Scan make_loop() const {
    Value from_x = linear(x_, of_direction("w"), x_bias_);
    if (backward_ && by_length_)
      from_x = reversed(from_x);
    Scan loop = {.carried = {initial("initial_h")}, .scanned = {from_x}};
    if (layer.has_cell_state)
      loop.carried.push_back(initial("initial_c"));
    if (by_length_) {
      const auto number = [&](int64_t value) { return constant(graph_, Tensor::scalar(value)); };
      loop.scanned.push_back(range(number(0), squeeze(size_along(x_, 0), {0}), number(1)));
      loop.captured.push_back(reshape(lengths(), concat({batch_, int_vector(graph_, {1})}, 0)));
    }
    loop.captured.push_back(of_direction("r"));
    for (Value optional : {r_bias_, of_direction("peepholes")})
      if (optional)
        loop.captured.push_back(optional);
    const int64_t from_end = backward_ && !by_length_ ? 1 : 0;
    loop.axes.assign(loop.scanned.size(), 0);
    loop.reversed.assign(loop.scanned.size(), from_end);
    loop.output_axes = {0};
    loop.output_reversed = {from_end};
    return loop;
  }

  std::vector<Value> make_iterations(const Scan& loop) const {
    auto body = trace_region(graph_, "body", iteration_inputs(loop),
                             [&](const std::vector<Value>& inputs) { return make_iteration(inputs); });
    return scan(graph_, loop, std::move(body));
  }

  // What streams give a layer is often one step, which needs no loop.
  std::vector<Value> make_only_iteration(const Scan& loop) const {
    std::vector<Value> inputs = loop.carried;
    for (Value value : loop.scanned)
      inputs.push_back(squeeze(value, {0}));
    inputs.insert(inputs.end(), loop.captured.begin(), loop.captured.end());
    std::vector<Value> results = make_iteration(inputs);
    results.back() = unsqueeze(results.back(), {0});
    return results;
  }

  static TracedInputs iteration_inputs(const Scan& loop) {
    TracedInputs inputs;
    for (Value value : loop.carried)
      inputs.push_back({value.type()});
    for (Value value : loop.scanned)
      inputs.push_back({Type::tensor(
          value.dtype(), std::vector<Dim>(value.shape().dims().begin() + 1, value.shape().dims().end()))});
    for (Value value : loop.captured)
      inputs.push_back({value.type()});
    return inputs;
  }

  // The nodes of one iteration, from the inputs that make_loop says.
  std::vector<Value> make_iteration(const std::vector<Value>& inputs) const {
    auto input = inputs.begin();
    const StateNodes state = {*input++, layer.has_cell_state ? *input++ : Value()};
    const Value sums = *input++, iteration = by_length_ ? *input++ : Value(),
                lengths = by_length_ ? *input++ : Value();
    CellNodes cell = {
        std::span(functions_).subspan(static_cast<size_t>(direction_) * layer.activations, layer.activations),
        layer.has_variant && n_.attr(layer.has_cell_state ? "coupled_gates" : "reset_after"),
        *input++,
        r_bias_ ? *input++ : Value(),
        {}};
    cell.peepholes = input != inputs.end() ? *input : Value();
    StateNodes next = step(cell, sums, state);
    Value y = next.h;
    if (by_length_) {  // beyond its length an example stays as it is, and gives 0
      const Value going = less(iteration, lengths);
      y = keep_where(going, next.h);
      next.h = where(going, next.h, state.h);
      next.c = layer.has_cell_state ? where(going, next.c, state.c) : Value();
    }
    return layer.has_cell_state ? std::vector<Value>{next.h, next.c, y} : std::vector<Value>{next.h, y};
  }

  const Node& n_;
  Graph& graph_;
  Value x_;
  int64_t direction_;
  bool backward_, by_length_;
  Value hidden_, batch_, x_bias_, r_bias_;
  std::vector<RecurrentFunction> functions_;
};

template <const RecurrentLayer& layer, auto step>
std::vector<Value> decompose(const Node& n) {
  std::vector<std::vector<Value>> parts(static_cast<size_t>(n.result_count()));
  for (int64_t direction = 0; direction < direction_count(n); ++direction) {
    const std::vector<Value> results = DirectionNodes<layer, step>(n, direction).make();
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].push_back(unsqueeze(results[i], {i == 0 ? 1 : 0}));
  }
  std::vector<Value> whole;
  for (size_t i = 0; i < parts.size(); ++i)
    whole.push_back(parts[i].size() == 1 ? parts[i].front() : concat(parts[i], i == 0 ? 1 : 0));
  return whole;
}

}  // namespace

std::vector<Value> decompose_rnn(const Node& n) { return decompose<kRnn, rnn_nodes>(n); }
std::vector<Value> decompose_gru(const Node& n) { return decompose<kGru, gru_nodes>(n); }
std::vector<Value> decompose_lstm(const Node& n) { return decompose<kLstm, lstm_nodes>(n); }

}  // namespace tenon
