#include "frontends/onnx/write/spell.h"

#include <algorithm>

#include "frontends/dimensions.h"
#include "frontends/onnx/write/integer_products.h"
#include "frontends/onnx/write/schemas.h"
#include "frontends/onnx/write/together.h"
#include "ops/onnx_node.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

bool is_result_of(Value value, std::string_view op) { return !value.is_input() && value.node()->is(op); }

bool has_shape(Value value, const Shape& shape) {
  return value.type().is_tensor() && value.shape().ranked() && value.shape().rank() == shape.rank() &&
         std::ranges::equal(value.shape().dims(), shape.dims(),
                            [](const Dim& a, const Dim& b) { return provably_equal(a, b); });
}

bool are_ones(const Attribute& attribute) {
  return std::ranges::all_of(attribute.as<Attribute::Ints>(), [](int64_t i) { return i == 1; });
}

// --- attributes that older opsets do not have

// What a dtype is when ONNX is not told: that of the scale, or of the zero point.
bool is_implied_dtype(const Node& node, std::string_view attribute) {
  const DType dtype = node.attr("to");
  if (attribute != "output_dtype" || !node.has("zero_point") || node.is("dequantize"))
    return attribute == "output_dtype" &&
           (node.is("dequantize") ? node.in("scale").dtype() == dtype : dtype == DType::U8);
  return node.in("zero_point").dtype() == dtype;
}

// Whether each size of a reshape is other than 0, or is that of x, which ONNX takes 0 for unless told
// otherwise.
bool has_no_zero_of_its_own(const Node& reshape) {
  const auto sizes = reshape.in("shape").known_dims();
  const Shape& x = reshape.in("x").shape();
  if (!sizes)
    return false;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const Dim& size = (*sizes)[i];
    const auto at = static_cast<int64_t>(i);
    const bool is_zero_never = size == Dim(-1) || size.lower_bound().value_or(0) > 0;
    if (!is_zero_never && !(x.ranked() && at < x.rank() && provably_equal(size, x[at])))
      return false;
  }
  return true;
}

bool is_default(const Node& node, const OnnxCall& call, const NamedAttribute& attribute) {
  struct Default {
    std::string_view op_type, attribute;
    Attribute value;
  };
  static const std::vector<Default> defaults = {
      {"Cast", "saturate", true},
      {"Cast", "round_mode", "up"},
      {"DequantizeLinear", "block_size", 0},
      {"QuantizeLinear", "block_size", 0},
      {"QuantizeLinear", "saturate", true},
      {"LpPool", "ceil_mode", false},
      {"Reshape", "allowzero", false},
      {"Resize", "antialias", false},
      {"Resize", "axes", Attribute::Ints{}},
      {"Resize", "keep_aspect_ratio_policy", "stretch"},
      {"ScatterElements", "reduction", "none"},
      {"ScatterND", "reduction", "none"},
      {"Swish", "alpha", 1.0},
  };
  if (call.name == "QuantizeLinear" || call.name == "DequantizeLinear")
    if (is_implied_dtype(node, attribute.name))
      return true;
  if (attribute.name == "allowzero" && has_no_zero_of_its_own(node))
    return true;
  if (attribute.name == "dilations" && (call.name == "AveragePool" || call.name == "LpPool"))
    return are_ones(attribute.value);
  return std::ranges::any_of(defaults, [&](const Default& known) {
    return known.op_type == call.name && known.attribute == attribute.name && known.value == attribute.value;
  });
}

void drop_missing_inputs(OnnxCall& call) {
  while (!call.inputs.empty() && !call.inputs.back().value && !call.inputs.back().constant)
    call.inputs.pop_back();
}

// Pad takes numbers for all axes where none are named.
bool names_all_axes(const OnnxCall& pad) {
  const Shape& x = pad.inputs[0].value.shape();
  return pad.inputs.size() == 4 && pad.inputs[3].constant && x.ranked() &&
         std::ranges::equal(pad.inputs[3].constant->as<Attribute::Ints>(), axes_between(0, x.rank()));
}

void tidy(const Node& node, OnnxCall& call) {
  if (call.name == "Pad" && names_all_axes(call))
    call.inputs.pop_back();
  drop_missing_inputs(call);
  std::erase_if(call.attributes, [&](const NamedAttribute& a) { return is_default(node, call, a); });
}

