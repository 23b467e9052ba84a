#include "frontends/gguf/decoder.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "ops/activation.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/linear.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "ops/rotary.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/trace.h"
#include "ops/unary.h"

namespace tenon::gguf {
namespace {

struct Sizes {
  int64_t layers, width, hidden, heads, key_heads, head_size, value_size, rotated, vocabulary;
};

struct Rotary {
  double base, factor;
};

// Every size is bounded by a tensor of the file before anything is made of it.
Sizes read_sizes(ModelSource& source) {
  Sizes sizes{};
  sizes.layers = source.size("block_count");
  if (sizes.layers > source.tensor_count())
    throw user_error("there are {} layers, but {} tensors", sizes.layers, source.tensor_count());
  sizes.width = source.size("embedding_length");
  sizes.hidden = source.size("feed_forward_length");
  sizes.heads = source.size("attention.head_count");
  sizes.key_heads = source.size("attention.head_count_kv", sizes.heads);
  if (sizes.heads % sizes.key_heads != 0)
    throw user_error("{} heads cannot share {} key heads evenly", sizes.heads, sizes.key_heads);
  if (!source.has("attention.key_length") && sizes.width % sizes.heads != 0)
    throw user_error("a width of {} does not divide into {} heads", sizes.width, sizes.heads);
  sizes.head_size = source.size("attention.key_length", sizes.width / sizes.heads);
  sizes.value_size = source.size("attention.value_length", sizes.width / sizes.heads);
  sizes.rotated = source.size("rope.dimension_count", sizes.head_size);
  if (sizes.rotated % 2 != 0 || sizes.rotated > sizes.head_size)
    throw user_error("rope.dimension_count is {}, but must be even and at most the head size, {}",
                     sizes.rotated, sizes.head_size);
  source.tensor("blk.0.attn_q.weight", {sizes.heads * sizes.head_size, sizes.width});
  sizes.vocabulary = source.tensor("token_embd.weight", {std::nullopt, sizes.width}).extents[0];
  if (source.size("vocab_size", sizes.vocabulary) != sizes.vocabulary)
    throw user_error("there are {} tokens, but {} embeddings", source.size("vocab_size"), sizes.vocabulary);
  return sizes;
}

Rotary read_rotary(ModelSource& source) {
  Rotary rotary{.base = source.number("rope.freq_base", 10000), .factor = 1};
  const std::string scaling = source.text("rope.scaling.type", "none");
  if (scaling == "linear")
    rotary.factor = source.number("rope.scaling.factor");
  else if (scaling != "none")
    throw unsupported("rotary embeddings scaled by \"{}\"\n  hint: those that are read are none and linear",
                      scaling);
  return rotary;
}

class Decoder {
 public:
  Decoder(ModelSource& source, const DecoderStyle& style)
      : source_(source),
        style_(style),
        sizes_(read_sizes(source)),
        rotary_(read_rotary(source)),
        epsilon_(source.number("attention.layer_norm_rms_epsilon")) {
    source.ignore({"context_length", "tensor_data_layout", "rope.scaling.finetuned",
                   "rope.scaling.original_context_length"});
  }

  TracedInputs inputs() const {
    const Dim past = Dim::symbol("past");
    TracedInputs inputs = {{i64({1, Dim::symbol("length")}), "input_ids"}};
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      inputs.push_back(
          {f32({1, sizes_.key_heads, past, sizes_.head_size}), fmt::format("past_key_values.{}.key", i)});
      inputs.push_back(
          {f32({1, sizes_.key_heads, past, sizes_.value_size}), fmt::format("past_key_values.{}.value", i)});
    }
    return inputs;
  }

  std::vector<Value> operator()(const std::vector<Value>& inputs) {
    Graph& graph = inputs[0].graph();
    const Weight embedding = source_.weight(graph, "token_embd.weight", {sizes_.vocabulary, sizes_.width});
    std::vector<Value> outputs = {{}};
    Value x = embedding.rows(inputs[0]);
    past_ = size_along(inputs[1], 2);
    compute_angles(inputs[0]);
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      layer_ = fmt::format("blk.{}.", i);
      const auto past = static_cast<size_t>(1 + 2 * i);
      x = x + attend(normed(x, layer_ + "attn_norm"), inputs[past], inputs[past + 1], outputs);
      outputs[past].set_name(fmt::format("present.{}.key", i));
      outputs[past + 1].set_name(fmt::format("present.{}.value", i));
      x = x + feed_forward(normed(x, layer_ + "ffn_norm"));
    }
    x = normed(x, "output_norm");
    const Weight head = source_.has_tensor("output.weight")
                            ? source_.weight(graph, "output.weight", {sizes_.vocabulary, sizes_.width})
                            : embedding;
    outputs[0] = matmul(x, head.whole(), {.b = true});
    outputs[0].set_name("logits");
    return outputs;
  }

