#include "ops/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/philox.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// The call that an op draws for: one of its own where it has a seed, else the next of the evaluator's.
RandomCall call_of(const Call& c) {
  const int64_t seed = c.attr("seed");
  return seed < 0 ? c.random().take_call() : RandomCall{.key = static_cast<uint64_t>(seed)};
}

// What one element of a call draws. The distributions are written out here because those of the standard
// library differ from one library to the next. Floats of up to 32 bits are made of 24 random bits each, which
// f32 holds, so that a kernel computes the same.
class Draw {
 public:
  Draw(const RandomCall& call, uint64_t element, DType dtype)
      : bits_(philox(call.key, call.number, element)), is_f64_(dtype == DType::F64) {}

  // Evenly from [0, 1).
  double uniform() const { return is_f64_ ? in_f64(bits_[0]) : in_f32(bits_[0] >> 40); }
  // Box and Muller's transform; 1 - u is never 0.
  double normal() const {
    const double angle = 2 * std::numbers::pi * (is_f64_ ? in_f64(bits_[1]) : in_f32(bits_[0] >> 8));
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(angle);
  }

 private:
  static double in_f64(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
  static double in_f32(uint64_t bits) { return static_cast<double>(bits & 0xffffff) * 0x1p-24; }

  std::array<uint64_t, 2> bits_;
  bool is_f64_;
};

// --- random_uniform, random_normal ---

Types infer_filled(const Node& n) {
  const Value shape = n.in("shape");
  const DType dtype = n.attr("dtype");
  if (!is_float(dtype))
    throw user_error("{}: dtype must be a float, but is {}", n.op().name, dtype);
  if (shape.shape().ranked() && shape.rank() != 1)
    throw operand_error(n, "shape must be a vector");
  const auto rank = known_length(n, "shape");
  if (!rank)
    return {Type::tensor(dtype, Shape::unranked())};
  const std::vector<Dim> dims = vector_dims(n, "shape", static_cast<size_t>(*rank));
  check_sizes(n, "shape", dims);
  return {Type::tensor(dtype, dims)};
}

// A number in the dtype that others are computed with.
double computed(DType dtype, double value) {
  return dtype == DType::F64 ? value : static_cast<double>(static_cast<float>(value));
}

template <class Formula>
Data fill(const Call& c, const RandomCall& call, Formula&& formula) {
  const Extents extents = as_ints(c.in("shape"));
  const DType dtype = c.attr("dtype");
  std::vector<double> values = zeros<double>(extents);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = computed(dtype, formula(Draw(call, i, dtype)));
  return {narrow<double>(dtype, extents, values)};
}

Data fill_uniform(const Call& c, const RandomCall& call) {
  const DType dtype = c.attr("dtype");
  const double least = c.attr("low"), low = computed(dtype, least),
               range = computed(dtype, c.attr("high").as<double>() - least);
  return fill(c, call, [=](const Draw& draw) { return low + range * draw.uniform(); });
}

Data fill_normal(const Call& c, const RandomCall& call) {
  const double mean = c.attr("mean"), deviation = c.attr("deviation");
  return fill(c, call, [=](const Draw& draw) { return mean + deviation * draw.normal(); });
}

Data eval_uniform(const Call& c) { return fill_uniform(c, call_of(c)); }
Data eval_normal(const Call& c) { return fill_normal(c, call_of(c)); }

// --- random_key, philox_uniform, philox_normal ---

namespace by_key {

Tensor key_tensor(const RandomCall& call) {
  return narrow<uint64_t>(DType::U64, {2}, std::array{call.key, call.number});
}

Types infer_key(const Node&) { return {Type::tensor(DType::U64, {2})}; }
Data eval_key(const Call& c) { return {key_tensor(c.random().take_call())}; }

Types infer(const Node& n) {
  const Value key = n.in("key");
  if (key.shape().ranked() && (key.rank() != 1 || key.dim(0) != Dim(2)))
    throw operand_error(n, "key must hold two numbers, a seed and that of a call");
  return infer_filled(n);
}

RandomCall given_call(const Call& c) {
  const Tensor& key = c.in("key");
  if (key.extents() != Extents{2})
    throw user_error("{}: key must hold two numbers, but is {}", c.node().op().name, type_of(key));
  return {.key = key.data<uint64_t>()[0], .number = key.data<uint64_t>()[1]};
}

Data eval_uniform(const Call& c) { return fill_uniform(c, given_call(c)); }
Data eval_normal(const Call& c) { return fill_normal(c, given_call(c)); }

// The bits of Draw, as a kernel computes them.
class LoweredDraw {
 public:
  LoweredDraw(const LowerContext& c, const Index& at)
      : dtype_(wide_dtype(c.node().result().dtype())),
        bits_(Scalar::apply(Function::Philox, key_call_element(c, at))) {}

