// saturation.h — the option --saturate, and the passes it asks for.
#pragma once

#include <CLI/CLI.hpp>

#include "passes/pipeline.h"

namespace tenon::cli {

CLI::Option* add_saturate(CLI::App& command, std::optional<double>& seconds);
// The portable pipeline; with saturation, where seconds are given.
std::vector<Pass> pipeline_for(const std::optional<double>& seconds);

}  // namespace tenon::cli
