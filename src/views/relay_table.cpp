#include "views/relay_table.h"

namespace tenon {
namespace {

const Vocabulary& relay_ops() {
  static const Vocabulary vocabulary({
      {"abs", "abs"},
      {"acos", "acos"},
      {"acosh", "acosh"},
      {"add", "add"},
      {"and", "logical_and"},
      {"arg_max", "argmax", {{"axis", "axis"}, {"keep_dims", "keepdims"}, {"last", "select_last_index"}}},
      {"arg_min", "argmin", {{"axis", "axis"}, {"keep_dims", "keepdims"}, {"last", "select_last_index"}}},
      {"asin", "asin"},
      {"asinh", "asinh"},
      {"atan", "atan"},
      {"atanh", "atanh"},
      {"average_pool",
       "nn.avg_pool#d",
       {{"kernel", "pool_size"},
        {"strides", "strides"},
        {"dilations", "dilation"},
        {"pads", "padding"},
        {"round_up", "ceil_mode"},
        {"count_padding", "count_include_pad"}}},
      {"batch_norm", "nn.batch_norm", {{"epsilon", "epsilon"}}},
      {"bit_and", "bitwise_and"},
      {"bit_cast", "reinterpret", {{"to", "dtype"}}},
      {"bit_not", "bitwise_not"},
      {"bit_or", "bitwise_or"},
      {"bit_xor", "bitwise_xor"},
      {"broadcast", "broadcast_to"},
      {"cast", "cast", {{"to", "dtype"}}},
      {"ceil", "ceil"},
      {"concat", "concatenate", {{"axis", "axis"}}},
      {"conv",
       "nn.conv#d",
       {{"groups", "groups"}, {"strides", "strides"}, {"dilations", "dilation"}, {"pads", "padding"}}},
      {"conv_transpose",
       "nn.conv#d_transpose",
       {{"groups", "groups"},
        {"output_padding", "output_padding"},
        {"strides", "strides"},
        {"dilations", "dilation"},
        {"pads", "padding"}}},
      {"copy", "copy"},
      {"cos", "cos"},
      {"cosh", "cosh"},
      {"cumulative_prod", "cumprod", {{"axis", "axis"}, {"exclusive", "exclusive"}}},
      {"cumulative_sum", "cumsum", {{"axis", "axis"}, {"exclusive", "exclusive"}}},
      {"div", "divide"},
      {"einsum", "einsum", {{"equation", "equation"}}},
      {"equal", "equal"},
      {"erf", "erf"},
      {"exp", "exp"},
      {"floor", "floor"},
      {"gather", "take", {{"axis", "axis"}}},
      {"gather_elements", "gather", {{"axis", "axis"}}},
      {"greater", "greater"},
      {"greater_equal", "greater_equal"},
      {"group_norm", "nn.group_norm", {{"groups", "num_groups"}, {"epsilon", "epsilon"}}},
      {"instance_norm", "nn.instance_norm", {{"epsilon", "epsilon"}}},
      {"is_inf", "isinf"},
      {"is_nan", "isnan"},
      {"layer_norm", "nn.layer_norm", {{"axis", "axis"}, {"epsilon", "epsilon"}}},
      {"leaky_relu", "nn.leaky_relu", {{"alpha", "alpha"}}},
      {"less", "less"},
      {"less_equal", "less_equal"},
      {"local_response_norm",
       "nn.lrn",
       {{"size", "size"}, {"alpha", "alpha"}, {"beta", "beta"}, {"bias", "bias"}}},
      {"log", "log"},
      {"log_softmax", "nn.log_softmax", {{"axis", "axis"}}},
      {"matmul", "nn.matmul", {{"transpose_a", "transpose_a"}, {"transpose_b", "transpose_b"}}},
      {"max", "maximum"},
      {"min", "minimum"},
      {"mul", "multiply"},
      {"neg", "negative"},
      {"not", "logical_not"},
      {"or", "logical_or"},
      {"pow", "power"},
      {"reduce_log_sum_exp", "logsumexp", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_max", "max", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_mean", "mean", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_min", "min", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_prod", "prod", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"reduce_sum", "sum", {{"axes", "axis"}, {"keep_dims", "keepdims"}}},
      {"relu", "nn.relu"},
      {"reshape", "reshape", {{"allow_zero", "allowzero"}}},
      {"reverse_sequence", "reverse_sequence", {{"time_axis", "seq_axis"}, {"batch_axis", "batch_axis"}}},
      {"round", "round"},
      {"shape", "shape_of"},
      {"sigmoid", "sigmoid"},
      {"sign", "sign"},
      {"sin", "sin"},
      {"sinh", "sinh"},
      {"softmax", "nn.softmax", {{"axis", "axis"}}},
      {"split", "split", {{"axis", "axis"}}},
      {"sqrt", "sqrt"},
      {"squeeze", "squeeze", {{"axes", "axis"}}},
      {"sub", "subtract"},
      {"tan", "tan"},
      {"tanh", "tanh"},
      {"tile", "tile"},
      {"transpose", "transpose", {{"permutation", "axes"}}},
      {"unsqueeze", "expand_dims", {{"axes", "axis", ShownAs::Element}}},
      {"unsqueeze", "reshape", {{"axes", "newshape", ShownAs::Shape}}},
      {"where", "where"},
      {"xor", "logical_xor"},
  });
  return vocabulary;
}

const Counterpart kMaxPool = {"max_pool",
                              "nn.max_pool#d",
                              {{"kernel", "pool_size"},
                               {"strides", "strides"},
                               {"dilations", "dilation"},
                               {"pads", "padding"},
                               {"round_up", "ceil_mode"}}};

// Relay has no indices of the greatest elements, and no pads that depend on sizes.
const Counterpart* find_max_pool(const Node& node) {
  const bool can_tell = node.result(1).use_count() == 0 && node.attr("padding") == Attribute("explicit");
  return can_tell && fill_in_dims(kMaxPool.name, node) ? &kMaxPool : nullptr;
}

}  // namespace

// Relay multiplies matrices, or batches of them along one dimension.
const Counterpart* find_relay_op(const Node& node) {
  static const Counterpart batched = {
      "matmul", "nn.batch_matmul", {{"transpose_a", "transpose_a"}, {"transpose_b", "transpose_b"}}};
  if (node.is("max_pool"))
    return find_max_pool(node);
  if (!node.is("matmul"))
    return relay_ops().find(node);
  const Shape &a = node.in("a").shape(), &b = node.in("b").shape();
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank() || a.rank() < 2 || a.rank() > 3)
    return nullptr;
  return a.rank() == 3 ? &batched : relay_ops().find(node);
}

}  // namespace tenon
