// llama.cpp — Llama 1 to 3, and what shares their architecture: Mistral, TinyLlama, SmolLM and others.
// Writers of files permute the rows of queries and keys, so that the numbers of a rotary pair stand side by
// side.
#include "frontends/gguf/architectures.h"
#include "frontends/gguf/decoder.h"

namespace tenon::gguf {

std::unique_ptr<Graph> trace_llama(ModelSource& source) {
  return trace_decoder(source, {.interleaved = true});
}

}  // namespace tenon::gguf
