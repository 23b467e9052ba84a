#include "ops/recurrent.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/layer.h"
#include "ops/recurrent_activations.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/trace.h"
#include "ops/words.h"

namespace tenon {
namespace {

enum class Direction : uint8_t { Forward, Reverse, Both };

Direction direction_of(const Node& n) {
  return named<Direction>(
      n, "direction",
      {{"forward", Direction::Forward}, {"reverse", Direction::Reverse}, {"bidirectional", Direction::Both}});
}

int64_t direction_count(const Node& n) { return direction_of(n) == Direction::Both ? 2 : 1; }

// The functions of every direction in turn.
std::vector<RecurrentFunction> functions(const Node& n, size_t per_direction) {
  return recurrent_functions(n, per_direction, direction_count(n));
}

// --- shapes ---

// What differs between the layers.
struct Layer {
  int64_t gates;
  size_t activations;   // of one direction
  bool has_cell_state;  // besides the hidden one
  bool has_variant;     // gru: reset_after; lstm: coupled_gates
};
constexpr Layer kRnn = {1, 1, false, false}, kGru = {3, 2, false, true}, kLstm = {4, 3, true, true};

// The shape an operand must have, in terms of those before it.
struct OperandShape {
  std::string_view name;
  std::vector<Dim> dims;
};

std::vector<OperandShape> operand_shapes(const Layer& layer, int64_t directions, const Dim& time,
                                         const Dim& batch, const Dim& input, const Dim& hidden) {
  std::vector<OperandShape> shapes = {{"x", {time, batch, input}},
                                      {"w", {directions, layer.gates * hidden, input}},
                                      {"r", {directions, layer.gates * hidden, hidden}},
                                      {"bias", {directions, 2 * layer.gates * hidden}},
                                      {"lengths", {batch}},
                                      {"initial_h", {directions, batch, hidden}}};
  if (layer.has_cell_state) {
    shapes.push_back({"initial_c", {directions, batch, hidden}});
    shapes.push_back({"peepholes", {directions, 3 * hidden}});
  }
  return shapes;
}

template <const Layer& layer>
Types infer(const Node& n) {
  functions(n, layer.activations);
  const Value x = n.in("x"), r = n.in("r");
  for (Value value : {x, r})
    if (value.rank() != 3)
      throw operand_error(n, "x and r must be of rank 3");
  const int64_t directions = direction_count(n);
  const Dim time = x.dim(0), batch = x.dim(1), hidden = r.dim(2);
  for (const auto& [name, dims] : operand_shapes(layer, directions, time, batch, x.dim(2), hidden)) {
    if (!n.has(name))
      continue;
    const Value value = n.in(name);
    bool fits = value.rank() == static_cast<int64_t>(dims.size());
    for (int64_t i = 0; fits && i < value.rank(); ++i)
      fits = !provably_different(dims[static_cast<size_t>(i)], value.dim(i));
    if (!fits)
      throw operand_error(n, fmt::format("{} must be {}", name, Shape(dims)));
  }
  const Type last = Type::tensor(x.dtype(), {directions, batch, hidden});
  Types types = {Type::tensor(x.dtype(), {time, directions, batch, hidden}), last};
  if (layer.has_cell_state)
    types.push_back(last);
  return types;
}

// --- evaluation ---

// One direction of a layer.
struct Cell {
  size_t hidden;
  std::span<const double> r, r_bias, peepholes;
  std::span<const RecurrentFunction> functions;
  bool variant;
};

// The state of one example, and what the gates get from x at this time: w·x plus its bias.
struct Step {
  std::span<const double> from_x;
  std::vector<double> h, c;
};

double dot(const double* a, const double* b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

// What row `row` of the gates gets: from x, and through r from the hidden state.
double sum_at(const Cell& cell, const Step& step, size_t row, const std::vector<double>& h) {
  return step.from_x[row] + dot(&cell.r[row * cell.hidden], h.data(), cell.hidden);
}

void rnn_step(const Cell& cell, Step& step) {
  std::vector<double> h(cell.hidden);
  for (size_t j = 0; j < cell.hidden; ++j)
    h[j] = cell.functions[0](sum_at(cell, step, j, step.h) + cell.r_bias[j]);
  step.h = h;
}

// Gates: update z, reset r, and the candidate.
void gru_step(const Cell& cell, Step& step) {
  const size_t hidden = cell.hidden;
  std::vector<double> update(hidden), reset(hidden), reset_h(hidden), h(hidden);
  for (size_t j = 0; j < hidden; ++j) {
    update[j] = cell.functions[0](sum_at(cell, step, j, step.h) + cell.r_bias[j]);
    reset[j] = cell.functions[0](sum_at(cell, step, hidden + j, step.h) + cell.r_bias[hidden + j]);
    reset_h[j] = reset[j] * step.h[j];
  }
  for (size_t j = 0; j < hidden; ++j) {
    const size_t row = 2 * hidden + j;
    const double* r = &cell.r[row * hidden];
    // The reset works on what comes through r, or on the hidden state before it.
    const double from_h = cell.variant ? reset[j] * (dot(r, step.h.data(), hidden) + cell.r_bias[row])
                                       : dot(r, reset_h.data(), hidden) + cell.r_bias[row];
    h[j] = (1 - update[j]) * cell.functions[1](step.from_x[row] + from_h) + update[j] * step.h[j];
  }
  step.h = h;
}

// Gates: input i, output o, forget f, and the candidate; peepholes for i, o and f.
void lstm_step(const Cell& cell, Step& step) {
  const size_t hidden = cell.hidden;
  std::vector<double> h(hidden);
  const auto sum = [&](size_t gate, size_t j) {
    return sum_at(cell, step, gate * hidden + j, step.h) + cell.r_bias[gate * hidden + j];
  };
  const auto peek = [&](size_t gate, size_t j) {
    return cell.peepholes.empty() ? 0 : cell.peepholes[gate * hidden + j] * step.c[j];
  };
  for (size_t j = 0; j < hidden; ++j) {
    const double input = cell.functions[0](sum(0, j) + peek(0, j));
    const double forget = cell.variant ? 1 - input : cell.functions[0](sum(2, j) + peek(2, j));
    step.c[j] = forget * step.c[j] + input * cell.functions[1](sum(3, j));
    h[j] = cell.functions[0](sum(1, j) + peek(1, j)) * cell.functions[2](step.c[j]);
  }
  step.h = h;
}

// The operands as numbers; those that are left out are zero.
struct Operands {
  size_t time, batch, input, hidden, directions;
  std::vector<double> x, w, r, bias, initial_h, initial_c, peepholes;
  std::vector<size_t> lengths;
};

Operands read_operands(const Call& c, const Layer& layer) {
  const std::string_view op = c.node().op().name;
  const Tensor &x = c.in("x"), &r = c.in("r");
  if (x.rank() != 3 || r.rank() != 3)
    throw user_error("{}: x and r must be of rank 3, but are {} and {}", op, type_of(x), type_of(r));
  const int64_t directions = direction_count(c.node());
  for (const auto& [name, dims] :
       operand_shapes(layer, directions, x.extent(0), x.extent(1), x.extent(2), r.extent(2)))
    if (c.has(name) && !(Shape::of(c.in(name).extents()) == Shape(dims)))
      throw user_error("{}: {} must be {}, but is {}", op, name, Shape(dims), type_of(c.in(name)));
  const auto read = [&](std::string_view name, const Extents& extents) {
    return c.node().op().find_operand(name) != nullptr && c.has(name) ? widen<double>(c.in(name))
                                                                      : zeros<double>(extents);
  };
  const Extents state = {directions, x.extent(1), r.extent(2)};
  Operands all;
  all.time = static_cast<size_t>(x.extent(0));
  all.batch = static_cast<size_t>(x.extent(1));
  all.input = static_cast<size_t>(x.extent(2));
  all.hidden = static_cast<size_t>(r.extent(2));
  all.directions = static_cast<size_t>(directions);
  all.x = widen<double>(x);
  all.w = widen<double>(c.in("w"));
  all.r = widen<double>(r);
  all.bias = read("bias", {directions, 2, layer.gates, r.extent(2)});
  all.initial_h = read("initial_h", state);
  all.initial_c = read("initial_c", state);
  all.peepholes = read("peepholes", {0});
  all.lengths.assign(all.batch, all.time);
  if (c.has("lengths")) {
    const std::vector<int64_t> lengths = as_ints(c.in("lengths"));
    for (size_t b = 0; b < all.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > x.extent(0))
        throw user_error("{}: lengths[{}] is {}, but there are {} steps", op, b, lengths[b], x.extent(0));
      all.lengths[b] = static_cast<size_t>(lengths[b]);
    }
  }
  return all;
}

// Block `index` of a row-major array of blocks.
std::span<const double> block(const std::vector<double>& values, size_t index, size_t size) {
  return std::span(values).subspan(index * size, size);
}
std::vector<double> copy(std::span<const double> values) { return {values.begin(), values.end()}; }

// Every example of every direction on its own, step by step. Steps beyond an example's length give 0, and its
// last state is that after its own last step.
template <const Layer& layer, auto step>
Data eval(const Call& c) {
  const Node& n = c.node();
  const Operands in = read_operands(c, layer);
  const size_t hidden = in.hidden, rows = static_cast<size_t>(layer.gates) * hidden;
  const std::vector<RecurrentFunction> all_functions = functions(n, layer.activations);
  const bool variant = layer.has_variant && n.attr(layer.has_cell_state ? "coupled_gates" : "reset_after");
  const auto extent = [](size_t size) { return static_cast<int64_t>(size); };
  const Extents last = {extent(in.directions), extent(in.batch), extent(hidden)};
  const Extents every = {extent(in.time), last[0], last[1], last[2]};
  std::vector<double> y = zeros<double>(every), last_h, last_c, from_x(rows);
  for (size_t d = 0; d < in.directions; ++d) {
    const std::span<const double> w = block(in.w, d, rows * in.input);
    const std::span<const double> bias = block(in.bias, d, 2 * rows);
    const Cell cell = {hidden,
                       block(in.r, d, rows * hidden),
                       bias.subspan(rows),
                       in.peepholes.empty() ? std::span<const double>() : block(in.peepholes, d, 3 * hidden),
                       std::span(all_functions).subspan(d * layer.activations, layer.activations),
                       variant};
    const bool backward = direction_of(n) == Direction::Reverse || d == 1;
    for (size_t b = 0; b < in.batch; ++b) {
      const size_t example = d * in.batch + b;
      Step now = {from_x, copy(block(in.initial_h, example, hidden)),
                  copy(block(in.initial_c, example, hidden))};
      for (size_t k = 0; hidden > 0 && k < in.lengths[b]; ++k) {
        const size_t t = backward ? in.lengths[b] - 1 - k : k;
        const std::span<const double> x = block(in.x, t * in.batch + b, in.input);
        for (size_t row = 0; row < rows; ++row)
          from_x[row] = bias[row] + dot(w.data() + row * in.input, x.data(), in.input);
        step(cell, now);
        std::copy(now.h.begin(), now.h.end(),
                  y.begin() + extent(((t * in.directions + d) * in.batch + b) * hidden));
      }
      last_h.insert(last_h.end(), now.h.begin(), now.h.end());
      last_c.insert(last_c.end(), now.c.begin(), now.c.end());
    }
  }
  const DType dtype = c.in("x").dtype();
  Data results = {narrow<double>(dtype, every, y), narrow<double>(dtype, last, last_h)};
  if (layer.has_cell_state)
    results.emplace_back(narrow<double>(dtype, last, last_c));
  return results;
}

// --- decomposition: a scan over the steps, of all examples at once ---

// What the steps of one direction take from outside, as nodes; those of cells and gates as in the steps
// above.
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

// The results of one direction: y [time, batch, hidden], the last h, and where there is one the last c.
template <const Layer& layer, auto step>
std::vector<Value> decompose_direction(const Node& n, int64_t direction) {
  Graph& graph = n.graph();
  const Value x = n.in("x"), r = n.in("r");
  const auto of_direction = [&](std::string_view name) {
    const bool given = n.op().find_operand(name) != nullptr && n.has(name);
    return given ? squeeze(slice(n.in(name), 0, direction, direction + 1), {0}) : Value();
  };
  const Value hidden = size_along(r, 2), batch = size_along(x, 1), rows = size_along(r, 1);
  const Value bias = of_direction("bias");
  const Value x_bias = bias ? slice(bias, int_vector(graph, {0}), rows, {0}) : Value();
  const Value r_bias = bias ? slice(bias, rows, rows + rows, {0}) : Value();
  const auto initial = [&](std::string_view name) {
    const Value shape = concat({batch, hidden}, 0), given = of_direction(name);
    return given ? reshape(given, shape) : fill(shape, filled(x.dtype(), {}, 0));
  };
  const bool backward = direction_of(n) == Direction::Reverse || direction == 1, by_length = n.has("lengths");
  const auto reversed = [&](Value value) {
    return graph
        .create("reverse_sequence", {{"x", value}, {"lengths", cast(n.in("lengths"), DType::I64)}},
                {{"time_axis", 0}, {"batch_axis", 1}})
        ->result();
  };
  Value from_x = linear(x, of_direction("w"), x_bias);
  if (backward && by_length)
    from_x = reversed(from_x);
  Scan loop = {.carried = {initial("initial_h")}, .scanned = {from_x}};
  if (layer.has_cell_state)
    loop.carried.push_back(initial("initial_c"));
  if (by_length) {
    const auto number = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
    loop.scanned.push_back(range(number(0), squeeze(size_along(x, 0), {0}), number(1)));
    loop.captured.push_back(
        reshape(cast(n.in("lengths"), DType::I64), concat({batch, int_vector(graph, {1})}, 0)));
  }
  loop.captured.push_back(of_direction("r"));
  for (Value optional : {r_bias, of_direction("peepholes")})
    if (optional)
      loop.captured.push_back(optional);
  const int64_t from_end = backward && !by_length ? 1 : 0;
  loop.axes.assign(loop.scanned.size(), 0);
  loop.reversed.assign(loop.scanned.size(), from_end);
  loop.output_axes = {0};
  loop.output_reversed = {from_end};

  TracedInputs inputs;
  for (Value value : loop.carried)
    inputs.push_back({value.type()});
  for (Value value : loop.scanned)
    inputs.push_back({Type::tensor(
        value.dtype(), std::vector<Dim>(value.shape().dims().begin() + 1, value.shape().dims().end()))});
  for (Value value : loop.captured)
    inputs.push_back({value.type()});
  const std::vector<RecurrentFunction> all_functions = functions(n, layer.activations);
  const bool variant = layer.has_variant && n.attr(layer.has_cell_state ? "coupled_gates" : "reset_after");
  auto body = trace_region(graph, "body", inputs, [&](const std::vector<Value>& values) {
    auto value = values.begin();
    StateNodes state = {*value++, layer.has_cell_state ? *value++ : Value()};
    const Value sums = *value++, turn = by_length ? *value++ : Value(),
                lengths = by_length ? *value++ : Value();
    CellNodes cell = {std::span(all_functions)
                          .subspan(static_cast<size_t>(direction) * layer.activations, layer.activations),
                      variant,
                      *value++,
                      r_bias ? *value++ : Value(),
                      {}};
    cell.peepholes = value != values.end() ? *value : Value();
    StateNodes next = step(cell, sums, state);
    Value y = next.h;
    if (by_length) {  // beyond its length an example stays as it is, and gives 0
      const Value going = less(turn, lengths);
      y = keep_where(going, next.h);
      next.h = where(going, next.h, state.h);
      next.c = layer.has_cell_state ? where(going, next.c, state.c) : Value();
    }
    return layer.has_cell_state ? std::vector<Value>{next.h, next.c, y} : std::vector<Value>{next.h, y};
  });
  std::vector<Value> results = scan(graph, loop, std::move(body));
  if (backward && by_length)
    results.back() = reversed(results.back());
  std::rotate(results.begin(), results.end() - 1, results.end());
  return results;
}

template <const Layer& layer, auto step>
std::vector<Value> decompose(const Node& n) {
  std::vector<std::vector<Value>> parts(static_cast<size_t>(n.result_count()));
  for (int64_t direction = 0; direction < direction_count(n); ++direction) {
    const std::vector<Value> results = decompose_direction<layer, step>(n, direction);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].push_back(unsqueeze(results[i], {i == 0 ? 1 : 0}));
  }
  std::vector<Value> whole;
  for (size_t i = 0; i < parts.size(); ++i)
    whole.push_back(concat(parts[i], i == 0 ? 1 : 0));
  return whole;
}

// --- the declarations ---

OpDef recurrent(std::string_view name, std::string_view doc, const Attribute::Strings& activations,
                InferFunction infer, EvalFunction eval, DecomposeFunction decompose) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"},
                       {"w", "T"},
                       {"r", "T"},
                       {"bias", "T", Arity::Optional},
                       {"lengths", "L", Arity::Optional},
                       {"initial_h", "T", Arity::Optional}},
          .attributes =
              {{"direction", AttributeKind::String, "forward, reverse or bidirectional", "forward"},
               {"activations", AttributeKind::Strings,
                "of one direction, or of each: affine, elu, hard_sigmoid, leaky_relu, relu, scaled_tanh, "
                "sigmoid, softplus, softsign, tanh, thresholded_relu",
                activations},
               {"alpha", AttributeKind::Floats, "of each activation; its usual one where the list ends",
                Attribute::Floats()},
               {"beta", AttributeKind::Floats, "of each activation; its usual one where the list ends",
                Attribute::Floats()},
               {"clip", AttributeKind::Float, "what activations are of is limited to ± this",
                std::numeric_limits<double>::infinity()}},
          .results = {{"y", "T"}, {"last_h", "T"}},
          .types = {{"T", Floats}, {"L", {DType::I64, DType::I32}}},
          .infer = infer,
          .eval = eval,
          .decompose = decompose};
}