  Scalar uniform() const { return dtype_ == DType::F64 ? in_f64(bits_) : in_f32(shifted(bits_, 40)); }
  // With the sine of the angle from its nearest zero, which is exact before it is multiplied:
  // cos(2πu) = sin(2π(|u - 1/2| - 1/4)).
  Scalar normal() const {
    const Scalar u = dtype_ == DType::F64
                         ? in_f64(Scalar::apply(Function::PhiloxHigh, bits_.operands()))
                         : in_f32(Scalar::apply(Function::And,
                                                {shifted(bits_, 8), loops::constant(DType::U64, 0xffffff)}));
    const Scalar angle = 2 * std::numbers::pi * (abs(u - 0.5) - 0.25);
    return sqrt(-2.0 * log(1.0 - uniform())) * Scalar::apply(Function::Sin, {angle});
  }

 private:
  using Function = loops::Function;

  static std::vector<Scalar> key_call_element(const LowerContext& c, const Index& at) {
    Scalar element = Scalar::index(0);
    for (size_t i = 0; i < at.size(); ++i)
      element = element * Scalar::index(c.node().result().dim(static_cast<int64_t>(i))) + at[i];
    const Value key = c.node().in("key");
    return {c.stored(key, {Scalar::index(0)}), c.stored(key, {Scalar::index(1)}),
            Scalar::cast(DType::U64, element)};
  }
  static Scalar shifted(const Scalar& bits, double count) {
    return Scalar::apply(Function::ShiftRight, {bits, loops::constant(DType::U64, count)});
  }
  static Scalar in_f64(const Scalar& bits) { return Scalar::cast(DType::F64, shifted(bits, 11)) * 0x1p-53; }
  static Scalar in_f32(const Scalar& bits) {
    return Scalar::cast(DType::F32, Scalar::cast(DType::I32, bits)) * 0x1p-24;
  }

