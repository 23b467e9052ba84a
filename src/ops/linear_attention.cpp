#include "ops/linear_attention.h"

#include <cmath>

#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon {
namespace {

// An operand that must have this shape, or broadcast to it.
void check_shape(const Node& n, std::string_view name, const Shape& wanted, bool broadcasts) {
  const Value value = n.in(name);
  if (!value)
    return;
  bool fits = broadcasts ? value.rank() <= wanted.rank() : value.rank() == wanted.rank();
  for (int64_t axis = -1; fits && axis >= -value.rank(); --axis)
    fits = broadcasts ? may_fill(value.dim(axis), wanted[axis])
                      : !provably_different(value.dim(axis), wanted[axis]);
  if (!fits)
    throw operand_error(n, fmt::format("{} must {} {}", name, broadcasts ? "broadcast to" : "have the shape",
                                       to_string(wanted)));
}

DType state_dtype(const Node& n) { return n.has("state") ? n.in("state").dtype() : n.in("q").dtype(); }

Types infer(const Node& n) {
  const Value q = n.in("q"), k = n.in("k"), v = n.in("v");
  const DType state = state_dtype(n);
  for (Value operand : n.operands())
    if (!operand.shape().ranked())
      return {Type::tensor(q.dtype(), Shape::unranked()), Type::tensor(state, Shape::unranked())};
  for (std::string_view name : {"q", "k", "v"})
    if (n.in(name).rank() != 4)
      throw operand_error(n, fmt::format("{} must have rank 4: batch, heads, steps, size", name));
  check_shared_heads(n, q.dim(1), k.dim(1));
  const Dim &batch = q.dim(0), &heads = k.dim(1), &steps = q.dim(2), &size = q.dim(3), &value_size = v.dim(3);
  check_shape(n, "k", {batch, heads, steps, size}, false);
  check_shape(n, "v", {batch, heads, steps, value_size}, false);
  check_shape(n, "state", {batch, heads, size, value_size}, false);
  check_shape(n, "decay", {batch, heads, steps, size}, true);
  check_shape(n, "beta", {batch, heads, steps, 1}, true);
  return {Type::tensor(q.dtype(), {batch, q.dim(1), steps, value_size}),
          Type::tensor(state, {batch, heads, size, value_size})};
}

// What one head of keys does, step by step. Rows and columns are those of its state.
struct Head {
  int64_t size, value_size;
  const double *k, *v, *decay, *beta;  // of all steps; null: there is no decay, no beta
  double* state;

  void fade(int64_t step) const {
    for (int64_t row = 0; decay != nullptr && row < size; ++row) {
      const double factor = std::exp(decay[step * size + row]);
      for (int64_t column = 0; column < value_size; ++column)
        state[row * value_size + column] *= factor;
    }
  }

  void write(int64_t step) const {
    const double *key = k + step * size, *value = v + step * value_size;
    for (int64_t column = 0; column < value_size; ++column) {
      double known = 0;
      for (int64_t row = 0; row < size && beta != nullptr; ++row)
        known += state[row * value_size + column] * key[row];
      const double written = beta == nullptr ? value[column] : beta[step] * (value[column] - known);
      for (int64_t row = 0; row < size; ++row)
        state[row * value_size + column] += key[row] * written;
    }
  }

