#include "ops/recurrent.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/recurrent_decomposition.h"
#include "ops/recurrent_layers.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// --- shapes ---

// The shape an operand must have, in terms of those before it.
struct OperandShape {
  std::string_view name;
  std::vector<Dim> dims;
};

std::vector<OperandShape> operand_shapes(const RecurrentLayer& layer, int64_t directions, const Dim& time,
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

template <const RecurrentLayer& layer>
Types infer(const Node& n) {
  recurrent_functions(n, layer);
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

Operands read_operands(const Call& c, const RecurrentLayer& layer) {
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
template <const RecurrentLayer& layer, auto step>
Data eval(const Call& c) {
  const Node& n = c.node();
  const Operands in = read_operands(c, layer);
  const size_t hidden = in.hidden, rows = static_cast<size_t>(layer.gates) * hidden;
  const std::vector<RecurrentFunction> all_functions = recurrent_functions(n, layer);
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
                        {"sigmoid", "tanh"}, infer<kGru>, eval<kGru, gru_step>, decompose_gru);
  gru.attributes.push_back(
      {"reset_after", AttributeKind::Bool,
       "whether the reset gate works on what comes through r, not on the state before it", false});
  OpDef lstm = recurrent(
      "lstm", "a layer of long short-term memory units; the gates are input, output, forget, candidate",
      {"sigmoid", "tanh", "tanh"}, infer<kLstm>, eval<kLstm, lstm_step>, decompose_lstm);
  lstm.operands.push_back({"initial_c", "T", Arity::Optional});
  lstm.operands.push_back({"peepholes", "T", Arity::Optional});
  lstm.results.push_back({"last_c", "T"});
  lstm.attributes.push_back(
      {"coupled_gates", AttributeKind::Bool, "whether the forget gate is 1 minus the input gate", false});
  return {recurrent("rnn", "a layer of recurrent units", {"tanh"}, infer<kRnn>, eval<kRnn, rnn_step>,
                    decompose_rnn),
          gru, lstm};
}

}  // namespace

const Family& recurrent_ops() {
  static const Family ops = make_ops();
  return ops;
}

}  // namespace tenon
