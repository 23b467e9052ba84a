// bindings.h — sizes given on the command line.
#pragma once

#include <string>
#include <utility>

#include "ir/dim.h"

namespace tenon::cli {

// "batch=4", as --dim takes it; other text is the user's fault.
std::pair<std::string, Dim> parse_binding(const std::string& text);

}  // namespace tenon::cli
