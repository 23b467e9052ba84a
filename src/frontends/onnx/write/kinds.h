// kinds.h — the kinds of nodes that words of ONNX are for, and attributes that must be computed.
#pragma once

#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

// The tensor whose shape our operand `shape` is; null where it comes from elsewhere.
Value like(const Node& node);

bool has_known_sizes(const Node& node);
bool is_like(const Node& node);
bool is_like_and_has_seed(const Node& node);
bool has_known_shape_and_seed(const Node& node);
bool has_known_samples_and_seed(const Node& node);
bool has_whole_exponent(const Node& node);
bool is_of_tensors(const Node& node);
bool is_celu(const Node& node);
bool is_to_float8(const Node& node);
bool is_hann(const Node& node);
bool is_hamming(const Node& node);
bool is_blackman(const Node& node);
bool is_plain_attention(const Node& node);
bool knows_what_turns(const Node& node);

void add_seed(const Node& node, OnnxCall& call);
void add_shape_and_seed(const Node& node, OnnxCall& call);
void add_samples_and_seed(const Node& node, OnnxCall& call);
void reduce_nothing_for_no_axes(const Node& node, OnnxCall& call);
void add_exponent(const Node& node, OnnxCall& call);
void add_element_dtype(const Node& node, OnnxCall& call);
bool has_two_sizes(const Node& node);
void add_output_size(const Node& node, OnnxCall& call);
void add_turned_size(const Node& node, OnnxCall& call);
bool has_pool_of_words(const Node& node);
void add_pool(const Node& node, OnnxCall& call);
void add_kernel(const Node& node, OnnxCall& call);
bool is_of_f32(const Node& node);
void add_rho_and_count(const Node& node, OnnxCall& call);
void add_class_labels(const Node& node, OnnxCall& call);
void add_layer_attributes(const Node& node, OnnxCall& call);

}  // namespace tenon::onnx
