#include "onnxruntime/compatibility.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/choose_target.h"
#include "target/words.h"

namespace tenon::onnxruntime {
namespace {

constexpr std::string_view kFormat = "tenon program of format ";

}  // namespace

std::string describe_compatibility(const runtime::ProgramFile& program) {
  const std::span<const std::byte> targets = program.bytes_of(runtime::kTargetsSection);
  return fmt::format("{}{}\n{}", kFormat, runtime::kProgramFormat,
                     std::string_view(reinterpret_cast<const char*>(targets.data()), targets.size()));
}

OrtCompiledModelCompatibility judge_compatibility(std::string_view description) {
  std::string_view first = cut(description, '\n');
  if (!first.starts_with(kFormat))
    return OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  first.remove_prefix(kFormat.size());
  uint32_t format = 0;
  const auto [end, problem] = std::from_chars(first.data(), first.data() + first.size(), format);
  if (problem != std::errc() || end != first.data() + first.size())
    return OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  const std::vector<runtime::SavedTarget> targets = runtime::parse_targets(description);
  const Target& machine = this_machine();
  const runtime::SavedTarget* const best = runtime::best_target(targets, machine);
  if (format == 0 || format > runtime::kProgramFormat || best == nullptr)
    return OrtCompiledModelCompatibility_EP_UNSUPPORTED;
  return best->features.size() == machine.features.size()
             ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
             : OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
}

}  // namespace tenon::onnxruntime