  void read(const double* query, double scale, double* y) const {
    for (int64_t row = 0; row < size; ++row)
      for (int64_t column = 0; column < value_size; ++column)
        y[column] += scale * query[row] * state[row * value_size + column];
  }
};

Data eval(const Call& c) {
  const Tensor &given = c.in("q"), &keys = c.in("k"), &values = c.in("v");
  if (given.rank() != 4 || keys.rank() != 4 || values.rank() != 4)
    throw user_error("linear_attention: q, k and v must have rank 4, not {}, {} and {}", given.rank(),
                     keys.rank(), values.rank());
  const int64_t batch = given.extent(0), heads = given.extent(1), steps = given.extent(2),
                size = given.extent(3), key_heads = keys.extent(1), value_size = values.extent(3);
  check_shared_heads(c.node(), heads, key_heads);
  const Extents y_extents = {batch, heads, steps, value_size},
                state_extents = {batch, key_heads, size, value_size};
  const auto read = [&](std::string_view name, const Extents& extents) {
    return c.has(name) ? read_broadcast(c, name, extents) : std::vector<double>();
  };
  const std::vector<double> q = widen<double>(given), k = read("k", {batch, key_heads, steps, size}),
                            v = read("v", {batch, key_heads, steps, value_size}),
                            decay = read("decay", {batch, key_heads, steps, size}),
                            beta = read("beta", {batch, key_heads, steps, 1});
  std::vector<double> states = c.has("state") ? read("state", state_extents) : zeros<double>(state_extents);
  std::vector<double> y = zeros<double>(y_extents);

  const int64_t rows = k.empty() ? 0 : batch * key_heads, group = key_heads == 0 ? 0 : heads / key_heads;
  for (int64_t row = 0; row < rows; ++row) {
    const auto part = [&](const std::vector<double>& all, int64_t length) {
      return all.empty() ? nullptr : all.data() + row * steps * length;
    };
    const Head head = {size,
                       value_size,
                       part(k, size),
                       part(v, value_size),
                       part(decay, size),
                       part(beta, 1),
                       states.data() + row * size * value_size};
    for (int64_t step = 0; step < steps; ++step) {
      head.fade(step);
      head.write(step);
      for (int64_t reader = row * group; reader < (row + 1) * group; ++reader)
        head.read(q.data() + (reader * steps + step) * size, c.attr("scale"),
                  y.data() + (reader * steps + step) * value_size);
    }
  }
  return {narrow<double>(given.dtype(), y_extents, y),
          narrow<double>(state_dtype(c.node()), state_extents, states)};
}

// A scan over the steps, of all heads at once.
std::vector<Value> decompose(const Node& n) {
  Graph& graph = n.graph();
  const Value q = n.in("q"), k = n.in("k"), v = n.in("v");
  const double scale = n.attr("scale");
  const Value batch = size_along(k, 0), heads = size_along(k, 1), one = int_vector(graph, {1});
  const Value state_shape = concat({batch, heads, size_along(k, 3), size_along(v, 3)}, 0);
  const bool fades = n.has("decay"), corrects = n.has("beta");
  Scan loop = {.scanned = {q, k, v}};
  loop.carried = {n.has("state") ? cast(n.in("state"), q.dtype())
                                 : fill(state_shape, filled(q.dtype(), {}, 0))};
  if (fades)
    loop.scanned.push_back(broadcast_to(n.in("decay"), shape_of(k)));
  if (corrects) {
    const Value shape = concat({batch, heads, size_along(k, 2), one}, 0);
    loop.scanned.push_back(reshape(broadcast_to(n.in("beta"), shape), shape));
  }
  loop.axes.assign(loop.scanned.size(), 2);
  loop.reversed.assign(loop.scanned.size(), 0);
  loop.output_axes = {2};
  loop.output_reversed = {0};
  TracedInputs inputs = {{loop.carried.front().type()}};
  for (Value value : loop.scanned)
    inputs.push_back({Type::tensor(value.dtype(), {value.dim(0), value.dim(1), value.dim(3)})});
  auto body =
      trace_region(graph, "body", inputs, [&](const std::vector<Value>& values) -> std::vector<Value> {
        Value state = values[0];
        const Value query = values[1], key = values[2], value = unsqueeze(values[3], {2});
        if (fades)
          state = exp(unsqueeze(values[4], {3})) * state;
        const Value known = matmul(unsqueeze(key, {2}), state);
        const Value written = corrects ? unsqueeze(values.back(), {2}) * (value - known) : value;
        state = state + unsqueeze(key, {3}) * written;
        const Value grouped = reshape(query, concat({size_along(key, 0), size_along(key, 1),
                                                     int_vector(key.graph(), {-1}), size_along(query, 2)},
                                                    0));
        const Value y =
            reshape(matmul(grouped, state),
                    concat({size_along(query, 0), size_along(query, 1), size_along(value, 3)}, 0));
        return {state, scale * y};
      });
  const std::vector<Value> results = scan(graph, loop, std::move(body));
  return {results[1], cast(results[0], state_dtype(n))};
}

}  // namespace

const Family& linear_attention_ops() {
  static const Family ops = {
      {.name = "linear_attention",
       .doc = "tokens written one by one to a state, and read from it: a recurrent form of attention",
       .operands = {{"q", "T"},
                    {"k", "T"},
                    {"v", "T"},
                    {"state", "S", Arity::Optional},
                    {"decay", "T", Arity::Optional},
                    {"beta", "T", Arity::Optional}},
       .attributes = {{"scale", AttributeKind::Float, "what is read is multiplied by this"}},
       .results = {{"y", "T"}, {"final_state", "any"}},
       .types = {{"T", Floats}, {"S", Floats}},
       .traits = {.takes_unranked = true},
       .infer = infer,
       .eval = eval,
       .decompose = decompose},
  };
  return ops;
}

LinearAttentionResults linear_attention(Value q, Value k, Value v, const LinearAttentionOptions& options) {
  const Node* node = q.graph().create("linear_attention",
                                      {{"q", q},
                                       {"k", k},
                                       {"v", v},
                                       {"state", options.state},
                                       {"decay", options.decay},
                                       {"beta", options.beta}},
                                      {{"scale", options.scale}});
  return {node->result(0), node->result(1)};
}

}  // namespace tenon
