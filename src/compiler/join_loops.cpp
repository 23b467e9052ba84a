#include "compiler/join_loops.h"

#include <algorithm>

#include "runtime/program.h"

namespace tenon::compiler {

using runtime::Home;
using runtime::HostStep;
using runtime::LoopsStep;
using runtime::Slot;
using runtime::Step;

namespace {

// Whether it is a loop that may run while others do. Random numbers are drawn in the order of the steps, and
// what finds out sizes tells those that come after.
bool can_run_beside_others(const HostStep& step, const std::vector<Slot>& slots) {
  const auto body = step.regions.find("body");
  return body != step.regions.end() && !has_host_steps(*body->second) &&
         std::none_of(step.writes.begin(), step.writes.end(),
                      [&](size_t slot) { return slots[slot].home == Home::Own; });
}

bool needs(const HostStep& step, const std::vector<size_t>& written) {
  return std::any_of(step.reads.begin(), step.reads.end(), [&](size_t slot) {
    return std::find(written.begin(), written.end(), slot) != written.end();
  });
}

void append(std::vector<size_t>& all, const std::vector<size_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

void add_host_step(HostStep step, const std::vector<Slot>& slots, std::vector<Step>& steps) {
  const bool may_join = !steps.empty() && can_run_beside_others(step, slots);
  if (auto* loop = may_join ? std::get_if<HostStep>(&steps.back()) : nullptr;
      loop != nullptr && can_run_beside_others(*loop, slots) && !needs(step, loop->writes)) {
    LoopsStep loops{.loops = {}, .reads = loop->reads, .writes = loop->writes};
    loops.loops.push_back(std::move(*loop));
    steps.back() = std::move(loops);
  }
  auto* loops = may_join ? std::get_if<LoopsStep>(&steps.back()) : nullptr;
  if (loops == nullptr || needs(step, loops->writes)) {
    steps.emplace_back(std::move(step));
    return;
  }
  append(loops->reads, step.reads);
  append(loops->writes, step.writes);
  loops->loops.push_back(std::move(step));
}

}  // namespace tenon::compiler
