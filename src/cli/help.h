// help.h — how --help is laid out: what can be given on the left, what it is for on the right.
#pragma once

#include <CLI/CLI.hpp>

namespace tenon::cli {

// An option is listed by its names and its option text, which says what it takes; behind its description
// stands its default, if it has one. Lines are broken to fit a terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace tenon::cli
