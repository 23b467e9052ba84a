#include "cli/version.h"

#include <fmt/format.h>
#include <isl/version.h>
#include <zlib.h>

#include "codegen/generate.h"

namespace tenon::cli {
namespace {

// "isl-0.25-GMP\n" as 0.25.
std::string isl_number() {
  const std::string text = isl_version();
  const size_t start = text.find('-') + 1;
  return text.substr(start, text.find_first_of("-\n", start) - start);
}

}  // namespace

std::string describe_build() {
  return fmt::format("tenon {}\ncpu: {}\nlibraries: fmt {}.{}.{}, isl {}, zlib {}", TENON_VERSION,
                     codegen::describe_generator(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                     FMT_VERSION % 100, isl_number(), zlibVersion());
}

}  // namespace tenon::cli