  DType dtype_;
  Scalar bits_;
};

// Products of f32 are exact in f64, so that it makes no difference whether the sum is a fused one.
void lower_uniform(LowerContext& c) {
  const DType dtype = wide_dtype(c.node().result().dtype());
  const double least = c.node().attr("low"), low = computed(dtype, least),
               range = computed(dtype, c.node().attr("high").as<double>() - least);
  c.define([&](const Index& at) {
    const Scalar u = LoweredDraw(c, at).uniform();
    if (low == 0)
      return range == 1 ? u : range * u;
    return Scalar::cast(dtype, low + range * Scalar::cast(DType::F64, u));
  });
}

void lower_normal(LowerContext& c) {
  const double mean = c.node().attr("mean"), deviation = c.node().attr("deviation");
  c.define([&](const Index& at) { return mean + deviation * LoweredDraw(c, at).normal(); });
}

Value key_of(const Node& n) {
  const int64_t seed = n.attr("seed");
  if (seed >= 0)
    return constant(n.graph(), key_tensor({.key = static_cast<uint64_t>(seed)}));
  return n.graph().create("random_key", {})->result();
}

// A key and the op that draws by it: kernels compute the numbers, and fuse with what uses them.
template <class... Names>
std::vector<Value> decompose(const Node& n, std::string_view op, Names... attributes) {
  return {n.graph()
              .create(op, {{"key", key_of(n)}, {"shape", n.in("shape")}},
                      {{"dtype", n.attr("dtype")}, {std::string(attributes), n.attr(attributes)}...})
              ->result()};
}
std::vector<Value> decompose_uniform(const Node& n) { return decompose(n, "philox_uniform", "low", "high"); }
std::vector<Value> decompose_normal(const Node& n) {
  return decompose(n, "philox_normal", "mean", "deviation");
}

}  // namespace by_key

// --- multinomial ---

namespace multinomial_op {

Types infer(const Node& n) {
  const Value logits = n.in("logits"), samples = n.in("samples");
  const DType dtype = n.attr("dtype");
  if (!is_integer(dtype))
    throw user_error("multinomial: dtype must be an integer, but is {}", dtype);
  if (logits.rank() != 2 || samples.rank() != 0)
    throw operand_error(n, "logits must be a matrix and samples one number");
  const Dim count = known_number(n, "samples");
  check_size(n, "samples", count);
  return {Type::tensor(dtype, {logits.dim(0), count})};
}

// The probabilities of a row, summed from its start. Subtracting the greatest logit keeps exp in range.
std::vector<double> running_odds(std::span<const double> logits, int64_t row) {
  const double greatest = logits.empty() ? -INFINITY : *std::ranges::max_element(logits);
  std::vector<double> odds;
  double sum = 0;
  for (double logit : logits)
    odds.push_back(sum += std::exp(logit - greatest));
  if (!(sum > 0 && std::isfinite(sum)))
    throw user_error("multinomial: row {} of logits has no outcome that could be drawn", row);
  return odds;
}

Data eval(const Call& c) {
  const Tensor& logits = c.in("logits");
  const int64_t samples = read_number(c, "samples", 0);
  if (logits.rank() != 2)
    throw user_error("multinomial: logits must be a matrix, but are {}", type_of(logits));
  const int64_t rows = logits.extent(0);
  const auto classes = static_cast<size_t>(logits.extent(1));
  const std::vector<double> values = widen<double>(logits);
  std::vector<int64_t> drawn = zeros<int64_t>({rows, samples});
  const RandomCall call = call_of(c);
  uint64_t element = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<double> odds =
        running_odds(std::span(values).subspan(static_cast<size_t>(row) * classes, classes), row);
    for (int64_t i = 0; i < samples; ++i, ++element) {
      const double u = Draw(call, element, DType::F64).uniform();
      drawn[element] = std::ranges::upper_bound(odds, u * odds.back()) - odds.begin();
    }
  }
  return {narrow<int64_t>(c.attr("dtype"), {rows, samples}, drawn)};
}

}  // namespace multinomial_op

// --- the declarations ---

AttributeDecl seed_attribute() {
  return {"seed", AttributeKind::Int, "where the numbers start; -1: wherever the evaluator's generator is",
          kUnseeded};
}

std::vector<AttributeDecl> uniform_attributes() {
  return {{"dtype", AttributeKind::DType, "a float"},
          {"low", AttributeKind::Float, "the least, included", 0.0},
          {"high", AttributeKind::Float, "the greatest, excluded but for rounding", 1.0}};
}
std::vector<AttributeDecl> normal_attributes() {
  return {{"dtype", AttributeKind::DType, "a float"},
          {"mean", AttributeKind::Float, "their mean", 0.0},
          {"deviation", AttributeKind::Float, "their standard deviation", 1.0}};
}

