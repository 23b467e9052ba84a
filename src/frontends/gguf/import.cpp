#include "frontends/gguf/import.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/gguf/architectures.h"
#include "ir/print.h"

namespace tenon::gguf {
namespace {

const Architecture& architecture_of(const Container& container) {
  const auto it = container.keys().find("general.architecture");
  const auto* name = it == container.keys().end() ? nullptr : std::get_if<std::string_view>(&it->second);
  if (name == nullptr)
    throw user_error("key \"general.architecture\" is missing or not a string");
  const auto& all = all_architectures();
  const auto found = std::ranges::find(all, *name, &Architecture::name);
  if (found != all.end())
    return *found;
  std::vector<std::string_view> names;
  for (const Architecture& each : all)
    names.push_back(each.name);
  throw unsupported("the architecture {}\n  hint: those that are read are {}", quote(*name),
                    fmt::join(names, " "));
}

// One of the files that a large model was cut into has only some of its tensors.
void refuse_parts(const Container& container) {
  const auto it = container.keys().find("split.count");
  const auto* count = it == container.keys().end() ? nullptr : std::get_if<uint64_t>(&it->second);
  if (count != nullptr && *count > 1)
    throw unsupported(
        "this is one of {} files that a model was split into\n  hint: llama-gguf-split --merge joins them",
        *count);
}

}  // namespace

const std::vector<Architecture>& all_architectures() {
  static const std::vector<Architecture> architectures = {
      {"llama", trace_llama},
      {"qwen2", trace_qwen2},
      {"qwen3", trace_qwen3},
  };
  return architectures;
}

std::unique_ptr<Graph> read_gguf(const std::filesystem::path& path) {
  return read_gguf(MappedFile::open(path));
}

std::unique_ptr<Graph> read_gguf(const std::shared_ptr<const MappedFile>& file) {
  return with_context([&] { return file->path().string(); },
                      [&] {
                        const Container container(file);
                        refuse_parts(container);
                        const Architecture& architecture = architecture_of(container);
                        ModelSource source(container, std::string(architecture.name));
                        std::unique_ptr<Graph> graph = architecture.trace(source);
                        source.refuse_unused();
                        graph->set_name(std::string(architecture.name));
                        return graph;
                      });
}

}  // namespace tenon::gguf
