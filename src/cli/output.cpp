#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

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

}  // namespace tenon::cli
