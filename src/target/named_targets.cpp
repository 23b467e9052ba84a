#include "target/named_targets.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "target/processor.h"

namespace tenon {
namespace {

struct NamedTarget {
  std::string_view name;
  Architecture architecture;
  std::string flags;  // what Linux calls what it offers
  Caches caches;
};

constexpr int kCores = 2;

const std::vector<NamedTarget>& named_targets() {
  static const std::string avx2 =
      "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave";
  static const std::string avx512 = avx2 + " avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni";
  static const std::string amx = avx512 + " avx512_bf16 avx512_fp16 amx_tile amx_bf16 amx_int8";
  static const std::string neon = "atomics asimdrdm asimdhp asimddp";
  static const std::vector<NamedTarget> targets = {
      {"avx2", Architecture::X86_64, avx2, {32 << 10, 512 << 10, 2 << 20}},       // as Zen 2
      {"avx512", Architecture::X86_64, avx512, {48 << 10, 1280 << 10, 3 << 19}},  // as Ice Lake
      {"amx", Architecture::X86_64, amx, {48 << 10, 2 << 20, 15 << 17}},          // as Sapphire Rapids
      {"neon", Architecture::Arm64, neon, {64 << 10, 1 << 20, 1 << 20}},          // as Neoverse N1
      {"neon-i8mm",
       Architecture::Arm64,
       neon + " asimdfhm i8mm bf16",
       {64 << 10, 1 << 20, 1 << 20}},  // as Neoverse V1
  };
  return targets;
}

}  // namespace

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const NamedTarget& each : named_targets())
    names.push_back(each.name);
  return names;
}

Target target_named(std::string_view name) {
  for (const NamedTarget& each : named_targets())
    if (each.name == name) {
      const std::string_view key = each.architecture == Architecture::X86_64 ? "flags" : "Features";
      Target target = parse_processor(each.architecture, fmt::format("{}: {}\n", key, each.flags));
      target.caches = each.caches;
      target.cores = kCores;
      return target;
    }
  throw user_error("there is no target '{}'; there are {}", name, fmt::join(target_names(), ", "));
}

}  // namespace tenon
