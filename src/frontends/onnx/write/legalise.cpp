#include "frontends/onnx/write/legalise.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/onnx/write/schemas.h"
#include "frontends/onnx/write/spell.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

bool is_control(const Node& node) { return node.is("if") || node.is("while") || node.is("scan"); }

bool is_matrix(Value value) { return value.shape().ranked() && value.rank() == 2; }

Types types_of(const Node& node) {
  Types types;
  for (Value result : node.results())
    types.push_back(result.type());
  return types;
}

// A constant too large to be written out, of a few numbers.
Value generated(Graph& graph, const Literal& literal) {
  if (const auto* splat = std::get_if<Literal::Splat>(&literal.form()))
    return broadcast_to(constant(graph, splat->element), int_vector(graph, literal.extents()));
  const auto& iota = std::get<Literal::Iota>(literal.form());
  const auto number = [&](int64_t value) {
    return scalar(graph, literal.dtype(), static_cast<double>(value));
  };
  return graph
      .create("range", {{"start", number(iota.start)},
                        {"limit", number(iota.start + iota.step * literal.count())},
                        {"delta", number(iota.step)}})
      ->result();
}

// x · weightᵀ + bias of stacks of vectors.
Value linear_as_matmul(const Node& node) {
  const Value product = matmul(node.in("x"), transpose(node.in("weight"), {1, 0}));
  return node.has("bias") ? product + node.in("bias") : product;
}

Value matmul_of_transposed(const Node& node) {
  const Value a = node.in("a"), b = node.in("b");
  return matmul(node.attr("transpose_a") ? transpose_last_two(a) : a,
                node.attr("transpose_b") ? transpose_last_two(b) : b);
}

// ONNX wants a scale.
Value with_scale(const Node& node) {
  const Value x = node.in("x");
  const int64_t axis = node.attr("axis");
  const std::vector<Dim>& dims = x.shape().dims();
  const Shape normalised(std::vector<Dim>(dims.begin() + (axis < 0 ? axis + x.rank() : axis), dims.end()));
  const auto extents = normalised.extents();
  if (!extents)
    return {};
  Graph& graph = x.graph();
  const Tensor one = scalar(graph, x.dtype(), 1).node()->attr("value").as<Literal>().tensor();
  std::vector<Operand> operands = {{"x", x}, {"scale", constant(graph, Literal::splat(one, *extents))}};
  if (node.op().find_operand("bias") != nullptr)
    operands.emplace_back("bias", node.in("bias"));
  return graph.create(node.op(), std::move(operands), node.attributes())->result();
}

class Legaliser {
 public:
  Legaliser(ConstantExpressions& constants, std::optional<int64_t> opset)
      : constants_(constants), opset_(opset) {}

  void legalise(Graph& graph) {
    for (Node* node : graph.nodes())
      with_context([&] { return node->describe(); }, [&] { legalise(*node); });
  }

 private:
  void legalise(Node& node) {
    for (const auto& region : node.regions())
      legalise(*region);
    if (is_control(node) || constants_.contains(node.result()))
      return;
    const Node* end = node.next();
    const std::vector<Value> by = replacement(node);
    for (size_t i = 0; i < by.size(); ++i) {
      const Value old = node.result(static_cast<int64_t>(i));
      old.replace_all_uses(by[i]);
      if (by[i].name().empty())
        by[i].set_name(old.name());
    }
    for (Node* made = node.next(); made != end; made = made->next())
      legalise(*made);
  }

  // Nothing for a node that is fine as it is. What is made comes after the node.
  std::vector<Value> replacement(Node& node) {
    const InsertAfter here(&node);
    node.graph().set_current_sources(node.sources());
    if (node.is("constant") || node.is("parameter"))
      return {generated(node.graph(), node.attr("value"))};
    if (node.is("to_device"))
      return {node.in("x")};
    if (node.is("linear") && !is_matrix(node.in("x")))
      return {linear_as_matmul(node)};
    if (node.is("matmul") && (node.attr("transpose_a") || node.attr("transpose_b")) &&
        !(is_matrix(node.in("a")) && is_matrix(node.in("b"))))
      return {matmul_of_transposed(node)};
    if ((node.is("layer_norm") || node.is("rms_norm")) && !node.has("scale")) {
      const Value scaled = with_scale(node);
      return scaled ? std::vector<Value>{scaled} : node.op().decompose(node);
    }
    return decomposition(node);
  }

  std::vector<Value> decomposition(Node& node) {
    const auto call = spell(node, constants_);
    const auto needed = call ? needed_opset(*call, types_of(node)) : std::nullopt;
    const bool is_standard = call && split_name(call->name).domain.empty();
    if (needed && (!is_standard || *needed <= opset_.value_or(kUsualOpset)))
      return {};
    if (node.op().decompose != nullptr)
      return node.op().decompose(node);
    if (!call)
      throw unsupported("ONNX has no op for {} as it is used here", node.op().name);
    if (!needed)
      throw unsupported("no opset of ONNX has {} for {}", call->name, describe_types(node));
    if (opset_)
      throw unsupported("{} needs opset {}, but opset {} is asked for", call->name, *needed, *opset_);
    return {};
  }

  static std::string describe_types(const Node& node) {
    std::vector<std::string> types;
    for (Value operand : node.operands())
      types.push_back(to_string(operand.type()));
    return fmt::format("({}) -> ({})", fmt::join(types, ", "), fmt::join(types_of(node), ", "));
  }

  ConstantExpressions& constants_;
  std::optional<int64_t> opset_;
};

}  // namespace

void legalise(Graph& graph, ConstantExpressions& constants, std::optional<int64_t> opset) {
  Legaliser(constants, opset).legalise(graph);
}

}  // namespace tenon::onnx
