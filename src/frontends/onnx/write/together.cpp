#include "frontends/onnx/write/together.h"

#include <algorithm>

#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// What makes the value, where it is this op, and nothing else uses it.
const Node* made_for_this(Value value, std::string_view op) {
  return !value.is_input() && value.node()->is(op) && value.has_one_use() ? value.node() : nullptr;
}

std::optional<double> number_of(Value value) {
  const Tensor* known = value.known_tensor();
  if (known == nullptr || known->count() != 1 || !is_float(known->dtype()))
    return std::nullopt;
  return widen<double>(*known).front();
}

// What x and a number are added or multiplied to, in either order.
Value beside(const Node& node, double number) {
  if (number_of(node.in("b")) == number)
    return node.in("a");
  return number_of(node.in("a")) == number ? node.in("b") : Value();
}

bool has_type_of(const Node& node, Value x) { return node.result().type() == x.type(); }

// where(x < 0, x · slope, x), or the same by x >= 0. Where x is NaN, both branches are.
std::optional<OnnxCall> spell_prelu(const Node& where) {
  const Value condition = where.in("condition");
  const Node *less = made_for_this(condition, "less"), *other = made_for_this(condition, "greater_equal");
  const Node* comparison = less != nullptr ? less : other;
  if (comparison == nullptr || number_of(comparison->in("b")) != 0)
    return std::nullopt;
  const Value x = comparison->in("a"), below = where.in(less != nullptr ? "a" : "b"),
              above = where.in(less != nullptr ? "b" : "a");
  const Node* product = made_for_this(below, "mul");
  if (product == nullptr || above != x || !has_type_of(where, x) || !has_type_of(*product, x))
    return std::nullopt;
  const Value a = product->in("a"), b = product->in("b");
  if (a != x && b != x)
    return std::nullopt;
  return OnnxCall{"PRelu", {{x}, {a == x ? b : a}}, {}};
}

// where(x > alpha, x, 0)
std::optional<OnnxCall> spell_thresholded_relu(const Node& where) {
  const Node* greater = made_for_this(where.in("condition"), "greater");
  const auto alpha = greater != nullptr ? number_of(greater->in("b")) : std::nullopt;
  if (!alpha || number_of(where.in("b")) != 0 || where.in("a") != greater->in("a") ||
      !has_type_of(where, where.in("a")) || static_cast<double>(static_cast<float>(*alpha)) != *alpha)
    return std::nullopt;
  return OnnxCall{"ThresholdedRelu", {{where.in("a")}}, {{"alpha", *alpha}}};
}

// x / (1 + |x|)
std::optional<OnnxCall> spell_softsign(const Node& div) {
  const Node* sum = made_for_this(div.in("b"), "add");
  const Value magnitude = sum != nullptr ? beside(*sum, 1) : Value();
  const Node* abs = magnitude ? made_for_this(magnitude, "abs") : nullptr;
  if (abs == nullptr || abs->in("x") != div.in("a") || !has_type_of(div, div.in("a")))
    return std::nullopt;
  return OnnxCall{"Softsign", {{div.in("a")}}, {}};
}

// The square that a value is.
Value root_of_square(Value value) {
  const Node* square = made_for_this(value, "mul");
  return square != nullptr && square->in("a") == square->in("b") ? square->in("a") : Value();
}

// A reduce_sum of something else than it says, in the word for it; axes are known, and there are some.
std::optional<OnnxCall> reduction(std::string_view name, const Node& sum, Value x) {
  if (sum.is_late("axes") || sum.attr("axes").as<Attribute::Ints>().empty())
    return std::nullopt;
  return OnnxCall{
      std::string(name), {{x}, {Value(), sum.attr("axes")}}, {{"keepdims", sum.attr("keep_dims")}}};
}

std::optional<OnnxCall> spell_sum_of(const Node& sum) {
  const Value x = sum.in("x");
  if (const Value root = root_of_square(x))
    return reduction("ReduceSumSquare", sum, root);
  const Node* abs = made_for_this(x, "abs");
  return abs != nullptr ? reduction("ReduceL1", sum, abs->in("x")) : std::nullopt;
}

