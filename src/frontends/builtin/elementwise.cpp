// elementwise.cpp — built-in models of elementwise ops: what fusion, folding and the removal of repeated or
// dead work are shown on.
#include "frontends/builtin/builtin.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon::builtin {
namespace {

std::unique_ptr<Graph> fusion_candidate() {
  return trace({f32({8, 16})}, [](Value x) { return relu(x * 2.0 + 1.0); });
}

std::unique_ptr<Graph> chain5() {
  return trace({f32({64, 64})}, [](Value x) { return sigmoid(relu(x * 2.0 + 1.0) * 0.5); });
}

std::unique_ptr<Graph> chain5_any_size() {
  return trace({f32({Dim::symbol("rows"), 1024})},
               [](Value x) { return sigmoid(relu(x * 2.0 + 1.0) * 0.5); });
}

std::unique_ptr<Graph> unoptimized() {
  return trace({f32({4, 4})}, [](Value x) {
    const Value a = relu(x);
    const Value b = relu(x);  // the same again
    const Value c = a * 1.0;
    return c + relu(b * 6.0 + 1.0);
  });
}

std::unique_ptr<Graph> has_cse() {
  return trace({f32({4, 4})}, [](Value x) {
    const Value a = relu(x) * 2.0;
    const Value b = relu(x) * 3.0;
    return a + b;
  });
}

std::unique_ptr<Graph> has_dead_code() {
  return trace({f32({4, 4})}, [](Value x) {
    const Value y = relu(x);
    exp(sigmoid(y));  // nobody uses it
    return log(y + 1.0);
  });
}

std::unique_ptr<Graph> with_constants() {
  return trace({f32({4, 4})}, [](Value x) {
    const Value two = scalar(x.graph(), DType::F32, 2.0), three = scalar(x.graph(), DType::F32, 3.0);
    return x * (two * three);
  });
}

// 0.5 x (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))
std::unique_ptr<Graph> gelu_approx() {
  return trace({f32({8, 64})}, [](Value x) {
    const Value half = x * 0.5;
    const Value cubic = x * 0.044715 * x * x;
    return half * (tanh((x + cubic) * 0.7978845608028654) + 1.0);
  });
}

}  // namespace

const Models& elementwise_models() {
  static const Models models = {
      {"fusion_candidate", "relu(2x + 1): three ops that make one kernel", fusion_candidate},
      {"chain5", "a chain of five elementwise ops", chain5},
      {"chain5_any_size", "the same chain over any number of rows: --dim rows=N", chain5_any_size},
      {"unoptimized", "repeated work and a multiplication by one", unoptimized},
      {"has_cse", "relu(x) computed twice", has_cse},
      {"has_dead_code", "two ops whose result nobody uses", has_dead_code},
      {"with_constants", "a product of two constants", with_constants},
      {"gelu_approx", "GELU by tanh, op by op", gelu_approx},
  };
  return models;
}

}  // namespace tenon::builtin
