#include "cli/saturation.h"

#include "passes/saturate.h"

namespace tenon::cli {

CLI::Option* add_saturate(CLI::App& command, std::optional<double>& seconds) {
  return command
      .add_option(
          "--saturate", seconds,
          "also applies rules in any order (equality saturation), for at most so many seconds each time")
      ->option_text("SECONDS")
      ->check(CLI::PositiveNumber);
}

std::vector<Pass> pipeline_for(const std::optional<double>& seconds) {
  return seconds ? saturating_pipeline({.seconds = *seconds}) : portable_pipeline();
}

}  // namespace tenon::cli
