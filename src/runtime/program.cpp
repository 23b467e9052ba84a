#include "runtime/program.h"

#include "base/names.h"

namespace tenon::runtime {

std::string describe_sources(const std::vector<std::string>& sources) {
  std::vector<std::string> quoted;
  for (const std::string& source : sources)
    quoted.push_back(fmt::format("\"{}\"", source));
  return "node " + first_few(quoted);
}

bool has_host_steps(const Program& program) {
  return std::ranges::any_of(program.steps, [](const Step& step) {
    return std::holds_alternative<HostStep>(step) || std::holds_alternative<LoopsStep>(step);
  });
}

}  // namespace tenon::runtime