 private:
  Value vector(Value like, const std::string& name, int64_t size) {
    return source_.weight(like.graph(), name, {size}).whole();
  }

  Value normed(Value x, const std::string& name) {
    return rms_norm(x, vector(x, name + ".weight", *x.dim(-1).constant()), -1, epsilon_);
  }

  // A matrix of the layer, and a bias where there is one or must be.
  Value linear(Value x, const std::string& name, int64_t out, bool needs_bias = false) {
    const Value weight =
        source_.weight(x.graph(), layer_ + name + ".weight", {out, *x.dim(-1).constant()}).whole();
    const Value y = matmul(x, weight, {.b = true});
    const std::string bias = layer_ + name + ".bias";
    return needs_bias || source_.has_tensor(bias) ? y + vector(x, bias, out) : y;
  }

  // In f64, because a position of many digits times a frequency is an angle of which only the last digits
  // count.
  void compute_angles(Value ids) {
    Graph& graph = ids.graph();
    std::vector<double> frequencies;
    for (int64_t i = 0; i < sizes_.rotated; i += 2)
      frequencies.push_back(
          std::pow(rotary_.base, -static_cast<double>(i) / static_cast<double>(sizes_.rotated)) /
          rotary_.factor);
    Value frequency = constant(graph, Tensor::of(frequencies));
    if (source_.has_tensor("rope_freqs.weight"))
      frequency = frequency / cast(vector(ids, "rope_freqs.weight", sizes_.rotated / 2), DType::F64);
    const Value count =
        range(scalar(graph, DType::I64, 0), squeeze(size_along(ids, 1), {0}), scalar(graph, DType::I64, 1));
    const Value angles = unsqueeze(cast(past_ + count, DType::F64), {0, 2}) * frequency;
    cos_ = cast(cos(angles), DType::F32);
    sin_ = cast(sin(angles), DType::F32);
  }

  // [1, length, heads · size] as [1, heads, length, size], normalised where the style says so.
  Value heads(Value x, int64_t count, int64_t size, const std::string& norm = {}) {
    Value split = reshape_copying(x, {0, 0, count, size});
    if (style_.head_norms && !norm.empty())
      split = normed(split, layer_ + norm);
    return transpose(split, {0, 2, 1, 3});
  }

  Value attend(Value x, Value past_key, Value past_value, std::vector<Value>& presents) {
    const int64_t heads_size = sizes_.heads * sizes_.head_size,
                  keys_size = sizes_.key_heads * sizes_.head_size,
                  values_size = sizes_.key_heads * sizes_.value_size;
    const Value q =
        heads(linear(x, "attn_q", heads_size, style_.biases), sizes_.heads, sizes_.head_size, "attn_q_norm");
    const Value k = heads(linear(x, "attn_k", keys_size, style_.biases), sizes_.key_heads, sizes_.head_size,
                          "attn_k_norm");
    const Value v =
        heads(linear(x, "attn_v", values_size, style_.biases), sizes_.key_heads, sizes_.value_size);
    const Value key = concat({past_key, rotary(k, cos_, sin_, style_.interleaved)}, 2),
                value = concat({past_value, v}, 2);
    presents.insert(presents.end(), {key, value});
    const Value mixed = attention(
        rotary(q, cos_, sin_, style_.interleaved), key, value,
        {.scale = 1 / std::sqrt(static_cast<double>(sizes_.head_size)), .window_after = 0, .offset = past_});
    const int64_t mixed_size = sizes_.heads * sizes_.value_size;
    return linear(reshape_copying(transpose(mixed, {0, 2, 1, 3}), {0, 0, mixed_size}), "attn_output",
                  sizes_.width);
  }

  Value feed_forward(Value x) {
    const Value gate = silu(linear(x, "ffn_gate", sizes_.hidden));
    return linear(gate * linear(x, "ffn_up", sizes_.hidden), "ffn_down", sizes_.width);
  }

  ModelSource& source_;
  const DecoderStyle style_;
  const Sizes sizes_;
  const Rotary rotary_;
  const double epsilon_;
  std::string layer_;  // the start of its tensors' names
  Value past_, cos_, sin_;
};

}  // namespace

std::unique_ptr<Graph> trace_decoder(ModelSource& source, const DecoderStyle& style) {
  Decoder decoder(source, style);
  return trace(decoder.inputs(), [&](const std::vector<Value>& inputs) { return decoder(inputs); });
}

}  // namespace tenon::gguf
