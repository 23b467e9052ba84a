// qwen2.cpp — Qwen 2 and 2.5: queries, keys and values have biases.
#include "frontends/gguf/architectures.h"
#include "frontends/gguf/decoder.h"

namespace tenon::gguf {

std::unique_ptr<Graph> trace_qwen2(ModelSource& source) { return trace_decoder(source, {.biases = true}); }

}  // namespace tenon::gguf
