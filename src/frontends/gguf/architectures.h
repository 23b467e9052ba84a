// architectures.h — the models that GGUF files are read as, by the name that a file gives its architecture.
#pragma once

#include <memory>
#include <vector>

#include "frontends/gguf/model_source.h"

namespace tenon::gguf {

struct Architecture {
  std::string_view name;
  std::unique_ptr<Graph> (*trace)(ModelSource& source);
};

const std::vector<Architecture>& all_architectures();

// One file each.
std::unique_ptr<Graph> trace_llama(ModelSource& source);
std::unique_ptr<Graph> trace_qwen2(ModelSource& source);
std::unique_ptr<Graph> trace_qwen3(ModelSource& source);

}  // namespace tenon::gguf
