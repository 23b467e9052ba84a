#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
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

void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json) {
  write_file(path, json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace tenon::cli
