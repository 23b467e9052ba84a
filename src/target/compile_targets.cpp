#include "target/compile_targets.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "target/processor.h"
#include "target/words.h"

namespace tenon {
namespace {

struct Base {
  std::string_view name;
  Architecture architecture;
  std::string flags;  // what Linux calls what it offers
  Caches caches;
};

const std::vector<Base>& bases() {
  static const std::string v2 = "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2",
                           v3 = v2 + " abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
                           v4 = v3 + " avx512f avx512bw avx512cd avx512dq avx512vl",
                           sapphire_rapids =
                               v4 +
                               " avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg "
                               "avx512_vpopcntdq avx512_bf16 avx512_fp16 avx_vnni amx_tile amx_bf16 amx_int8",
                           armv8_2 = "atomics asimdrdm", armv8_4 = armv8_2 + " asimddp",
                           armv8_6 = armv8_4 + " i8mm bf16";
  static const Caches desktop = {32 << 10, 512 << 10, 2 << 20}, server = {48 << 10, 1280 << 10, 3 << 19},
                      arm = {64 << 10, 1 << 20, 1 << 20};
  static const std::vector<Base> bases = {
      {"x86-64", Architecture::X86_64, "", desktop},
      {"x86-64-v2", Architecture::X86_64, v2, desktop},
      {"x86-64-v3", Architecture::X86_64, v3, desktop},
      {"x86-64-v4", Architecture::X86_64, v4, server},
      {"sapphirerapids", Architecture::X86_64, sapphire_rapids, {48 << 10, 2 << 20, 15 << 17}},
      {"armv8", Architecture::Arm64, "", arm},
      {"armv8.2", Architecture::Arm64, armv8_2, arm},
      {"armv8.4", Architecture::Arm64, armv8_4, arm},
      {"armv8.6", Architecture::Arm64, armv8_6, arm},
  };
  return bases;
}

const Base& find_base(std::string_view name) {
  const auto found = std::ranges::find(bases(), name, &Base::name);
  if (found != bases().end())
    return *found;
  std::vector<std::string_view> names;
  for (const Base& base : bases())
    names.push_back(base.name);
  throw user_error(
      "there is no target '{}'; there are native, {}, each also with features, as in armv8.2+dotprod", name,
      fmt::join(names, ", "));
}

}  // namespace

Target compile_target(std::string_view name) {
  std::string_view rest = name;
  const Base& base = find_base(cut(rest, '+'));
  std::string flags = base.flags;
  while (!rest.empty()) {
    const std::string_view feature = cut(rest, '+');
    const std::string_view flag = flag_of(base.architecture, feature);
    if (flag.empty())
      throw user_error("{} has no feature '{}'; there are {}", base.name, feature,
                       fmt::join(feature_names(base.architecture), ", "));
    flags += fmt::format(" {}", flag);
  }
  const char* key = base.architecture == Architecture::X86_64 ? "flags" : "Features";
  Target target = parse_processor(base.architecture, fmt::format("{}: {}\n", key, flags));
  target.caches = base.caches;
  return target;
}

}  // namespace tenon