std::optional<OnnxCall> spell_root(const Node& sqrt) {
  const Node* sum = made_for_this(sqrt.in("x"), "reduce_sum");
  const Value x = sum != nullptr ? root_of_square(sum->in("x")) : Value();
  return x ? reduction("ReduceL2", *sum, x) : std::nullopt;
}

std::optional<OnnxCall> spell_log(const Node& log) {
  const Node* sum = made_for_this(log.in("x"), "reduce_sum");
  return sum != nullptr ? reduction("ReduceLogSum", *sum, sum->in("x")) : std::nullopt;
}

// Blocks of b × b pixels that become channels, or are made of them: an image reshaped to six dimensions,
// transposed, and reshaped to four.
struct BlockForm {
  std::string_view op, mode;
  std::vector<int64_t> permutation;
  int64_t channels, rows, columns, block_rows, block_columns;  // where they are among the six
};

std::optional<OnnxCall> spell_blocks(const Node& last) {
  static const BlockForm forms[] = {
      {"DepthToSpace", "DCR", {0, 3, 4, 1, 5, 2}, 3, 4, 5, 1, 2},
      {"DepthToSpace", "CRD", {0, 1, 4, 2, 5, 3}, 1, 4, 5, 2, 3},
      {"SpaceToDepth", "", {0, 3, 5, 1, 2, 4}, 1, 2, 4, 3, 5},
  };
  const Node* transpose = made_for_this(last.in("x"), "transpose");
  const Node* first = transpose != nullptr ? made_for_this(transpose->in("x"), "reshape") : nullptr;
  if (first == nullptr || !first->result().shape().ranked() || first->result().rank() != 6)
    return std::nullopt;
  const Value x = first->in("x");
  const Shape& six = first->result().shape();
  const auto has_sizes = [](Value value, const std::vector<Dim>& dims) {
    return value.shape().ranked() &&
           std::ranges::equal(value.shape().dims(), dims,
                              [](const Dim& a, const Dim& b) { return provably_equal(a, b); });
  };
  const auto permutation = transpose->attr("permutation").as<Attribute::Ints>();
  for (const BlockForm& form : forms) {
    const Dim &b = six[form.block_rows], &channels = six[form.channels];
    const Dim &rows = six[form.rows], &columns = six[form.columns];
    if (permutation != form.permutation || !b.is_constant() || !provably_equal(b, six[form.block_columns]))
      continue;
    const std::vector<Dim> wide = {six[0], channels, rows * b, columns * b};
    const std::vector<Dim> deep = {six[0], channels * b * b, rows, columns};
    const bool widens = form.op == "DepthToSpace";
    if (!has_sizes(x, widens ? deep : wide) || !has_sizes(last.result(), widens ? wide : deep))
      continue;
    OnnxCall call{std::string(form.op), {{x}}, {{"blocksize", *b.constant()}}};
    if (!form.mode.empty())
      call.attributes.push_back({"mode", std::string(form.mode)});
    return call;
  }
  return std::nullopt;
}

}  // namespace

std::optional<OnnxCall> spell_together(const Node& node) {
  if (!node.result().type().is_tensor() || node.result().dtype() != DType::F32)
    return std::nullopt;
  struct Formula {
    std::string_view last;
    std::optional<OnnxCall> (*spell)(const Node&);
  };
  static constexpr Formula formulas[] = {
      {"where", spell_prelu},    {"where", spell_thresholded_relu},
      {"div", spell_softsign},   {"reduce_sum", spell_sum_of},
      {"sqrt", spell_root},      {"log", spell_log},
      {"reshape", spell_blocks},
  };
  for (const Formula& formula : formulas)
    if (node.is(formula.last))
      if (auto call = formula.spell(node))
        return call;
  return std::nullopt;
}

}  // namespace tenon::onnx
