// usage_errors.h — what is wrong with the arguments themselves, in the words of the house.
#pragma once

#include <CLI/CLI.hpp>
#include <string_view>

namespace tenon::cli {

// Throws the user's error, unless there is a command of this name.
void refuse_unknown_command(const CLI::App& program, std::string_view name);

// Throws as the user's error what was found wrong in parsing.
[[noreturn]] void refuse(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tenon::cli
