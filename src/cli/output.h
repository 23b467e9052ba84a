// output.h — stdout, with its errors (a full disk must not pass for success), and files of JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

// Both throw a user error where stdout takes no more.
void write_output(const std::string& text);
void flush_output();

// Bytes that are not UTF-8, as names in models may hold, become U+FFFD.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace tenon::cli
