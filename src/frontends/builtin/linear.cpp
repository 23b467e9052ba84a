// linear.cpp — built-in models of matrix products: linear layers, residuals, attention.
#include "ops/linear.h"

#include <cmath>
#include <limits>

#include "frontends/builtin/builtin.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/module.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/trace.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::builtin {
namespace {

std::unique_ptr<Graph> tiny() {
  return trace({f32({1, 4})}, [](Value x) { return relu(Linear{.name = "linear", .in = 4, .out = 3}(x)); });
}

std::unique_ptr<Graph> residual_linear() {
  return trace({f32({1, 64})}, [](Value x) {
    const Value h = relu(Linear{.name = "linear1", .in = 64, .out = 64}(x));
    return x + Linear{.name = "linear2", .in = 64, .out = 64}(h);
  });
}

std::unique_ptr<Graph> my_module() {
  return trace({f32({3, 4})}, [](Value x) {
    Graph& graph = x.graph();
    const Value shifted = x + random_parameter(graph, "param", {3, 4}, {0, 1});
    return clip(Linear{.name = "linear", .in = 4, .out = 5}(shifted), scalar(graph, DType::F32, 0),
                scalar(graph, DType::F32, 1));
  });
}

std::unique_ptr<Graph> matmul_bias_relu() {
  return trace({f32({32, 64})}, [](Value x) {
    const Value weight = random_parameter(x.graph(), "weight", {64, 128}, {-0.25, 0.25});
    const Value bias = random_parameter(x.graph(), "bias", {128}, {-0.25, 0.25});
    return relu(matmul(x, weight) + bias);
  });
}

std::unique_ptr<Graph> mlp_softmax() {
  return trace({f32({4, 16})}, [](Value x) {
    const Value w1 = random_parameter(x.graph(), "w1", {16, 32}, {-0.25, 0.25});
    const Value w2 = random_parameter(x.graph(), "w2", {32, 8}, {-0.25, 0.25});
    return softmax(matmul(relu(matmul(x, w1)), w2), -1);
  });
}

std::unique_ptr<Graph> linear_layernorm() {
  return trace({f32({4, 32})}, [](Value x) {
    const Value h = LayerNorm{.name = "n", .features = 48}(Linear{.name = "l", .in = 32, .out = 48}(x));
    return Linear{.name = "o", .in = 48, .out = 8}(h);
  });
}

// softmax(q kᵀ / sqrt(features)) v; where a mask is given, only what it lets through takes part.
Value attend(Value q, Value k, Value v, Value mask = {}) {
  const double features = static_cast<double>(*q.dim(-1).constant());
  Value scores = matmul(q, transpose_last_two(k)) / std::sqrt(features);
  if (mask)
    scores = where(mask, scores, scalar(q.graph(), DType::F32, -std::numeric_limits<double>::infinity()));
  return matmul(softmax(scores, -1), v);
}

std::unique_ptr<Graph> attention() {
  const Type heads = f32({2, 4, 32, 16});
  return trace({{heads, "q"}, {heads, "k"}, {heads, "v"}},
               [](Value q, Value k, Value v) { return attend(q, k, v); });
}

std::unique_ptr<Graph> attention_any_length() {
  const Type heads = f32({1, 8, Dim::symbol("length"), 64});
  return trace({{heads, "q"}, {heads, "k"}, {heads, "v"}},
               [](Value q, Value k, Value v) { return attend(q, k, v); });
}

std::unique_ptr<Graph> mha_causal() {
  constexpr int64_t batch = 2, steps = 24, width = 64, heads = 4;
  return trace({f32({batch, steps, width})}, [](Value x) {
    const auto project = [&](const std::string& name, Value from) {
      return Linear{.name = name, .in = width, .out = width}(from);
    };
    const auto split_heads = [&](Value y) {
      return transpose(reshape(y, {batch, steps, heads, width / heads}), {0, 2, 1, 3});
    };
    std::vector<uint64_t> seen(steps * steps);
    for (int64_t to = 0; to < steps; ++to)
      for (int64_t from = 0; from <= to; ++from)
        seen[static_cast<size_t>(to * steps + from)] = 1;
    const Value q = split_heads(project("q", x)), k = split_heads(project("k", x)),
                v = split_heads(project("v", x));
    const Value mask = constant(x.graph(), narrow<uint64_t>(DType::Bool, {steps, steps}, seen));
    const Value mixed = transpose(attend(q, k, v, mask), {0, 2, 1, 3});
    return project("o", reshape(mixed, {batch, steps, width}));
  });
}

}  // namespace

const Models& linear_models() {
  static const Models models = {
      {"tiny", "a linear layer and relu", tiny},
      {"residual_linear", "two linear layers with a skip connection", residual_linear},
      {"my_module", "a linear layer of a shifted input, clipped to [0, 1]", my_module},
      {"matmul_bias_relu", "a matrix product, a bias and relu, op by op", matmul_bias_relu},
      {"mlp_softmax", "two matrix products and softmax", mlp_softmax},
      {"linear_layernorm", "layer normalisation between two linear layers", linear_layernorm},
      {"attention", "softmax(q kᵀ / 4) v over four heads", attention},
      {"attention_any_length", "softmax(q kᵀ / 8) v over eight heads and any number of steps: --dim length=N",
       attention_any_length},
      {"mha_causal", "multi-head attention where no step sees a later one", mha_causal},
  };
  return models;
}

}  // namespace tenon::builtin
