#include "compiler/explain_contraction.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/cpu/select_contraction.h"

namespace tenon::compiler {

using lowering::ContractionPlan;
using lowering::Decider;
using lowering::PlanCandidate;

namespace {

std::string_view name_of(Decider decider) {
  switch (decider) {
    case Decider::CostModel:
      return "the cost model";
    case Decider::Tuning:
      return "tuning";
    case Decider::Numerics:
      return "numerics";
    case Decider::Target:
      return "the target";
    case Decider::Shape:
      return "the shape";
  }
  return "";
}

std::string in_quotes(const std::vector<std::string>& sources) {
  std::vector<std::string> quoted;
  for (const std::string& source : sources)
    quoted.push_back(fmt::format("\"{}\"", source));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

std::string describe(const ContractionPlan& plan) {
  const auto chosen =
      std::ranges::find_if(plan.candidates, [](const PlanCandidate& each) { return each.declined.empty(); });
  return plan.tile || plan.winograd || chosen == plan.candidates.end() ? schedule::describe(plan)
                                                                       : chosen->name;
}

std::string explain(const ContractionPlan& plan) {
  std::string text = fmt::format("  {}, decided by {}\n", describe(plan), name_of(plan.decider));
  for (const PlanCandidate& each : plan.candidates) {
    const std::string estimate =
        each.estimate ? fmt::format(", about {:.4g} {}", *each.estimate, each.unit) : std::string();
    text += fmt::format("    {}{}: {}\n", each.name, estimate,
                        each.declined.empty() ? "chosen" : "declined: " + each.declined);
  }
  return text;
}

[[noreturn]] void refuse(const FusionReport& fusion, const std::string& node) {
  std::vector<std::string_view> names;
  for (const FusedKernel& kernel : fusion.after)
    names.insert(names.end(), kernel.sources.begin(), kernel.sources.end());
  throw user_error("no kernel computes a node \"{}\"{}", node, did_you_mean(node, names));
}

}  // namespace

std::string explain_contraction(const FusionReport& fusion, const std::string& node) {
  std::string planned, others;
  for (const FusedKernel& kernel : fusion.after)
    if (std::ranges::find(kernel.sources, node) != kernel.sources.end()) {
      if (kernel.contraction && kernel.contraction->plan)
        planned += in_quotes(kernel.sources) + "\n" + explain(*kernel.contraction->plan);
      else
        others += in_quotes(kernel.sources) +
                  "\n  no contraction of its own: pointwise, a reduction along rows, or fused attention\n";
    }
  if (planned.empty() && others.empty())
    refuse(fusion, node);
  return planned.empty() ? others : planned;
}

}  // namespace tenon::compiler
