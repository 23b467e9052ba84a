// families.h — the tables of conversions, each in the file of its family's name.
#pragma once

#include "frontends/torch/conversions.h"

namespace tenon::torch {

const Conversions& activation_conversions();
const Conversions& arithmetic_conversions();
const Conversions& attention_conversions();
// Of nodes that take or give complex numbers, a table of its own.
const Conversions& complex_conversions();
const Conversions& control_conversions();
const Conversions& convolve_conversions();
const Conversions& elementwise_conversions();
const Conversions& external_conversions();
const Conversions& generate_conversions();
const Conversions& image_conversions();
const Conversions& index_conversions();
const Conversions& join_conversions();
const Conversions& linear_conversions();
const Conversions& loss_conversions();
const Conversions& normalise_conversions();
const Conversions& number_conversions();
const Conversions& pool_conversions();
const Conversions& random_conversions();
const Conversions& recurrent_conversions();
const Conversions& reduce_conversions();
const Conversions& reshape_conversions();
const Conversions& scatter_conversions();
const Conversions& select_conversions();
const Conversions& sort_conversions();
const Conversions& strided_conversions();

}  // namespace tenon::torch
