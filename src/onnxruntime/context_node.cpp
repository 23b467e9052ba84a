#include "onnxruntime/context_node.h"

#include <tenon/tenon.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "compiler/save_program.h"
#include "onnxruntime/provider.h"

namespace tenon::onnxruntime {
namespace {

namespace fs = std::filesystem;
using Program = std::shared_ptr<const runtime::Executor>;

// ONNX Runtime's names.
constexpr const char *kOp = "EPContext", *kDomain = "com.microsoft";
constexpr const char *kEnable = "ep.context_enable", *kFilePath = "ep.context_file_path",
                     *kEmbedMode = "ep.context_embed_mode";
constexpr const char *kSource = "source", *kContent = "ep_cache_context", *kEmbedded = "embed_mode",
                     *kMain = "main_context", *kNotes = "notes", *kVersion = "ep_sdk_version";

std::string read_switch(const Ort::ConstSessionOptions& options, const char* name) {
  std::string value = options.GetConfigEntryOrDefault(name, "0");
  if (value != "0" && value != "1")
    throw user_error("{} must be 0 or 1, but is '{}'", name, value);
  return value;
}

// --- write

Ort::OpAttr text_attribute(const char* name, std::string_view text) {
  return {name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING};
}

Ort::OpAttr number_attribute(const char* name, int64_t number) { return {name, &number, 1, ORT_OP_ATTR_INT}; }

// What tells the program from others.
std::string notes_of(const runtime::ProgramFile& program) {
  return fmt::format("program {:016x}", program.hash());
}

std::vector<std::string> names_of(const std::vector<Ort::ConstValueInfo>& values) {
  std::vector<std::string> names;
  for (const Ort::ConstValueInfo& value : values)
    names.push_back(value.GetName());
  return names;
}

// --- read

template <class T>
std::optional<T> read_attribute(const Ort::ConstNode& node, const char* name) {
  for (const Ort::ConstOpAttr& attribute : node.GetAttributes())
    if (T value; attribute.GetName() == name && attribute.GetValue(value).IsOK())
      return value;
  return std::nullopt;
}

std::string content_of(const Ort::ConstNode& node) {
  std::optional<std::string> content = read_attribute<std::string>(node, kContent);
  if (!content)
    throw user_error("it has no {}", kContent);
  return std::move(*content);
}

Program open_checked(const runtime::ProgramFile& program, const Ort::ConstNode& node, bool check_weights) {
  if (read_attribute<std::string>(node, kNotes) != notes_of(program))
    throw user_error("{} is not the program that the model was written with", program.name());
  if (check_weights)
    program.check_weights();
  return compiler::open_program(program).executor;
}

Program open_embedded(const Ort::ConstNode& node, bool check_weights) {
  const std::string content = content_of(node);
  const auto bytes = MappedFile::copy(kContent, std::as_bytes(std::span(content)));
  const auto program = runtime::ProgramFile::in_memory(bytes->bytes());
  // The bytes stay as long as it runs.
  const auto held = std::make_shared<const std::pair<std::shared_ptr<const MappedFile>, Program>>(
      bytes, open_checked(*program, node, check_weights));
  return {held, held->second.get()};
}

Program open_beside(const Ort::ConstNode& node, const fs::path& folder, bool check_weights) {
  const fs::path path = content_of(node);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end())
    throw user_error("{} is \"{}\", but must be a path within the folder of the model", kContent,
                     path.string());
  return open_checked(*runtime::ProgramFile::open(folder / path), node, check_weights);
}

}  // namespace

ContextModelOptions read_context_options(const Ort::ConstSessionOptions& options) {
  return {.is_written = read_switch(options, kEnable) == "1",
          .is_embedded = read_switch(options, kEmbedMode) == "1",
          .model = options.GetConfigEntryOrDefault(kFilePath, std::string())};
}

fs::path program_path(const ContextModelOptions& options, const fs::path& model_read) {
  fs::path model = options.model;
  if (model.empty() && !model_read.empty())
    model = model_read.parent_path() / (model_read.stem().string() + "_ctx.onnx");
  if (!model.has_filename() || fs::is_directory(model))
    throw user_error(
        "{} must name the file of the model that is written, so that the program can be beside it; or {} "
        "must be 1",
        kFilePath, kEmbedMode);
  return model.replace_extension(runtime::kProgramExtension);
}

Ort::Node make_context_node(const Ort::ConstNode& fused, const runtime::ProgramFile& program,
                            bool is_embedded) {
  const std::span<const std::byte> bytes = program.bytes();
  if (is_embedded && bytes.size() > std::numeric_limits<int>::max())
    throw user_error("the program has {} bytes, which no model can hold: {} must be 0", bytes.size(),
                     kEmbedMode);
  std::vector<Ort::OpAttr> attributes;
  attributes.push_back(text_attribute(kSource, kProviderName));
  attributes.push_back(text_attribute(kVersion, tenon_version()));
  attributes.push_back(text_attribute(kNotes, notes_of(program)));
  attributes.push_back(number_attribute(kMain, 1));
  attributes.push_back(number_attribute(kEmbedded, is_embedded ? 1 : 0));
  attributes.push_back(
      is_embedded ? text_attribute(kContent, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
                  : text_attribute(kContent, fs::path(program.name()).filename().string()));
  return {kOp,       kDomain, fused.GetName(), names_of(fused.GetInputs()), names_of(fused.GetOutputs()),
          attributes};
}

bool is_context_node(const Ort::ConstNode& node) {
  return node.GetOperatorType() == kOp && node.GetDomain() == kDomain &&
         read_attribute<std::string>(node, kSource) == kProviderName;
}

std::shared_ptr<const runtime::Executor> open_context(const Ort::ConstNode& node, const fs::path& folder,
                                                      bool check_weights) {
  return with_context([&] { return fmt::format("node \"{}\": {}", node.GetName(), kOp); },
                      [&] {
                        if (read_attribute<int64_t>(node, kMain).value_or(1) != 1)
                          throw user_error("{} must be 1: every node has a program of its own", kMain);
                        return read_attribute<int64_t>(node, kEmbedded).value_or(1) != 0
                                   ? open_embedded(node, check_weights)
                                   : open_beside(node, folder, check_weights);
                      });
}

}  // namespace tenon::onnxruntime
