#include "cli/optimization.h"

#include <algorithm>

#include "base/units.h"

namespace tenon::cli {

std::string pass_table(const std::vector<PassReport>& reports) {
  std::vector<PassReport> passes;
  for (const PassReport& report : reports) {
    const auto row = std::find_if(passes.begin(), passes.end(),
                                  [&](const PassReport& pass) { return pass.pass == report.pass; });
    if (row == passes.end()) {
      passes.push_back(report);
      continue;
    }
    row->milliseconds += report.milliseconds;
    row->changes += report.changes;
  }
  std::string text = fmt::format("{:<22} {:>8} {:>9}\n", "pass", "changes", "time");
  size_t idle = 0;
  double idle_ms = 0;
  for (const PassReport& pass : passes) {
    if (pass.changes == 0) {
      ++idle;
      idle_ms += pass.milliseconds;
      continue;
    }
    text += fmt::format("{:<22} {:>8} {:>9}\n", pass.pass, pass.changes,
                        format_seconds(pass.milliseconds / 1000));
  }
  if (idle > 0) {
    const std::string which = idle < passes.size() ? fmt::format("{} other{}", idle, idle == 1 ? "" : "s")
                                                   : fmt::format("{} pass{}", idle, idle == 1 ? "" : "es");
    text += fmt::format("{:<22} {:>8} {:>9}\n", which, 0, format_seconds(idle_ms / 1000));
  }
  return text;
}

// A pass that is one rule is named once.
std::string remark_list(const std::set<Remark>& remarks) {
  std::string text;
  for (const Remark& remark : remarks)
    text += fmt::format("{}: {}{}: {}\n", remark.node, remark.pass,
                        remark.rule == remark.pass ? "" : ": " + remark.rule, remark.reason);
  return text.empty() ? "no remarks: no rule found a place and left it alone\n" : text;
}

}  // namespace tenon::cli