Family make_ops() {
  OpDef gru = recurrent("gru", "a layer of gated recurrent units; the gates are update, reset, candidate",
                        {"sigmoid", "tanh"}, infer<kGru>, eval<kGru, gru_step>, decompose<kGru, gru_nodes>);
  gru.attributes.push_back(
      {"reset_after", AttributeKind::Bool,
       "whether the reset gate works on what comes through r, not on the state before it", false});
  OpDef lstm = recurrent(
      "lstm", "a layer of long short-term memory units; the gates are input, output, forget, candidate",
      {"sigmoid", "tanh", "tanh"}, infer<kLstm>, eval<kLstm, lstm_step>, decompose<kLstm, lstm_nodes>);
  lstm.operands.push_back({"initial_c", "T", Arity::Optional});
  lstm.operands.push_back({"peepholes", "T", Arity::Optional});
  lstm.results.push_back({"last_c", "T"});
  lstm.attributes.push_back(
      {"coupled_gates", AttributeKind::Bool, "whether the forget gate is 1 minus the input gate", false});
  return {recurrent("rnn", "a layer of recurrent units", {"tanh"}, infer<kRnn>, eval<kRnn, rnn_step>,
                    decompose<kRnn, rnn_nodes>),
          gru, lstm};
}

}  // namespace

const Family& recurrent_ops() {
  static const Family ops = make_ops();
  return ops;
}

}  // namespace tenon
