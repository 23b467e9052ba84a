// expected.h — what a graph computes, and how far from it the result of computing the same in another way may
// be.
#pragma once

#include <algorithm>
#include <random>

#include "ir/evaluate.h"
#include "tensor/rounding.h"
#include "tensor/wide.h"

namespace tenon::fuzz {

constexpr int kDisturbances = 8;

// A tensor of no elements may have any extents that its type allows.
inline bool have_same_extents(const Tensor& a, const Tensor& b) {
  return a.extents() == b.extents() || (a.count() == 0 && b.count() == 0);
}

inline bool is_tensor(const Datum& datum) { return std::holds_alternative<Tensor>(datum); }

// What has finite squares; f16 and bf16 are computed with as f32.
inline double greatest_squared_of(DType dtype) { return dtype == DType::F64 ? 1e154 : 1e19; }

// Nothing can be said of it but its type: it is not finite, or so large that its square would not be, or has
// so few bits that every rounding counts.
inline bool is_unsure(const Datum& datum) {
  if (!is_tensor(datum))
    return true;
  const Tensor& tensor = datum.tensor();
  if (!is_float(tensor.dtype()))
    return false;
  const std::vector<double> numbers = widen<double>(tensor);
  return info(tensor.dtype()).bits < 16 || !std::all_of(numbers.begin(), numbers.end(), [&](double number) {
           return std::fabs(number) < greatest_squared_of(tensor.dtype());
         });
}

// How much what a dtype holds may be off by the rounding of a few steps.
inline double rounding_of(DType dtype) { return (info(dtype).bits <= 16 ? 8 : 256) * rounding_step(dtype); }

// The same for what a node gives: its nested graphs may compute with fewer bits.
inline double rounding_of(const Node& node, DType dtype) {
  double rounding = rounding_of(dtype);
  for (const auto& region : node.regions())
    for (const Node* inner : region->nodes())
      for (Value result : inner->results())
        if (result.type().is_tensor() && is_float(result.dtype()))
          rounding = std::max(rounding, rounding_of(*inner, result.dtype()));
  return rounding;
}

inline double greatest_of(const Tensor& tensor) {
  double greatest = 0;
  if (is_float(tensor.dtype()) || is_integer(tensor.dtype()))
    for (double number : widen<double>(tensor))
      greatest = std::max(greatest, std::fabs(number));
  return greatest;
}

// Of those that have at least 16 bits.
inline double greatest_finite(DType dtype) {
  return dtype == DType::F64 ? 0x1.fffffffffffffp1023 : dtype == DType::F16 ? 65504 : 0x1.fep127;
}

// Twice the least number above 0.
inline double least_step_of(DType dtype) {
  return dtype == DType::F16 ? 0x1p-23 : dtype == DType::F64 ? 0x1p-1073 : 0x1p-148;
}

// What a node computes may also be off by this much, however small it is: the least numbers have few bits,
// and in a loop numbers may cancel.
inline double least_rounding(const Node& node, const Data& operands, DType dtype) {
  double least = node.op().category == Category::Compute ? least_step_of(dtype) : 0;
  if (!node.regions().empty())
    for (const Datum& operand : operands)
      if (is_tensor(operand))
        least = std::max(least, rounding_of(node, dtype) * greatest_of(operand.tensor()));
  return least;
}

// Every number a little off, as if the steps before had been rounded in another way.
inline Datum disturbed(const Datum& datum, std::mt19937_64& random, double relative, double least) {
  if (!is_tensor(datum) || !is_float(datum.tensor().dtype()))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<double> numbers = widen<double>(tensor);
  for (double& number : numbers) {
    const double way = random() % 2 == 0 ? 1 : -1;
    if (std::isfinite(number))
      number += way * (std::fabs(number) * relative + least);
  }
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

// Whether what a node gives is a product, or a sum of products.
inline bool is_product(const Node& node) {
  return node.is("mul") || node.is("matmul") || node.is("conv") || node.is("reduce_sum");
}

// How large numbers are; 0 where they are not finite.
inline Datum sizes_of(const Datum& datum) {
  if (!is_tensor(datum) || !is_float(datum.tensor().dtype()))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<double> numbers = widen<double>(tensor);
  for (double& number : numbers)
    number = std::isfinite(number) ? std::fabs(number) : 0;
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

// What a product is, with the greatest numbers in place of infinities where finite factors may overflow:
// added to a sum before it is rounded, a product overflows only where the sum does, and a sum may overflow on
// the way.
inline Datum without_overflow(const Node& node, const Data& factors, const Datum& product) {
  const Tensor& tensor = product.tensor();
  if (!is_float(tensor.dtype()) || info(tensor.dtype()).bits < 16)
    return product;
  Data sizes;
  for (const Datum& factor : factors)
    sizes.push_back(sizes_of(factor));
  const std::vector<double> greatest = widen<double>(evaluate_node(node, sizes).front().tensor());
  std::vector<double> numbers = widen<double>(tensor);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (std::isinf(numbers[i]) && std::isinf(greatest[i]))
      numbers[i] = std::copysign(greatest_finite(tensor.dtype()), numbers[i]);
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

struct Outcome {
  Data outputs;
  std::vector<bool> sure;  // whether all that an output depends on is finite
};

inline Outcome run_graph(const Graph& graph, const Data& inputs, std::mt19937_64* random = nullptr);

// The branch that is taken is run like any graph; loops are run whole, and only what they give is disturbed.
inline Outcome run_node(const Node& node, const Data& operands, std::mt19937_64* random) {
  if (node.is("if")) {
    const bool taken = widen<double>(operands.front().tensor()).front() != 0;
    return run_graph(*node.regions()[taken ? 0 : 1], Data(operands.begin() + 1, operands.end()), random);
  }
  const Data results = evaluate_node(node, operands);
  return {results, std::vector<bool>(results.size(), true)};
}

// Runs the graph, with every value disturbed where there is something to draw from.
inline Outcome run_graph(const Graph& graph, const Data& inputs, std::mt19937_64* random) {
  std::map<Value, Datum> data;
  std::set<Value> unsure;
  const auto set = [&](Value value, const Datum& datum, double relative, double least) {
    data.emplace(value, random == nullptr ? datum : disturbed(datum, *random, relative, least));
    if (is_unsure(datum))
      unsure.insert(value);
  };
  const auto dtype_of = [](const Datum& datum) {
    return is_tensor(datum) ? datum.tensor().dtype() : DType::F64;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    set(graph.input(static_cast<int64_t>(i)), inputs[i], rounding_of(dtype_of(inputs[i])), 0);
  for (const Node* node : graph.nodes()) {
    Data operands;
    bool is_sure = true;
    for (Value operand : node->operands()) {
      operands.push_back(data.at(operand));
      is_sure &= !unsure.contains(operand);
    }
    Outcome results = run_node(*node, operands, random);
    for (size_t i = 0; i < results.outputs.size(); ++i) {
      const Value result = node->result(static_cast<int64_t>(i));
      const DType dtype = dtype_of(results.outputs[i]);
      if (random != nullptr && is_product(*node))
        results.outputs[i] = without_overflow(*node, operands, results.outputs[i]);
      set(result, results.outputs[i], rounding_of(*node, dtype), least_rounding(*node, operands, dtype));
      if (!is_sure || !results.sure[i])
        unsure.insert(result);
    }
  }
  Outcome outcome;
  for (Value output : graph.outputs()) {
    outcome.outputs.push_back(data.at(output));
    outcome.sure.push_back(!unsure.contains(output));
  }
  return outcome;
}

inline double greatest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = widen<double>(a), y = widen<double>(b);
  double greatest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(x[i] - y[i]);
    greatest = std::isnan(difference) ? INFINITY : std::max(greatest, difference);
  }
  return greatest;
}

// What a graph computes, and how far each output may be from it.
class Expected {
 public:
  Expected(const Graph& graph, const Data& inputs) : outcome_(run_graph(graph, inputs)) {
    slack_.assign(outcome_.outputs.size(), 0);
    std::mt19937_64 random(7);
    for (int i = 0; i < kDisturbances; ++i) {
      const Outcome other = run_graph(graph, inputs, &random);
      for (size_t output = 0; output < slack_.size(); ++output)
        slack_[output] = std::max(slack_[output], distance(outcome_.outputs[output], other.outputs[output]));
    }
  }

  // Empty where they agree.
  std::string mismatch(const Data& actual) const {
    for (size_t i = 0; i < actual.size(); ++i) {
      if (!is_tensor(actual[i]))
        continue;
      const Tensor &was = outcome_.outputs[i].tensor(), &is = actual[i].tensor();
      if (was.dtype() != is.dtype() || (slack_[i] != INFINITY && !have_same_extents(was, is)))
        return fmt::format("output {} was {}, and is {}", i, describe(was.dtype(), was.extents()),
                           describe(is.dtype(), is.extents()));
      if (!outcome_.sure[i] || slack_[i] == INFINITY || was.count() == 0)
        continue;
      const double difference = distance(outcome_.outputs[i], actual[i]), greatest = greatest_of(was);
      // What depends so much on rounding may also overflow by it.
      if (difference == INFINITY && slack_[i] > 1e-3 * greatest)
        continue;
      if (difference > 4 * slack_[i] + 32 * rounding_step(was.dtype()) * greatest)
        return fmt::format("output {} is {} off, but {} were expected", i, difference, slack_[i]);
    }
    return "";
  }

 private:
  static double distance(const Datum& a, const Datum& b) {
    if (!is_tensor(a) || !is_tensor(b) || a.tensor().extents() != b.tensor().extents())
      return INFINITY;
    if (is_float(a.tensor().dtype()))
      return greatest_difference(a.tensor(), b.tensor());
    return identical(a.tensor(), b.tensor()) ? 0 : INFINITY;
  }

  Outcome outcome_;
  std::vector<double> slack_;  // infinite where nothing can be said
};

}  // namespace tenon::fuzz
