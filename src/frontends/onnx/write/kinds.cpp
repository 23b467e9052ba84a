#include "frontends/onnx/write/kinds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// Our seeds are the bits of ONNX's, which are floats.
bool has_seed_of_theirs(const Node& node) {
  const int64_t seed = node.attr("seed");
  return seed == -1 || (0 <= seed && seed <= std::numeric_limits<uint32_t>::max());
}

bool has_coefficients(const Node& node, const Attribute::Floats& wanted) {
  return node.attr("coefficients").as<Attribute::Floats>() == wanted;
}

// Without lengths at the first key, else as many before the end of the keys as there are queries.
bool starts_as_in_onnx(const Node& node) {
  if (!node.has("offset") || !node.has("lengths"))
    return !node.has("offset") && !node.has("lengths");
  const Node* offset = node.in("offset").node();
  if (offset == nullptr || !offset->is("sub") || offset->in("a") != node.in("lengths"))
    return false;
  const auto queries = offset->in("b").known_dims();
  const Shape& q = node.in("q").shape();
  return queries && queries->size() == 1 && q.ranked() && queries->front() == q[-2];
}

// --- recurrent layers

struct ActivationWord {
  std::string_view ours, theirs;
  bool takes_alpha = false, takes_beta = false;
};

// A name that is none stands where no rank is known, and is passed on.
ActivationWord activation_word(const std::string& name) {
  static constexpr ActivationWord words[] = {
      {"affine", "Affine", true, true},
      {"elu", "Elu", true},
      {"hard_sigmoid", "HardSigmoid", true, true},
      {"leaky_relu", "LeakyRelu", true},
      {"relu", "Relu"},
      {"scaled_tanh", "ScaledTanh", true, true},
      {"sigmoid", "Sigmoid"},
      {"softplus", "Softplus"},
      {"softsign", "Softsign"},
      {"tanh", "Tanh"},
      {"thresholded_relu", "ThresholdedRelu", true},
  };
  const auto it = std::ranges::find(words, std::string_view(name), &ActivationWord::ours);
  return it != std::end(words) ? *it : ActivationWord{name, name};
}

// The places in our list of activations, in the order of ONNX's, which names those of both directions.
std::vector<size_t> activation_places(const Node& node) {
  const size_t given = node.attr("activations").as<Attribute::Strings>().size();
  const size_t usual =
      node.op().find_attribute("activations")->default_value->as<Attribute::Strings>().size();
  const bool is_for_both = node.attr("direction") == Attribute("bidirectional") && given == usual;
  std::vector<size_t> places;
  for (size_t i = 0; i < given * (is_for_both ? 2 : 1); ++i)
    places.push_back(i % given);
  return places;
}

// Of the numbers of all activations, those of the ones that take one.
void add_numbers(const Node& node, std::string_view ours, std::string_view theirs,
                 bool ActivationWord::*takes, OnnxCall& call) {
  const Attribute::Strings& names = node.attr("activations");
  const Attribute::Floats& numbers = node.attr(ours);
  Attribute::Floats taken;
  for (const size_t place : activation_places(node))
    if (place < numbers.size() && activation_word(names[place]).*takes)
      taken.push_back(numbers[place]);
  if (!taken.empty())
    call.attributes.push_back({theirs, taken});
}

void add_activations(const Node& node, OnnxCall& call) {
  const Attribute::Strings& names = node.attr("activations");
  if (node.attr("activations") == *node.op().find_attribute("activations")->default_value)
    return;
  Attribute::Strings words;
  for (const size_t place : activation_places(node))
    words.emplace_back(activation_word(names[place]).theirs);
  call.attributes.push_back({"activations", words});
  add_numbers(node, "alpha", "activation_alpha", &ActivationWord::takes_alpha, call);
  add_numbers(node, "beta", "activation_beta", &ActivationWord::takes_beta, call);
}

}  // namespace

Value like(const Node& node) {
  const Node* shape = node.in("shape").node();
  return shape != nullptr && shape->is("shape") ? shape->in("x") : Value();
}

bool is_like(const Node& node) { return bool(like(node)); }

void add_seed(const Node& node, OnnxCall& call) {
  const int64_t seed = node.attr("seed");
  if (seed != -1)
    call.attributes.push_back(
        {"seed", static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(seed)))});
}

bool is_like_and_has_seed(const Node& node) { return is_like(node) && has_seed_of_theirs(node); }

bool has_known_shape_and_seed(const Node& node) {
  return node.in("shape").known_ints() && has_seed_of_theirs(node);
}

void add_shape_and_seed(const Node& node, OnnxCall& call) {
  call.attributes.push_back({"shape", *node.in("shape").known_ints()});
  add_seed(node, call);
}

bool has_known_samples_and_seed(const Node& node) {
  return node.in("samples").known_ints() && has_seed_of_theirs(node);
}

void add_samples_and_seed(const Node& node, OnnxCall& call) {
  call.attributes.push_back({"sample_size", node.in("samples").known_ints()->front()});
  add_seed(node, call);
}

// ONNX takes no axes for all of them, unless told otherwise.
void reduce_nothing_for_no_axes(const Node& node, OnnxCall& call) {
  if (node.is_late("axes") || node.attr("axes").as<Attribute::Ints>().empty())
    call.attributes.push_back({"noop_with_empty_axes", true});
}

bool has_whole_exponent(const Node& node) {
  const double p = node.attr("p");
  return p == std::floor(p) && std::abs(p) < 1e9;
}

