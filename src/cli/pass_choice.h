// pass_choice.h — which passes run, and how exact they must be: options of the commands that optimise.
#pragma once

#include <CLI/CLI.hpp>

#include "passes/pipeline.h"

namespace tenon::cli {

struct PassChoice {
  std::string numerics = "default";
  std::vector<std::string> only = {}, disabled = {};

  // The options --numerics, --passes and --disable; the last of these for passes that these names know.
  void add_to(CLI::App& command, const std::vector<std::string>& known);

  // Of the portable pipeline. Names that are not known, or that are asked for and left out, are the user's
  // fault.
  PipelineOptions portable(const std::vector<std::string>& known) const;
  // The names that are left out, of any pipeline.
  std::set<std::string> left_out(const std::vector<std::string>& known) const;
};

}  // namespace tenon::cli