// --- a bias with what it is added to

// The bias of each channel, as a vector: of a value that is one along the channels of `y` and 1 elsewhere.
OnnxInput channel_vector(Value bias, Value y, ConstantExpressions& constants) {
  if (!bias.type().is_tensor() || !bias.shape().ranked() || !y.shape().ranked() || y.rank() < 3)
    return {};
  const int64_t rank = bias.rank(), spatial = y.rank() - 2;
  if (rank <= spatial || rank > y.rank() || !y.dim(1).is_constant())
    return {};
  for (int64_t i = 0; i < rank; ++i)
    if (bias.dim(i) != (i == rank - spatial - 1 ? y.dim(1) : Dim(1)))
      return {};
  if (is_result_of(bias, "unsqueeze") && bias.node()->in("x").shape().ranked() &&
      bias.node()->in("x").rank() == 1)
    return {bias.node()->in("x")};
  return constants.contains(bias) ? OnnxInput{.value = bias, .flat = true} : OnnxInput();
}

std::optional<OnnxCall> spell_channel_bias(const Node& add, Value y, Value bias,
                                           ConstantExpressions& constants) {
  struct Biased {
    std::string_view op;
    size_t place;  // of the bias among the inputs
  };
  constexpr Biased biased[] = {{"conv", 2}, {"conv_transpose", 2}, {"deform_conv", 3}};
  if (y.is_input() || !y.has_one_use())
    return std::nullopt;
  const auto* found = std::ranges::find(biased, y.node()->op().name, &Biased::op);
  if (found == std::end(biased) || !has_shape(add.result(), y.shape()))
    return std::nullopt;
  const OnnxInput vector = channel_vector(bias, y, constants);
  auto call = vector.value ? call_in_onnx(*y.node()) : std::nullopt;
  if (!call)
    return std::nullopt;
  call->inputs.resize(std::max(call->inputs.size(), found->place + 1));
  call->inputs[found->place] = vector;
  return call;
}

// --- Gemm: alpha · A' B' + beta · C, of matrices

struct Product {
  Value a, b;
  bool transpose_a = false, transpose_b = false;
};

std::optional<Product> product_of(Value y) {
  if (y.is_input())
    return std::nullopt;
  const Node& node = *y.node();
  Product product;
  if (node.is("matmul"))
    product = {node.in("a"), node.in("b"), node.attr("transpose_a"), node.attr("transpose_b")};
  else if (node.is("linear"))
    product = {node.in("x"), node.in("weight"), false, true};
  return product.a && is_float_matrix(product.a) && is_float_matrix(product.b) ? std::optional(product)
                                                                               : std::nullopt;
}

OnnxCall spell_gemm(const Product& product, Value c, double alpha) {
  OnnxCall call = {"Gemm", {{product.a}, {product.b}}, {}};
  if (c)
    call.inputs.push_back({c});
  if (alpha != 1)
    call.attributes.push_back({"alpha", alpha});
  if (product.transpose_a)
    call.attributes.push_back({"transA", true});
  if (product.transpose_b)
    call.attributes.push_back({"transB", true});
  return call;
}

// A constant of one element, as the number it is.
std::optional<double> number_of(Value value) {
  const Tensor* known = value.known_tensor();
  if (known == nullptr || known->rank() != 0 || !is_float(known->dtype()))
    return std::nullopt;
  return widen<double>(*known).front();
}

struct ScaledProduct {
  Product product;
  double alpha = 1;
};

// What a value that has one use is, if that is a product, perhaps with a factor.
std::optional<ScaledProduct> scaled_product_of(Value y) {
  if (y.is_input() || !y.has_one_use())
    return std::nullopt;
  if (const auto product = product_of(y); product && !(y.node()->is("linear") && y.node()->has("bias")))
    return ScaledProduct{*product};
  if (!y.node()->is("mul"))
    return std::nullopt;
  const Value x = y.node()->in("a");
  const auto factor = number_of(y.node()->in("b"));
  if (!factor || !x.has_one_use())
    return std::nullopt;
  const auto product = is_result_of(x, "matmul") ? product_of(x) : std::nullopt;
  return product ? std::optional(ScaledProduct{*product, *factor}) : std::nullopt;
}