void add_exponent(const Node& node, OnnxCall& call) {
  call.attributes.push_back({"p", static_cast<int64_t>(node.attr("p").as<double>())});
}

bool is_of_tensors(const Node& node) { return node.attr("element").as<Type>().is_tensor(); }

void add_element_dtype(const Node& node, OnnxCall& call) {
  call.attributes.push_back({"dtype", node.attr("element").as<Type>().as_tensor().dtype});
}

bool has_two_sizes(const Node& node) { return node.attr("size").as<Attribute::Ints>().size() == 2; }

void add_output_size(const Node& node, OnnxCall& call) {
  const Attribute::Ints& size = node.attr("size");
  call.attributes.push_back({"output_height", size[0]});
  call.attributes.push_back({"output_width", size[1]});
}

bool is_celu(const Node& node) {
  return node.attr("input_scale").as<double>() == 1 / node.attr("alpha").as<double>();
}

// Only there ONNX limits what is out of range.
bool is_to_float8(const Node& node) {
  constexpr DTypeSet limited = {DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                                DType::F8E8M0};
  return limited.contains(node.attr("to"));
}

bool is_hann(const Node& node) { return has_coefficients(node, {0.5, 0.5}); }
bool is_hamming(const Node& node) { return has_coefficients(node, {25.0 / 46, 21.0 / 46}); }
bool is_blackman(const Node& node) { return has_coefficients(node, {0.42, 0.5, 0.08}); }

// The last query stands at the last key that is no padding, where lengths say which that is, and else the
// first at the first; later keys are seen all or not at all; and a mask covers the keys or is filled up to
// them.
bool is_plain_attention(const Node& node) {
  const int64_t before = node.attr("window_before"), after = node.attr("window_after");
  const bool is_windowed = before >= 0 || after >= 0;
  if (after > 0 || (is_windowed && !starts_as_in_onnx(node)))
    return false;
  const bool is_filled_up = node.attr("pad_mask");
  if (!node.has("mask"))
    return !is_filled_up;
  const Shape &mask = node.in("mask").shape(), &keys = node.in("k").shape();
  return is_filled_up || (mask.ranked() && mask.rank() > 0 && keys.ranked() && mask[-1] == keys[-2]);
}

bool knows_what_turns(const Node& node) {
  const Shape &x = node.in("x").shape(), &cos = node.in("cos").shape();
  return x.ranked() && x.rank() == 4 && cos.ranked() && cos.rank() == 3 && x[3].is_constant() &&
         cos[2].is_constant() && provably_equal(cos[0], x[0]);
}

void add_turned_size(const Node& node, OnnxCall& call) {
  const int64_t turned = 2 * *node.in("cos").dim(2).constant();
  if (turned != *node.in("x").dim(3).constant())
    call.attributes.push_back({"rotary_embedding_dim", turned});
}

bool has_pool_of_words(const Node& node) {
  const DType dtype = node.attr("pool").as<Literal>().dtype();
  return dtype == DType::String || is_integer(dtype);
}

void add_pool(const Node& node, OnnxCall& call) {
  const Tensor pool = node.attr("pool").as<Literal>().tensor();
  if (pool.dtype() == DType::String)
    call.attributes.push_back({"pool_strings", pool.strings()});
  else
    call.attributes.push_back({"pool_int64s", as_ints(pool)});
}

bool has_known_sizes(const Node& node) {
  const Shape &x = node.in("x").shape(), &y = node.result().shape();
  if (!x.ranked() || !y.ranked() || x.rank() != y.rank())
    return false;
  for (int64_t i = 2; i < x.rank(); ++i)
    if (!x[i].is_constant() || !y[i].is_constant() || *y[i].constant() < *x[i].constant())
      return false;
  return true;
}

// ONNX gives the shape as that of a pool: with a stride of 1, this kernel is what makes x of it.
void add_kernel(const Node& node, OnnxCall& call) {
  const Shape &x = node.in("x").shape(), &y = node.result().shape();
  Attribute::Ints kernel;
  for (int64_t i = 2; i < x.rank(); ++i)
    kernel.push_back(*y[i].constant() - *x[i].constant() + 1);
  call.attributes.push_back({"kernel_shape", kernel});
}

bool is_of_f32(const Node& node) { return node.in("x").dtype() == DType::F32; }

void add_rho_and_count(const Node& node, OnnxCall& call) {
  call.attributes.push_back({"rho", Attribute::Floats{node.attr("rho")}});
  if (!node.attr("vectors").as<Attribute::Floats>().empty())
    call.attributes.push_back({"n_supports", std::ssize(node.attr("coefficients").as<Attribute::Floats>())});
}

void add_class_labels(const Node& node, OnnxCall& call) {
  const Tensor labels = node.attr("labels").as<Literal>().tensor();
  if (labels.dtype() == DType::String)
    call.attributes.push_back(
        {"classlabels_strings", Attribute::Strings(labels.strings().begin(), labels.strings().end())});
  else
    call.attributes.push_back({"classlabels_ints", as_ints(labels)});
}

void add_layer_attributes(const Node& node, OnnxCall& call) {
  const Shape& r = node.in("r").shape();
  if (r.ranked() && r.rank() == 3 && r[-1].is_constant())
    call.attributes.push_back({"hidden_size", *r[-1].constant()});
  add_activations(node, call);
}

}  // namespace tenon::onnx
