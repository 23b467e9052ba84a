// output.h — stdout, with its errors (a full disk must not pass for success), and files of JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tenon::cli {

// Both throw a user error where stdout takes no more.
void write_output(const std::string& text);
void flush_output();

// A remark on stderr for people, unless --quiet.
void write_note(const std::string& text);

// Throws at once what write_results would throw; for paths that are written after long work.
void check_json(const std::string& path);
// The text to stdout, and the JSON to a file where a path is given. "-" is stdout, and then the text is left
// out.
void write_results(const std::string& text, const std::string& path, const nlohmann::ordered_json& json);

// Whether two paths name one file, be it there or not.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// Bytes that are not UTF-8, as names in models may hold, become U+FFFD.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace tenon::cli
