// numbers.h — options that take a number of a certain range.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace tenon::cli {

CLI::Option* add_samples(CLI::App& command, int64_t& samples);
CLI::Option* add_threads(CLI::App& command, int& threads);  // by default, as many as there are cores
CLI::Option* add_seconds(CLI::App& command, double& seconds);
CLI::Option* add_top(CLI::App& command, int64_t& top);  // how many of a list are shown
CLI::Option* add_seed(CLI::App& command, uint64_t& seed);
CLI::Option* add_opset(CLI::App& command, std::optional<int64_t>& opset);  // of an ONNX file that is written
// A whole number from 1 up.
CLI::Option* add_count(CLI::App& command, const std::string& name, std::optional<int64_t>& number,
                       const std::string& doc);
CLI::Option* add_tolerance(CLI::App& command, double& tolerance);

}  // namespace tenon::cli
