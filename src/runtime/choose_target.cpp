#include "runtime/choose_target.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "target/words.h"

namespace tenon::runtime {
namespace {

constexpr std::string_view kX86 = "x86-64", kArm = "arm64";

std::string_view name_of(Architecture architecture) {
  return architecture == Architecture::X86_64 ? kX86 : kArm;
}

std::string explain(const SavedTarget& target, const Target& machine) {
  return fmt::format("{} needs {}", target.name, fmt::join(find_missing(target, machine), ", "));
}

}  // namespace

std::string print_targets(const std::vector<SavedTarget>& targets) {
  std::string text;
  for (const SavedTarget& target : targets)
    text += fmt::format("{} {} {} {}\n", target.name, name_of(target.architecture), target.cpu,
                        fmt::join(target.features, " "));
  return text;
}

std::vector<SavedTarget> parse_targets(std::string_view text) {
  std::vector<SavedTarget> targets;
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    SavedTarget& target = targets.emplace_back();
    target.name = cut(line, ' ');
    target.architecture = cut(line, ' ') == kArm ? Architecture::Arm64 : Architecture::X86_64;
    target.cpu = cut(line, ' ');
    while (!line.empty())
      target.features.emplace_back(cut(line, ' '));
  }
  return targets;
}

std::vector<std::string> find_missing(const SavedTarget& target, const Target& machine) {
  if (target.architecture != machine.architecture)
    return {std::string(name_of(target.architecture))};
  std::vector<std::string> missing;
  for (const std::string& feature : target.features)
    if (!machine.has(feature))
      missing.push_back(feature);
  // The names of the levels of x86-64 are in the order of the levels, and a level is more than its features.
  if (missing.empty() && target.cpu > machine.cpu)
    missing.push_back(target.cpu);
  return missing;
}

const SavedTarget* best_target(const std::vector<SavedTarget>& targets, const Target& machine) {
  const SavedTarget* best = nullptr;
  for (const SavedTarget& target : targets)
    if (find_missing(target, machine).empty() &&
        (best == nullptr || target.features.size() > best->features.size()))
      best = &target;
  return best;
}

std::string choose_target(const ProgramFile& file, const Target& machine, std::string_view wanted) {
  const std::span<const std::byte> bytes = file.bytes_of(kTargetsSection);
  std::vector<SavedTarget> targets =
      parse_targets({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::vector<std::string> names, reasons;
  for (const SavedTarget& target : targets)
    names.push_back(target.name);
  if (!wanted.empty()) {
    std::erase_if(targets, [&](const SavedTarget& target) { return target.name != wanted; });
    if (targets.empty())
      throw user_error("{}: the saved program has no code for {}; it has code for {}", file.name(), wanted,
                       fmt::join(names, ", "));
  }
  if (const SavedTarget* const best = best_target(targets, machine))
    return best->name;
  for (const SavedTarget& target : targets)
    reasons.push_back(explain(target, machine));
  throw user_error("{}: the saved program has no code for this processor: {}", file.name(),
                   fmt::join(reasons, "; "));
}

}  // namespace tenon::runtime
