#include "target/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/units.h"
#include "target/processor.h"
#include "target/processor_flags.h"
#include "target/resources.h"

namespace tenon {
namespace {

#if defined(__x86_64__)
constexpr Architecture kArchitecture = Architecture::X86_64;
#elif defined(__aarch64__)
constexpr Architecture kArchitecture = Architecture::Arm64;
#else
#error "Tenon runs on x86-64 and arm64"
#endif

// Empty where it cannot be read.
std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Target read_target() {
  const std::string cpuinfo = read_text("/proc/cpuinfo");
  Target target = parse_processor(kArchitecture, cpuinfo.empty() ? processor_flags() : cpuinfo);
  target.caches = read_caches(fmt::format("/sys/devices/system/cpu/cpu{}", allowed_processors().front()),
                              library_caches());
  target.cores = available_cores();
  if (target.matrix_tiles && !ask_for_tiles())
    forbid_tiles(target);
  return target;
}

}  // namespace

int available_cores() {
  static const int cores = [] {
    const int64_t limit =
        read_core_limit("/sys/fs/cgroup", read_text("/proc/self/cgroup")).value_or(INT64_MAX);
    return static_cast<int>(std::min(std::ssize(allowed_processors()), limit));
  }();
  return cores;
}

const Target& this_machine() {
  static const Target target = read_target();
  return target;
}

std::string processor_name() {
  const std::string name = parse_processor_name(read_text("/proc/cpuinfo"));
  return name.empty() ? this_machine().cpu : name;
}

bool Target::has(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

Target beside(const Target& processor, Gpu gpu) {
  return {.architecture = processor.architecture,
          .cpu = processor.cpu,
          .features = {},
          .fused_multiply_add = true,
          .caches = processor.caches,
          .cores = processor.cores,
          .gpu = std::move(gpu)};
}

std::string describe(const Target& target) {
  const auto kib = [](int64_t bytes) { return bytes >> 10; };
  const Caches& caches = target.caches;
  std::string line =
      target.architecture == Architecture::Arm64 ? "arm64 " : "";  // LLVM's names for x86-64 say so
  line += fmt::format("{} {}", target.cpu, fmt::join(target.features, " "));
  line += fmt::format(", {} vectors of {} bytes", target.vector_registers, target.vector_bytes);
  line += target.fused_multiply_add ? " with fused multiply-add" : "";
  line += target.matrix_tiles ? ", tiles of matrices" : "";
  line += fmt::format(", caches of {}, {} and {} KiB", kib(caches.level1_data), kib(caches.level2),
                      kib(caches.level3_share));
  line += ", " + format_count(static_cast<uint64_t>(target.cores), "core");
  return target.gpu ? describe(*target.gpu) + ", beside " + line : line;
}

}  // namespace tenon
