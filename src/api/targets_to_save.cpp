#include "api/targets_to_save.h"

#include <algorithm>

#include "base/error.h"
#include "target/compile_targets.h"
#include "target/words.h"

namespace tenon::api {
namespace {

compiler::TargetToSave target_to_save(std::string_view name, const ContextOptions& options) {
  compiler::TargetToSave made{.name = std::string(name), .context = default_context(options)};
  if (name == kNativeTarget)
    return made;
  made.context.target = compile_target(name);
  made.context.target.cores = this_machine().cores;  // which generate the code
  made.context.tuning = {};                          // was measured here
  return made;
}

}  // namespace

std::vector<compiler::TargetToSave> targets_to_save(std::string_view names, const ContextOptions& options) {
  constexpr size_t kLongestName = 30;  // that fits into the names of sections
  std::vector<compiler::TargetToSave> targets;
  while (!names.empty()) {
    const std::string_view name = cut(names, ',');
    if (std::ranges::find(targets, name, &compiler::TargetToSave::name) != targets.end())
      throw user_error("{} is named twice", name);
    if (name.size() > kLongestName)
      throw user_error("{}: a target has a name of at most {} letters", name, kLongestName);
    targets.push_back(target_to_save(name, options));
  }
  if (targets.empty())
    throw user_error("no target is named");
  return targets;
}

}  // namespace tenon::api
