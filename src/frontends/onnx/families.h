// families.h — the families of conversions, one file each. Apart from conversions.h, so that a new family
// recompiles only the list.
#pragma once

#include "frontends/onnx/conversions.h"

namespace tenon::onnx {

const Conversions& activation_conversions();
const Conversions& attention_conversions();
const Conversions& control_conversions();
const Conversions& convolve_conversions();
const Conversions& einsum_conversions();
const Conversions& elementwise_conversions();
const Conversions& gather_conversions();
const Conversions& generate_conversions();
const Conversions& image_conversions();
const Conversions& linear_conversions();
const Conversions& loss_conversions();
const Conversions& microsoft_attention_conversions();
const Conversions& microsoft_fused_conversions();
const Conversions& microsoft_quantised_conversions();
const Conversions& microsoft_recurrent_conversions();
const Conversions& ml_conversions();
const Conversions& normalise_conversions();
const Conversions& pool_conversions();
const Conversions& quantise_conversions();
const Conversions& random_conversions();
const Conversions& recurrent_conversions();
const Conversions& reduce_conversions();
const Conversions& reshape_conversions();
const Conversions& scatter_conversions();
const Conversions& select_conversions();
const Conversions& sequence_conversions();
const Conversions& signal_conversions();
const Conversions& slice_conversions();
const Conversions& softmax_conversions();
const Conversions& sort_conversions();
const Conversions& string_conversions();
const Conversions& training_conversions();
const Conversions& tree_conversions();

}  // namespace tenon::onnx
