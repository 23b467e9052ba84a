// completion.h — the words that may follow a command line that is half typed.
#pragma once

#include <CLI/CLI.hpp>

namespace tenon::cli {

// What may stand for the last of `words`, which follow the name of the program: a word a line, and "@files",
// with endings behind it, where files may stand.
std::string completions(const CLI::App& program, std::vector<std::string> words);

}  // namespace tenon::cli
