// linear.cpp — PyTorch's products of matrices.
#include "ops/linear.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/einsum.h"
#include "ops/layer.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace tenon::torch {
namespace {

std::vector<Value> convert_linear(const NodeView& n) {
  return {linear(n.tensor("input"), n.tensor("weight"), n.maybe_tensor("bias"))};
}

Convert product(std::string_view a, std::string_view b) {
  return [=](const NodeView& n) { return std::vector<Value>{matmul(n.tensor(a), n.tensor(b))}; };
}

// beta · self + alpha · a b
Convert added_product(std::string_view a, std::string_view b) {
  return [=](const NodeView& n) {
    const auto scaled = [&](Value x, std::string_view factor) {
      const double by = n.real(factor, 1);
      return by == 1 ? x : x * by;
    };
    const Value y = scaled(matmul(n.tensor(a), n.tensor(b)), "alpha");
    const Value self = n.tensor("self");
    return std::vector<Value>{n.real("beta", 1) == 0 ? y : scaled(self, "beta") + y};
  };
}

std::vector<Value> convert_outer(const NodeView& n) {
  return {unsqueeze(n.tensor("self"), {1}) * unsqueeze(n.tensor("vec2"), {0})};
}

// beta · self + alpha · Σ a b over the batch
std::vector<Value> convert_addbmm(const NodeView& n) {
  const Value self = n.tensor("self"), y = reduce_sum(matmul(n.tensor("batch1"), n.tensor("batch2")), {0});
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const Value product = alpha == 1 ? y : y * alpha;
  return {beta == 0 ? product : (beta == 1 ? self : self * beta) + product};
}

// The sum of products of three tensors, each with more dimensions of size 1, over some of all dimensions:
// which an equation says as well.
std::vector<Value> convert_trilinear(const NodeView& n) {
  n.ignore("unroll_dim");
  std::vector<Value> operands;
  std::string equation, result;
  int64_t rank = 0;
  for (const auto& [operand, expanded] : {std::pair("i1", "expand1"), {"i2", "expand2"}, {"i3", "expand3"}}) {
    operands.push_back(n.tensor(operand));
    const std::vector<int64_t> ones = n.integers(expanded, {});
    rank = n.rank_of(operands.back()) + static_cast<int64_t>(ones.size());
    equation += operands.size() > 1 ? "," : "";
    for (int64_t axis = 0; axis < rank; ++axis)
      if (std::ranges::find(ones, axis) == ones.end())
        equation += static_cast<char>('a' + axis);
  }
  if (rank > 26)
    throw unsupported("_trilinear: {} dimensions", rank);
  const std::vector<int64_t> summed = n.integers("sumdim", {});
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::ranges::find(summed, axis) == summed.end())
      result += static_cast<char>('a' + axis);
  return {einsum(operands, equation + "->" + result)};
}

// y[…, o] = Σ a[…, i] w[o, i, j] b[…, j] + bias[o]
std::vector<Value> convert_bilinear(const NodeView& n) {
  const Value y = einsum({n.tensor("input1"), n.tensor("weight"), n.tensor("input2")}, "...i,oij,...j->...o");
  const Value bias = n.maybe_tensor("bias");
  return {bias ? y + bias : y};
}

// The sum of products over the last dimension of both.
std::vector<Value> convert_inner(const NodeView& n) {
  const Value a = n.tensor("self"), b = n.tensor("other");
  if (n.rank_of(a) == 0 || n.rank_of(b) == 0)
    return {a * b};
  std::string first, second;
  for (int64_t axis = 0; axis + 1 < a.rank(); ++axis)
    first += static_cast<char>('a' + axis);
  for (int64_t axis = 0; axis + 1 < b.rank(); ++axis)
    second += static_cast<char>('A' + axis);
  return {einsum({a, b}, first + "z," + second + "z->" + first + second)};
}

// beta · self + alpha · a bᵀ, of two vectors
std::vector<Value> convert_addr(const NodeView& n) {
  const Value self = n.tensor("self"),
              y = unsqueeze(n.tensor("vec1"), {1}) * unsqueeze(n.tensor("vec2"), {0});
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const Value product = alpha == 1 ? y : y * alpha;
  return {beta == 0 ? product : (beta == 1 ? self : self * beta) + product};
}

std::vector<Value> convert_einsum(const NodeView& n) {
  std::vector<Value> operands = n.tensors("tensors");
  n.ignore("path");
  if (operands.empty())
    throw user_error("einsum: it needs at least one tensor");
  return {einsum(operands, n.text("equation"))};
}

}  // namespace

const Conversions& linear_conversions() {
  static const Conversions conversions = {
      {"_trilinear", convert_trilinear},
      {"addbmm", convert_addbmm},
      {"addr", convert_addr},
      {"addmm", added_product("mat1", "mat2")},
      {"addmv", added_product("mat", "vec")},
      {"baddbmm", added_product("batch1", "batch2")},
      {"bilinear", convert_bilinear},
      {"bmm", product("self", "mat2")},
      {"inner", convert_inner},
      {"dot", product("self", "tensor")},
      {"einsum", convert_einsum},
      {"linear", convert_linear},
      {"matmul", product("self", "other")},
      {"mm", product("self", "mat2")},
      {"mv", product("self", "vec")},
      {"outer", convert_outer},
      {"vdot", product("self", "other")},
  };
  return conversions;
}

}  // namespace tenon::torch