OpDef filling(std::string_view name, std::string_view doc, std::vector<AttributeDecl> attributes,
              EvalFunction eval, DecomposeFunction decompose) {
  attributes.push_back(seed_attribute());
  return {.name = name,
          .doc = doc,
          .category = Category::Data,
          .operands = {{"shape", "i64"}},
          .attributes = std::move(attributes),
          .results = {{"y", "$dtype"}},
          .traits = {.random = true, .takes_unranked = true},
          .infer = infer_filled,
          .eval = eval,
          .decompose = decompose};
}

OpDef filling_by_key(std::string_view name, std::string_view doc, std::vector<AttributeDecl> attributes,
                     EvalFunction eval, LowerFunction lower) {
  return {.name = name,
          .doc = doc,
          .category = Category::Data,
          .operands = {{"key", "u64"}, {"shape", "i64"}},
          .attributes = std::move(attributes),
          .results = {{"y", "$dtype"}},
          .traits = {.takes_unranked = true},
          .infer = by_key::infer,
          .eval = eval,
          .lower = lower};
}

}  // namespace

const Family& random_ops() {
  static const Family ops = {
      filling("random_uniform", "numbers drawn evenly between low and high", uniform_attributes(),
              eval_uniform, by_key::decompose_uniform),
      filling("random_normal", "numbers drawn from a normal distribution", normal_attributes(), eval_normal,
              by_key::decompose_normal),
      {.name = "random_key",
       .doc = "what a call of a random op draws by: the seed of the run, and the number of the call",
       .category = Category::Data,
       .results = {{"y", "u64"}},
       .traits = {.random = true},
       .infer = by_key::infer_key,
       .eval = by_key::eval_key},
      filling_by_key("philox_uniform", "numbers drawn by a key evenly between low and high",
                     uniform_attributes(), by_key::eval_uniform, by_key::lower_uniform),
      filling_by_key("philox_normal", "numbers drawn by a key from a normal distribution",
                     normal_attributes(), by_key::eval_normal, by_key::lower_normal),
      {.name = "multinomial",
       .doc = "indices into each row of logits, drawn with probabilities in proportion to exp(logits)",
       .operands = {{"logits", "T"}, {"samples", "i64"}},
       .attributes = {{"dtype", AttributeKind::DType, "an integer"}, seed_attribute()},
       .results = {{"y", "$dtype"}},
       .types = {{"T", Floats}},
       .traits = {.random = true},
       .infer = multinomial_op::infer,
       .eval = multinomial_op::eval,
       .grad = no_gradient},
  };
  return ops;
}

bool takes_call(const Node& node) {
  if (node.op().traits.random)
    return node.op().find_attribute("seed") == nullptr || node.attr("seed").as<int64_t>() < 0;
  return std::ranges::any_of(node.regions(), [](const auto& region) {
    return std::ranges::any_of(region->nodes(), [](const Node* inner) { return takes_call(*inner); });
  });
}

Value random_uniform(Value shape, DType dtype, const Interval& range, int64_t seed) {
  return shape.graph()
      .create("random_uniform", {{"shape", shape}},
              {{"dtype", dtype}, {"low", range.low}, {"high", range.high}, {"seed", seed}})
      ->result();
}
Value random_normal(Value shape, DType dtype, const Bell& bell, int64_t seed) {
  return shape.graph()
      .create("random_normal", {{"shape", shape}},
              {{"dtype", dtype}, {"mean", bell.mean}, {"deviation", bell.deviation}, {"seed", seed}})
      ->result();
}
Value multinomial(Value logits, Value samples, DType dtype, int64_t seed) {
  return logits.graph()
      .create("multinomial", {{"logits", logits}, {"samples", samples}}, {{"dtype", dtype}, {"seed", seed}})
      ->result();
}
// In f64, where no number below 1 rounds to 1: probability 1 always holds and 0 never.
Value bernoulli(Value p, int64_t seed) {
  return less(random_uniform(shape_of(p), DType::F64, {}, seed), cast(p, DType::F64));
}

}  // namespace tenon
