// bindings.h — sizes given on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tenon::cli {

// "batch=4", as --dim takes it; other text is the user's fault.
std::pair<std::string, int64_t> parse_binding(const std::string& text);

}  // namespace tenon::cli
