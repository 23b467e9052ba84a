#include "ops/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/binary.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// The generator an op draws from: its own where it has a seed, else the evaluator's. The distributions are
// written out here because those of the standard library differ from one library to the next.
class Source {
 public:
  explicit Source(const Call& c)
      : own_(static_cast<uint64_t>(c.attr("seed").as<int64_t>())),
        generator_(c.attr("seed").as<int64_t>() < 0 ? c.random() : own_) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Evenly from [0, 1).
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  // Box and Muller's transform; 1 - u is never 0.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  RandomGenerator own_;
  RandomGenerator& generator_;
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

template <class Draw>
Data draw_each(const Call& c, Draw&& draw) {
  const Extents extents = as_ints(c.in("shape"));
  const DType dtype = c.attr("dtype");
  std::vector<double> values = zeros<double>(extents);
  Source source(c);
  for (double& value : values)
    value = draw(source);
  return {narrow<double>(dtype, extents, values)};
}

Data eval_uniform(const Call& c) {
  const double low = c.attr("low"), high = c.attr("high");
  return draw_each(c, [=](Source& source) { return low + (high - low) * source.uniform(); });
}

Data eval_normal(const Call& c) {
  const double mean = c.attr("mean"), deviation = c.attr("deviation");
  return draw_each(c, [=](Source& source) { return mean + deviation * source.normal(); });
}

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
  Source source(c);
  auto next = drawn.begin();
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<double> odds =
        running_odds(std::span(values).subspan(static_cast<size_t>(row) * classes, classes), row);
    for (int64_t i = 0; i < samples; ++i)
      *next++ = std::ranges::upper_bound(odds, source.uniform() * odds.back()) - odds.begin();
  }
  return {narrow<int64_t>(c.attr("dtype"), {rows, samples}, drawn)};
}

}  // namespace multinomial_op

// --- the declarations ---

AttributeDecl seed_attribute() {
  return {"seed", AttributeKind::Int, "where the numbers start; -1: wherever the evaluator's generator is",
          kUnseeded};
}

OpDef filling(std::string_view name, std::string_view doc, EvalFunction eval, const AttributeDecl& first,
              const AttributeDecl& second) {
  return {.name = name,
          .doc = doc,
          .category = Category::Data,
          .operands = {{"shape", "i64"}},
          .attributes = {{"dtype", AttributeKind::DType, "a float"}, first, second, seed_attribute()},
          .results = {{"y", "$dtype"}},
          .traits = {.random = true, .takes_unranked = true},
          .infer = infer_filled,
          .eval = eval};
}

}  // namespace

const Family& random_ops() {
  static const Family ops = {
      filling("random_uniform", "numbers drawn evenly between low and high", eval_uniform,
              {"low", AttributeKind::Float, "the least, included", 0.0},
              {"high", AttributeKind::Float, "the greatest, excluded but for rounding", 1.0}),
      filling("random_normal", "numbers drawn from a normal distribution", eval_normal,
              {"mean", AttributeKind::Float, "their mean", 0.0},
              {"deviation", AttributeKind::Float, "their standard deviation", 1.0}),
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
