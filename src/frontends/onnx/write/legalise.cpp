#include "frontends/onnx/write/legalise.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/write/integer_products.h"
#include "frontends/onnx/write/schemas.h"
#include "frontends/onnx/write/spell.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// Nothing where the dtype does not have this number.
std::optional<Tensor> integer(DType dtype, int64_t value) {
  const Tensor narrowed = narrow<int64_t>(dtype, {}, std::span(&value, 1));
  const bool has_it = as_int(narrowed) == value && (value >= 0 || kind(dtype) == DTypeKind::Signed);
  return has_it ? std::optional(narrowed) : std::nullopt;
}

// An iota of two elements or more whose step is not 0. It may wrap around, but a range does not.
Value range_of(Graph& graph, const Literal& literal, const Literal::Iota& iota) {
  const DType dtype = literal.dtype();
  int64_t distance = 0, limit = 0;
  const bool overflows = __builtin_mul_overflow(iota.step, literal.count() - 1, &distance) ||
                         __builtin_add_overflow(iota.start, distance, &limit) ||
                         __builtin_add_overflow(limit, iota.step > 0 ? 1 : -1, &limit);
  const auto start = integer(dtype, iota.start), delta = integer(dtype, iota.step);
  const auto end = overflows ? std::nullopt : integer(dtype, limit);
  if (!start || !delta || !end)
    throw unsupported("a constant of {} elements from {} in steps of {} leaves the range of {}",
                      literal.count(), iota.start, iota.step, dtype);
  return graph
      .create("range", {{"start", constant(graph, *start)},
                        {"limit", constant(graph, *end)},
                        {"delta", constant(graph, *delta)}})
      ->result();
}

