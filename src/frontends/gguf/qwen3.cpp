// qwen3.cpp — Qwen 3, without experts: queries and keys are normalised head by head.
#include "frontends/gguf/architectures.h"
#include "frontends/gguf/decoder.h"

namespace tenon::gguf {

std::unique_ptr<Graph> trace_qwen3(ModelSource& source) {
  return trace_decoder(source, {.head_norms = true});
}

}  // namespace tenon::gguf
