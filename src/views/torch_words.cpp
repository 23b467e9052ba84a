#include "views/torch_words.h"

#include <map>

#include "ir/print.h"
#include "views/constants.h"
#include "views/dtype_words.h"

namespace tenon {
namespace {

// One op as fx calls it and as TorchScript does; no name where that has none.
struct TorchWord {
  std::string_view op, function, aten;
  std::vector<Rename> attributes = {};
  std::vector<Argument> function_arguments = {}, aten_arguments = {};
  DTypeSet dtypes = AnyDType;
};

const std::vector<TorchWord>& torch_words() {
  static const std::vector<TorchWord> words = {
      {"abs", "torch.abs", "aten::abs"},
      {"acos", "torch.acos", "aten::acos"},
      {"acosh", "torch.acosh", "aten::acosh"},
      {"add", "operator.add", "aten::add", {}, {}, {{"a"}, {"b"}, {"alpha", 1}}},
      {"and", "torch.logical_and", "aten::logical_and"},
      {"arg_max", "torch.argmax", "aten::argmax", {{"axis", "dim"}, {"keep_dims", "keepdim"}}},
      {"arg_min", "torch.argmin", "aten::argmin", {{"axis", "dim"}, {"keep_dims", "keepdim"}}},
      {"asin", "torch.asin", "aten::asin"},
      {"asinh", "torch.asinh", "aten::asinh"},
      {"atan", "torch.atan", "aten::atan"},
      {"atanh", "torch.atanh", "aten::atanh"},
      {"batch_norm",
       "torch.nn.functional.batch_norm",
       "aten::batch_norm",
       {{"epsilon", "eps"}},
       {{"x"},
        {"mean"},
        {"variance"},
        {"scale"},
        {"bias"},
        {"training", false},
        {"momentum", 0.1},
        {"epsilon"}},
       {{"x"},
        {"scale"},
        {"bias"},
        {"mean"},
        {"variance"},
        {"training", false},
        {"momentum", 0.1},
        {"epsilon"},
        {"cudnn_enabled", true}}},
      {"bit_and", "operator.and_", "aten::bitwise_and"},
      {"bit_not", "operator.invert", "aten::bitwise_not"},
      {"bit_or", "operator.or_", "aten::bitwise_or"},
      {"bit_xor", "operator.xor", "aten::bitwise_xor"},
      {"broadcast", "torch.broadcast_to", "aten::broadcast_to"},
      {"cast",
       "torch.Tensor.to",
       "aten::to",
       {{"to", "dtype"}},
       {},
       {{"x"}, {"to"}, {"non_blocking", false}, {"copy", false}, {"memory_format"}}},
      {"ceil", "torch.ceil", "aten::ceil"},
      {"clip", "torch.clamp", "aten::clamp"},
      {"concat", "torch.cat", "aten::cat", {{"axis", "dim"}}},
      {"conv",
       "torch.conv#d",
       "aten::conv#d",
       {{"strides", "stride"},
        {"pads", "padding", ShownAs::OneEnd},
        {"dilations", "dilation"},
        {"groups", "groups"}},
       {},
       {{"x"}, {"w"}, {"bias"}, {"strides"}, {"pads"}, {"dilations"}, {"groups"}}},
      {"conv_transpose",
       "torch.conv_transpose#d",
       "aten::conv_transpose#d",
       {{"strides", "stride"},
        {"pads", "padding", ShownAs::OneEnd},
        {"output_padding", "output_padding"},
        {"groups", "groups"},
        {"dilations", "dilation"}},
       {},
       {{"x"}, {"w"}, {"bias"}, {"strides"}, {"pads"}, {"output_padding"}, {"groups"}, {"dilations"}}},
      {"copy", "torch.clone", "aten::clone", {}, {}, {{"x"}, {"memory_format"}}},
      {"cos", "torch.cos", "aten::cos"},
      {"cosh", "torch.cosh", "aten::cosh"},
      {"cumulative_prod",
       "torch.cumprod",
       "aten::cumprod",
       {{"axis", "dim"}},
       {},
       {{"x"}, {"axis"}, {"dtype"}}},
      {"cumulative_sum", "torch.cumsum", "aten::cumsum", {{"axis", "dim"}}, {}, {{"x"}, {"axis"}, {"dtype"}}},
      {"determinant", "torch.linalg.det", "aten::linalg_det"},
      {"div", "operator.truediv", "aten::div", {}, {}, {}, Floats},
      {"elu", "torch.nn.functional.elu", "", {{"alpha", "alpha"}}},
      {"elu",
       "torch.ops.aten.elu",
       "aten::elu",
       {{"alpha", "alpha"}, {"scale", "scale"}, {"input_scale", "input_scale"}}},
      {"equal", "operator.eq", "aten::eq"},
      {"erf", "torch.erf", "aten::erf"},
      {"exp", "torch.exp", "aten::exp"},
      {"floor", "torch.floor", "aten::floor"},
      {"gather_elements",
       "torch.gather",
       "aten::gather",
       {{"axis", "dim"}},
       {{"x"}, {"axis"}, {"indices"}},
       {{"x"}, {"axis"}, {"indices"}, {"sparse_grad", false}}},
      {"gelu", "torch.nn.functional.gelu", "aten::gelu", {{"approximate", "approximate"}}},
      {"greater", "operator.gt", "aten::gt"},
      {"greater_equal", "operator.ge", "aten::ge"},
      {"group_norm",
       "torch.nn.functional.group_norm",
       "aten::group_norm",
       {{"groups", "num_groups"}, {"epsilon", "eps"}},
       {{"x"}, {"groups"}, {"scale"}, {"bias"}, {"epsilon"}},
       {{"x"}, {"groups"}, {"scale"}, {"bias"}, {"epsilon"}, {"cudnn_enabled", true}}},
      {"hard_swish", "torch.nn.functional.hardswish", "aten::hardswish"},
      {"instance_norm",
       "torch.nn.functional.instance_norm",
       "aten::instance_norm",
       {{"epsilon", "eps"}},
       {{"x"},
        {"running_mean"},
        {"running_var"},
        {"scale"},
        {"bias"},
        {"use_input_stats", true},
        {"momentum", 0.1},
        {"epsilon"}},
       {{"x"},
        {"scale"},
        {"bias"},
        {"running_mean"},
        {"running_var"},
        {"use_input_stats", true},
        {"momentum", 0.1},
        {"epsilon"},
        {"cudnn_enabled", true}}},
      {"is_nan", "torch.isnan", "aten::isnan"},
      {"layer_norm",
       "torch.nn.functional.layer_norm",
       "aten::layer_norm",
       {{"axis", "normalized_shape", ShownAs::Sizes}, {"epsilon", "eps"}},
       {{"x"}, {"axis"}, {"scale"}, {"bias"}, {"epsilon"}},
       {{"x"}, {"axis"}, {"scale"}, {"bias"}, {"epsilon"}, {"cudnn_enable", true}}},
      {"leaky_relu", "torch.nn.functional.leaky_relu", "aten::leaky_relu", {{"alpha", "negative_slope"}}},
      {"less", "operator.lt", "aten::lt"},
      {"less_equal", "operator.le", "aten::le"},
      {"linear", "torch.nn.functional.linear", "aten::linear"},
      {"log", "torch.log", "aten::log"},
      {"log_softmax",
       "torch.log_softmax",
       "aten::log_softmax",
       {{"axis", "dim"}},
       {},
       {{"x"}, {"axis"}, {"dtype"}}},
      {"matmul", "torch.matmul", "aten::matmul"},
      {"max", "torch.maximum", "aten::maximum"},
      {"min", "torch.minimum", "aten::minimum"},
      {"mish", "torch.nn.functional.mish", "aten::mish"},
      {"mul", "operator.mul", "aten::mul"},
      {"neg", "operator.neg", "aten::neg"},
      {"not", "torch.logical_not", "aten::logical_not"},
      {"or", "torch.logical_or", "aten::logical_or"},
      {"pow", "operator.pow", "aten::pow"},
      {"range",
       "torch.arange",
       "aten::arange",
       {},
       {},
       {{"start"}, {"limit"}, {"delta"}, {"dtype"}, {"layout"}, {"device"}, {"pin_memory"}}},
      {"reciprocal", "torch.reciprocal", "aten::reciprocal"},
      {"reduce_log_sum_exp",
       "torch.logsumexp",
       "aten::logsumexp",
       {{"axes", "dim"}, {"keep_dims", "keepdim"}}},
      {"reduce_max", "torch.amax", "aten::amax", {{"axes", "dim"}, {"keep_dims", "keepdim"}}},
      {"reduce_mean",
       "torch.mean",
       "aten::mean",
       {{"axes", "dim"}, {"keep_dims", "keepdim"}},
       {},
       {{"x"}, {"axes"}, {"keep_dims"}, {"dtype"}}},
      {"reduce_min", "torch.amin", "aten::amin", {{"axes", "dim"}, {"keep_dims", "keepdim"}}},
      {"reduce_sum",
       "torch.sum",
       "aten::sum",
       {{"axes", "dim"}, {"keep_dims", "keepdim"}},
       {},
       {{"x"}, {"axes"}, {"keep_dims"}, {"dtype"}}},
      {"relu", "torch.relu", "aten::relu"},
      {"reshape", "torch.reshape", "aten::reshape", {{"allow_zero", ""}}},
      {"rms_norm",
       "torch.nn.functional.rms_norm",
       "aten::rms_norm",
       {{"axis", "normalized_shape", ShownAs::Sizes}, {"epsilon", "eps"}},
       {{"x"}, {"axis"}, {"scale"}, {"epsilon"}},
       {{"x"}, {"axis"}, {"scale"}, {"epsilon"}}},
      {"round", "torch.round", "aten::round"},
      {"sequence_at", "operator.getitem", "aten::__getitem__"},
      {"sequence_length", "len", "aten::len"},
      {"shape", "torch.Tensor.size", "aten::size"},
      {"sigmoid", "torch.sigmoid", "aten::sigmoid"},
      {"sign", "torch.sign", "aten::sign"},
      {"silu", "torch.nn.functional.silu", "aten::silu"},
      {"sin", "torch.sin", "aten::sin"},
      {"sinh", "torch.sinh", "aten::sinh"},
      {"softmax", "torch.softmax", "aten::softmax", {{"axis", "dim"}}, {}, {{"x"}, {"axis"}, {"dtype"}}},
      {"softplus",
       "torch.nn.functional.softplus",
       "aten::softplus",
       {},
       {},
       {{"x"}, {"beta", 1}, {"threshold", 20}}},
      {"split", "torch.split", "aten::split", {{"axis", "dim"}}},
      {"sqrt", "torch.sqrt", "aten::sqrt"},
      {"squeeze", "torch.squeeze", "aten::squeeze", {{"axes", "dim"}}},
      {"sub", "operator.sub", "aten::sub", {}, {}, {{"a"}, {"b"}, {"alpha", 1}}},
      {"tan", "torch.tan", "aten::tan"},
      {"tanh", "torch.tanh", "aten::tanh"},
      {"tile", "torch.tile", "aten::tile"},
      {"transpose", "torch.permute", "aten::permute", {{"permutation", "dims"}}},
      {"unsqueeze", "torch.unsqueeze", "aten::unsqueeze", {{"axes", "dim", ShownAs::Element}}},
      {"unsqueeze", "torch.reshape", "aten::reshape", {{"axes", "shape", ShownAs::Shape}}},
      {"where", "torch.where", "aten::where"},
      {"xor", "torch.logical_xor", "aten::logical_xor"},
  };
  return words;
}

Vocabulary vocabulary_of(std::string_view TorchWord::*name, std::vector<Argument> TorchWord::*arguments) {
  std::vector<Counterpart> table;
  for (const TorchWord& word : torch_words())
    if (!(word.*name).empty())
      table.push_back({word.op, word.*name, word.attributes, word.*arguments, word.dtypes});
  return Vocabulary(std::move(table));
}

}  // namespace

const Vocabulary& torch_functions() {
  static const Vocabulary vocabulary = vocabulary_of(&TorchWord::function, &TorchWord::function_arguments);
  return vocabulary;
}

const Vocabulary& aten_ops() {
  static const Vocabulary vocabulary = vocabulary_of(&TorchWord::aten, &TorchWord::aten_arguments);
  return vocabulary;
}

TorchSlot torch_slot(const Node& node, std::string_view operand) {
  static const std::map<std::pair<std::string_view, std::string_view>, TorchSlot> slots = {
      {{"add", "b"}, TorchSlot::TensorOrNumber},
      {{"bit_and", "b"}, TorchSlot::TensorOrNumber},
      {{"bit_or", "b"}, TorchSlot::TensorOrNumber},
      {{"bit_xor", "b"}, TorchSlot::TensorOrNumber},
      {{"broadcast", "shape"}, TorchSlot::Ints},
      {{"clip", "max"}, TorchSlot::TensorOrNumber},
      {{"clip", "min"}, TorchSlot::TensorOrNumber},
      {{"div", "b"}, TorchSlot::TensorOrNumber},
      {{"equal", "b"}, TorchSlot::TensorOrNumber},
      {{"greater", "b"}, TorchSlot::TensorOrNumber},
      {{"greater_equal", "b"}, TorchSlot::TensorOrNumber},
      {{"less", "b"}, TorchSlot::TensorOrNumber},
      {{"less_equal", "b"}, TorchSlot::TensorOrNumber},
      {{"mul", "b"}, TorchSlot::TensorOrNumber},
      {{"pow", "b"}, TorchSlot::TensorOrNumber},
      {{"range", "delta"}, TorchSlot::Number},
      {{"range", "limit"}, TorchSlot::Number},
      {{"range", "start"}, TorchSlot::Number},
      {{"reshape", "shape"}, TorchSlot::Ints},
      {{"sequence_at", "position"}, TorchSlot::Int},
      {{"split", "sizes"}, TorchSlot::Ints},
      {{"sub", "b"}, TorchSlot::TensorOrNumber},
      {{"tile", "repeats"}, TorchSlot::Ints},
      {{"where", "a"}, TorchSlot::TensorOrNumber},
      {{"where", "b"}, TorchSlot::TensorOrNumber},
  };
  const auto it = slots.find({node.op().name, operand});
  if (it == slots.end())
    return TorchSlot::Tensor;
  // Where one bound is a tensor, both are.
  const auto is_number = [](Value v) { return !v || is_number_for(TorchSlot::Number, v); };
  const bool has_tensor = node.is("clip") && (!is_number(node.in("min")) || !is_number(node.in("max")));
  return has_tensor ? TorchSlot::Tensor : it->second;
}

bool is_number_for(TorchSlot slot, Value value) {
  if (!short_constant(value, kPythonNumbers) || slot == TorchSlot::Tensor)
    return false;
  return (value.rank() == 0) != (slot == TorchSlot::Ints);
}

std::string python_text(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return attribute.as<bool>() ? "True" : "False";
    case AttributeKind::String: {
      const std::string& text = attribute;
      const bool is_plain = text.find('\'') == std::string::npos && quote(text).size() == text.size() + 2;
      return is_plain ? fmt::format("'{}'", text) : quote(text);
    }
    case AttributeKind::DType:
      return fmt::format("torch.{}", words_for(attribute.as<DType>()).torch);
    default:
      return print(attribute);
  }
}

}  // namespace tenon
