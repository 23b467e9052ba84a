#include "api/targets_to_save.h"

#include <algorithm>

#include "base/error.h"
#include "target/compile_targets.h"
#include "target/words.h"

namespace tenon::api {

void add_target(std::vector<compiler::TargetToSave>& targets, std::string name,
                const std::optional<Target>& machine, const ContextOptions& options) {
  constexpr size_t kLongestName = 30;  // that fits into the names of sections
  if (name.empty() || name.find_first_of(" \t\r\n,") != std::string::npos)
    throw user_error("\"{}\" cannot be the name of a target: it is empty, or has spaces or commas", name);
  if (std::ranges::find(targets, name, &compiler::TargetToSave::name) != targets.end())
    throw user_error("{} is named twice", name);
  if (name.size() > kLongestName)
    throw user_error("{}: a target has a name of at most {} letters", name, kLongestName);
  compiler::TargetToSave made{.name = std::move(name), .context = default_context(options)};
  if (machine) {
    made.context.target = *machine;
    made.context.target.cores = this_machine().cores;  // which generate the code
    made.context.tuning = {};                          // was measured here
  }
  targets.push_back(std::move(made));
}

std::vector<compiler::TargetToSave> targets_to_save(std::string_view names, const ContextOptions& options) {
  std::vector<compiler::TargetToSave> targets;
  while (!names.empty()) {
    const std::string_view name = cut(names, ',');
    add_target(targets, std::string(name),
               name == kNativeTarget ? std::nullopt : std::optional(compile_target(name)), options);
  }
  if (targets.empty())
    throw user_error("no target is named");
  return targets;
}

}  // namespace tenon::api