// A constant too large to be written out, of a few numbers.
Value generated(Graph& graph, const Literal& literal) {
  const auto* iota = std::get_if<Literal::Iota>(&literal.form());
  if (iota != nullptr && iota->step != 0)
    return range_of(graph, literal, *iota);
  const Tensor element = iota != nullptr ? narrow<int64_t>(literal.dtype(), {}, std::span(&iota->start, 1))
                                         : std::get<Literal::Splat>(literal.form()).element;
  return broadcast_to(constant(graph, element), int_vector(graph, literal.extents()));
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

// The same node, but for some operands.
Value with_operands(const Node& node, const std::map<std::string_view, Value>& others) {
  std::vector<Operand> operands;
  for (const OperandDecl& decl : node.op().operands) {
    const auto it = others.find(decl.name);
    operands.emplace_back(decl.name,
                          it != others.end() ? std::vector<Value>{it->second} : node.ins(decl.name));
  }
  return node.graph().create(node.op(), std::move(operands), node.attributes())->result();
}

bool is_one(Value value) { return value.shape().ranked() && value.shape().element_count() == Dim(1); }

// Whether a dimension of an operand, which is broadcast, is shorter than that of all.
bool must_repeat(const Dim& one, const Dim& all) { return one == Dim(1) && all != Dim(1); }

class Legaliser {
 public:
  Legaliser(ConstantExpressions& constants, const Vocabulary& vocabulary)
      : constants_(constants), opset_(vocabulary.opset), avoided_(vocabulary.avoided) {}

  void legalise(Graph& graph) {
    for (Node* node : graph.nodes())
      with_context([&] { return node->describe(); }, [&] { legalise(*node); });
  }

  std::set<std::string> find_unwritable(Graph& graph) {
    std::set<std::string> found;
    for_each_graph(graph, [&](Graph& each) {
      for (Node* node : each.nodes())
        try {
          legalise(*node);
        } catch (const UnsupportedError&) {
          found.insert(node->sources().begin(), node->sources().end());
        }
    });
    return found;
  }

 private:
  void legalise(Node& node) {
    for (const auto& region : node.regions())
      legalise(*region);
    if (node.op().category == Category::Control || constants_.contains(node.result()))
      return;
    if (node.is("add"))
      take_bias_as_vector(node);
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
    const WithSources sources(node);
    if (const Literal* literal = literal_of(node))
      return {generated(node.graph(), *literal)};
    if (node.is("to_device"))
      return {node.in("x")};
    if (node.is("linear") && !is_float_matrix(node.in("x")))
      return {linear_as_matmul(node)};
    if (const Value repeated = with_repeated_operands(node))
      return {repeated};
    if (node.is("matmul") && (node.attr("transpose_a") || node.attr("transpose_b")) &&
        !(is_float_matrix(node.in("a")) && is_float_matrix(node.in("b"))))
      return {matmul_of_transposed(node)};
    if (const Value narrow = with_narrow_operands(node, constants_))
      return {narrow};
    if ((node.is("layer_norm") || node.is("rms_norm")) && !node.has("scale")) {
      const Value scaled = with_scale(node);
      return scaled ? std::vector<Value>{scaled} : node.op().decompose(node);
    }
    return decomposition(node);
  }

  // x · weightᵀ + bias of stacks of vectors.
  Value linear_as_matmul(const Node& node) {
    const Value weight = node.in("weight");
    const Value turned = once(weight, "transposed", [&] { return transpose(weight, {1, 0}); });
    const Value product = matmul(node.in("x"), turned);
    return node.has("bias") ? product + node.in("bias") : product;
  }

  // Gives a convolution its dequantised bias as a vector, which it takes; not in the shape of the image.
  void take_bias_as_vector(Node& add) {
    for (const int64_t place : {0, 1}) {
      const Value y = add.operand(1 - place), bias = add.operand(place);
      const bool is_biased = !y.is_input() && !bias.is_input() && y.node()->is("conv") &&
                             bias.node()->is("dequantize") && constants_.contains(bias.node()->in("x"));
      if (!is_biased || bias.rank() < 2 || bias.shape().element_count() != bias.dim(0) ||
          !is_one(bias.node()->in("scale")))
        continue;
      const InsertBefore here(&add);
      const Value flat = with_operands(*bias.node(), {{"x", reshape(bias.node()->in("x"), {-1})}});
      add.set_operand(place, unsqueeze(flat, axes_between(1, bias.rank())));
    }
  }

  // The angles of a rotary embedding for each of the batch, and a mask for each of the queries: engines want
  // them so. Older opsets have neither.
  Value with_repeated_operands(const Node& node) {
    if (opset_.value_or(kUsualOpset) < 23)
      return {};
    if (node.is("rotary") && node.in("x").shape().ranked() && node.in("cos").shape().ranked() &&
        must_repeat(node.in("cos").dim(0), node.in("x").dim(0)))
      return with_operands(node, {{"cos", repeated(node.in("cos"), 2, node.in("x"), 0)},
                                  {"sin", repeated(node.in("sin"), 2, node.in("x"), 0)}});
    if (node.is("attention") && node.has("mask") && node.in("q").shape().ranked() &&
        node.in("mask").shape().ranked()) {
      const Value mask = node.in("mask");
      if (must_repeat(mask.rank() < 2 ? Dim(1) : mask.dim(-2), node.in("q").dim(-2)))
        return with_operands(node, {{"mask", repeated(mask, 1, node.in("q"), -2)}});
    }
    return {};
  }

  // The value repeated along the dimension before its last `behind`, as often as x has steps along an axis.
  Value repeated(Value value, int64_t behind, Value x, int64_t axis) {
    const Dim count = x.dim(axis);
    // Two sizes that nobody knows need not be the same.
    const std::string times =
        count.is_unknown() ? fmt::format("as {}", fmt::ptr(x.data())) : fmt::format("{}", count);
    return once(value, fmt::format("repeated {} before {}", times, behind), [&] {
      Graph& graph = value.graph();
      const Value often = count.is_constant() ? int_vector(graph, {*count.constant()}) : size_along(x, axis);
      const std::vector<int64_t> ones(static_cast<size_t>(behind), 1);
      return broadcast_to(value, concat({often, int_vector(graph, ones)}, 0));
    });
  }

  // Made of a value for the first node that wants it, for all that come after; `how` tells what is made of
  // it.
  Value once(Value value, const std::string& how, const std::function<Value()>& make) {
    Value& made = made_[{value.data(), how}];
    if (!made)
      made = make();
    return made;
  }

  std::vector<Value> decomposition(Node& node) {
    const auto call = spell(node, constants_);
    const auto needed = call ? needed_opset(*call, node.result_types()) : std::nullopt;
    const bool is_standard = call && split_name(*call).domain.empty();
    const bool is_avoided = call && avoided_.contains(call->name) && node.op().decompose != nullptr;
    if (needed && !is_avoided && (!is_standard || *needed <= opset_.value_or(kUsualOpset)))
      return {};
    const auto describe_lack = [&] {
      if (!call)
        return fmt::format("ONNX has no op for {} as it is used here", node.op().name);
      if (!needed)
        return fmt::format("no opset of ONNX has {} for {}", call->name, describe_types(node));
      return fmt::format("{} needs opset {}, but opset {} is asked for", call->name, *needed,
                         opset_.value_or(kUsualOpset));
    };
    if (node.op().decompose != nullptr && !node.op().traits.random)  // ONNX has no keys to draw by
      return with_context(describe_lack, [&] { return node.op().decompose(node); });
    if (!needed || opset_)
      throw unsupported("{}", describe_lack());
    return {};
  }

  static std::string describe_types(const Node& node) {
    std::vector<std::string> types;
    for (Value operand : node.operands())
      types.push_back(to_string(operand.type()));
    return fmt::format("({}) -> ({})", fmt::join(types, ", "), fmt::join(node.result_types(), ", "));
  }

  std::map<std::pair<const ValueData*, std::string>, Value> made_;
  ConstantExpressions& constants_;
  std::optional<int64_t> opset_;
  const std::set<std::string, std::less<>>& avoided_;
};

}  // namespace

void legalise(Graph& graph, ConstantExpressions& constants, const Vocabulary& vocabulary) {
  Legaliser(constants, vocabulary).legalise(graph);
}

std::set<std::string> find_unwritable(Graph& graph, ConstantExpressions& constants,
                                      const Vocabulary& vocabulary) {
  return Legaliser(constants, vocabulary).find_unwritable(graph);
}

}  // namespace tenon::onnx
