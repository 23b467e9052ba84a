// bindings.h — sizes given on the command line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::cli {

// What --dim takes, "batch=4", each name once; other text is the user's fault.
std::map<std::string, int64_t> parse_bindings(const std::vector<std::string>& texts);

}  // namespace tenon::cli
