// linear.cpp — PyTorch's products of matrices.
#include "ops/linear.h"

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
      {"addmm", added_product("mat1", "mat2")},
      {"addmv", added_product("mat", "vec")},
      {"baddbmm", added_product("batch1", "batch2")},
      {"bmm", product("self", "mat2")},
      {"dot", product("self", "tensor")},
      {"einsum", convert_einsum},
      {"linear", convert_linear},
      {"matmul", product("self", "other")},
      {"mm", product("self", "mat2")},
      {"mv", product("self", "vec")},
      {"outer", convert_outer},
  };
  return conversions;
}

}  // namespace tenon::torch
