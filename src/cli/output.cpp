#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "base/write_file.h"

namespace tenon::cli {
namespace {

void expect(bool written) {
  if (!written)
    throw user_error("cannot write the output: {}", std::strerror(errno));
}

}  // namespace

void write_output(const std::string& text) {
  expect(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void flush_output() { expect(std::fflush(stdout) == 0 && std::ferror(stdout) == 0); }

void write_note(const std::string& text) {
  if (!is_quiet())
    std::fputs(text.c_str(), stderr);
}

namespace {

constexpr std::string_view kStdout = "-";

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

void check_json(const std::string& path) {
  if (!path.empty() && path != kStdout)
    check_writable(path);
}

void write_results(const std::string& text, const std::string& path, const nlohmann::ordered_json& json) {
  write_output(path == kStdout ? dump(json) : text);
  if (!path.empty() && path != kStdout)
    write_json(path, json);
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  namespace fs = std::filesystem;
  const auto place = [](const fs::path& path) { return fs::weakly_canonical(fs::absolute(path)); };
  std::error_code error;  // where one of them does not exist, they are not equivalent
  return fs::equivalent(a, b, error) || place(a) == place(b);
}

void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json) {
  write_file(path, dump(json));
}

}  // namespace tenon::cli
