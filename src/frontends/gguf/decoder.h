// decoder.h — the graph that the decoders of language models share: layers of RMS norm, rotary attention of
// grouped queries and SwiGLU, from token ids to logits.
//
//   input_ids               i64[1,length]
//   past_key_values.N.key   f32[1,heads,past,size], and .value: of the tokens before; "past" may be 0
//   logits                  f32[1,length,vocabulary]
//   present.N.key           f32[1,heads,past + length,size], and .value: the past of what comes after
#pragma once

#include <memory>

#include "frontends/gguf/model_source.h"

namespace tenon::gguf {

struct DecoderStyle {
  bool interleaved = false;  // the numbers of a rotary pair stand side by side; else half a head apart
  bool biases = false;       // queries, keys and values have biases; else they may
  bool head_norms = false;   // queries and keys are normalised head by head
};

std::unique_ptr<Graph> trace_decoder(ModelSource& source, const DecoderStyle& style);

}  // namespace tenon::gguf