std::optional<OnnxCall> spell_sum(const Node& add, ConstantExpressions& constants) {
  const Value a = add.in("a"), b = add.in("b");
  for (const auto& [y, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (auto call = spell_channel_bias(add, y, other, constants))
      return call;
    const auto scaled = scaled_product_of(y);
    if (scaled && other.shape().ranked() && other.rank() <= 2 && has_shape(add.result(), y.shape()))
      return spell_gemm(scaled->product, other, scaled->alpha);
  }
  return std::nullopt;
}

std::optional<OnnxCall> spell_product(const Node& node) {
  const auto product = product_of(node.result());
  if (!product || (node.is("matmul") && !product->transpose_a && !product->transpose_b))
    return std::nullopt;
  return spell_gemm(*product, node.is("linear") ? node.in("bias") : Value(), 1);
}

OnnxCall call_of_kept(const Node& node) {
  OnnxNode kept = onnx_node_of(node);
  OnnxCall call = {
      std::move(kept.op), {}, {}, std::move(kept.attributes), OpsetRange{kept.since, kept.until}};
  for (const int64_t operand : kept.inputs)
    call.inputs.push_back({operand < 0 ? Value() : node.operand(operand)});
  return call;
}

// --- older forms

// Until opset 17 Pad took numbers for all axes.
std::optional<OnnxCall> pad_of_all_axes(const OnnxCall& call) {
  const Shape& x = call.inputs[0].value.shape();
  const auto pads = call.inputs[1].value.known_ints();
  if (call.inputs.size() != 4 || !call.inputs[3].constant || !x.ranked() || !pads)
    return std::nullopt;
  const Attribute::Ints& axes = *call.inputs[3].constant;
  Attribute::Ints all(static_cast<size_t>(2 * x.rank()), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(axes[i] < 0 ? axes[i] + x.rank() : axes[i]);
    all[at] = (*pads)[i];
    all[at + static_cast<size_t>(x.rank())] = (*pads)[i + axes.size()];
  }
  OnnxCall older = {call.name, {call.inputs[0], {Value(), all}, call.inputs[2]}, call.attributes};
  drop_missing_inputs(older);
  return older;
}

// Until opset 17 the axes of most reductions were an attribute.
std::optional<OnnxCall> older_form(const OnnxCall& call) {
  if (call.name == "Pad")
    return pad_of_all_axes(call);
  if (!call.name.starts_with("Reduce") || call.name == "ReduceSum" || call.inputs.size() != 2 ||
      !call.inputs[1].constant || call.inputs[1].constant->as<Attribute::Ints>().empty())
    return std::nullopt;
  OnnxCall older = call;
  older.attributes.push_back({"axes", *call.inputs[1].constant});
  older.inputs.pop_back();
  return older;
}

}  // namespace

bool is_float_matrix(Value value) {
  return value.shape().ranked() && value.rank() == 2 && is_float(value.dtype());
}

std::optional<OnnxCall> spell(const Node& node, ConstantExpressions& constants) {
  if (node.is("onnx_node"))
    return call_of_kept(node);
  std::optional<OnnxCall> call;
  if (node.is("add"))
    call = spell_sum(node, constants);
  else if (node.is("matmul") || node.is("linear"))
    call = spell_product(node);
  if (!call)
    call = spell_together(node);
  if (!call)
    call = spell_integer_product(node);
  if (call && !needed_opset(*call, {node.result().type()}))
    call = std::nullopt;
  if (!call)
    call = call_in_onnx(node);
  if (call)
    tidy(node, *call);
  return call;
}

std::optional<int64_t> needed_opset(const OnnxCall& call, const Types& outputs) {
  if (call.opsets) {
    const int64_t oldest = split_name(call.name).domain.empty() ? kOldestWritten : 1;
    return oldest <= call.opsets->until ? std::optional(std::max(oldest, call.opsets->since)) : std::nullopt;
  }
  if (const auto older = older_form(call))
    if (const auto opset = oldest_opset(*older, outputs))
      return opset;
  return oldest_opset(call, outputs);
}

OnnxCall in_opset(OnnxCall call, int64_t opset) {
  const auto older = opset < 18 && !call.opsets ? older_form(call) : std::nullopt;
  return older ? *older : call;
}

}  // namespace tenon::onnx
