#include "ops/linear_attention.h"

#include <cmath>

#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// An operand that must have this shape, or broadcast to it.
void check_shape(const Node& n, std::string_view name, const Shape& wanted, bool broadcasts) {
  const Value value = n.in(name);
  if (!value)
    return;
  bool fits = broadcasts ? value.rank() <= wanted.rank() : value.rank() == wanted.rank();
  for (int64_t axis = -1; fits && axis >= -value.rank(); --axis)
    fits = !provably_different(value.dim(axis), wanted[axis]) || (broadcasts && value.dim(axis) == Dim(1));
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
  if (const auto heads = q.dim(1).constant(), shared = k.dim(1).constant();
      heads && shared && (*shared == 0 ? *heads != 0 : *heads % *shared != 0))
    throw operand_error(n, fmt::format("{} query heads cannot share {} key heads evenly", *heads, *shared));
  const Dim &batch = q.dim(0), &heads = k.dim(1), &steps = q.dim(2), &size = q.dim(3), &value_size = v.dim(3);
  check_shape(n, "k", {batch, heads, steps, size}, false);
  check_shape(n, "v", {batch, heads, steps, value_size}, false);
  check_shape(n, "state", {batch, heads, size, value_size}, false);
  check_shape(n, "decay", {batch, heads, steps, size}, true);
  check_shape(n, "beta", {batch, heads, steps, 1}, true);
  return {Type::tensor(q.dtype(), {batch, q.dim(1), steps, value_size}),
          Type::tensor(state, {batch, heads, size, value_size})};
}

// An operand's values, repeated to `extents`; nothing when it is absent.
std::vector<double> read(const Call& c, std::string_view name, const Extents& extents) {
  if (!c.has(name))
    return {};
  const Tensor& x = c.in(name);
  if (broadcast_extents("linear_attention", x.extents(), extents) != extents)
    throw user_error("linear_attention: {} has the shape [{}], but [{}] was wanted", name,
                     fmt::join(x.extents(), ","), fmt::join(extents, ","));
  return widen<double>(gather_strided(x, extents, broadcast_strides(x.extents(), extents)));
}

Data eval(const Call& c) {
  const Tensor& given = c.in("q");
  if (given.rank() != 4 || c.in("k").rank() != 4 || c.in("v").rank() != 4)
    throw user_error("linear_attention: q, k and v must have rank 4, not {}, {} and {}", given.rank(),
                     c.in("k").rank(), c.in("v").rank());
  const int64_t batch = given.extent(0), heads = given.extent(1), steps = given.extent(2),
                size = given.extent(3), key_heads = c.in("k").extent(1), value_size = c.in("v").extent(3);
  if (key_heads == 0 ? heads != 0 : heads % key_heads != 0)
    throw user_error("linear_attention: {} query heads cannot share {} key heads evenly", heads, key_heads);
  const int64_t group = key_heads == 0 ? 0 : heads / key_heads;
  const double scale = c.attr("scale");
  const Extents y_extents = {batch, heads, steps, value_size},
                state_extents = {batch, key_heads, size, value_size};
  const std::vector<double> q = widen<double>(given), k = read(c, "k", {batch, key_heads, steps, size}),
                            v = read(c, "v", {batch, key_heads, steps, value_size}),
                            decay = read(c, "decay", {batch, key_heads, steps, size}),
                            beta = read(c, "beta", {batch, key_heads, steps, 1});
  std::vector<double> states = read(c, "state", state_extents);
  if (!c.has("state"))
    states.resize(static_cast<size_t>(element_count(state_extents)), 0);
  Tensor sums(DType::F64, y_extents);
  double* y = sums.mutable_data<double>().data();
  std::vector<double> write(static_cast<size_t>(value_size));

  const int64_t rows = k.empty() ? 0 : batch * key_heads;
  for (int64_t head = 0; head < rows; ++head) {
    double* state = states.data() + head * size * value_size;
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t at = head * steps + step;
      const double *key = k.data() + at * size, *value = v.data() + at * value_size;
      if (!decay.empty())
        for (int64_t row = 0; row < size; ++row) {
          const double factor = std::exp(decay[static_cast<size_t>(at * size + row)]);
          for (int64_t column = 0; column < value_size; ++column)
            state[row * value_size + column] *= factor;
        }
      for (int64_t column = 0; column < value_size; ++column) {
        double known = 0;
        for (int64_t row = 0; row < size && !beta.empty(); ++row)
          known += state[row * value_size + column] * key[row];
        write[static_cast<size_t>(column)] =
            beta.empty() ? value[column] : beta[static_cast<size_t>(at)] * (value[column] - known);
      }
      for (int64_t row = 0; row < size; ++row)
        for (int64_t column = 0; column < value_size; ++column)
          state[row * value_size + column] += key[row] * write[static_cast<size_t>(column)];
      for (int64_t served = 0; served < group; ++served) {
        const int64_t reader = (head * group + served) * steps + step;
        for (int64_t row = 0; row < size; ++row)
          for (int64_t column = 0; column < value_size; ++column)
            y[reader * value_size + column] +=
                scale * q[static_cast<size_t>(reader * size + row)] * state[row * value_size + column];
      }
    }
  }
  return {narrow<double>(given.dtype(), y_extents, sums.data<double>()),
          narrow<double>(c.has("state") ? c.in("state").dtype() : given.dtype(), state_extents, states)};
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
       .eval = eval},
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
