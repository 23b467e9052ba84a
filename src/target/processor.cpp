#include "target/processor.h"

#include <algorithm>
#include <set>
#include <span>

#include "target/words.h"

namespace tenon {
namespace {

using Words = std::set<std::string_view>;

struct Feature {
  std::string_view kernel, llvm;  // what the Linux kernel calls it, and what LLVM does
};

// The kernel names only what it has switched on.
constexpr Feature kX86Features[] = {
    {"sse2", "sse2"},
    {"pni", "sse3"},
    {"ssse3", "ssse3"},
    {"sse4_1", "sse4.1"},
    {"sse4_2", "sse4.2"},
    {"popcnt", "popcnt"},
    {"abm", "lzcnt"},
    {"movbe", "movbe"},
    {"bmi1", "bmi"},
    {"bmi2", "bmi2"},
    {"avx", "avx"},
    {"f16c", "f16c"},
    {"fma", "fma"},
    {"avx2", "avx2"},
    {"avx_vnni", "avxvnni"},
    {"avx512f", "avx512f"},
    {"avx512cd", "avx512cd"},
    {"avx512bw", "avx512bw"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512_vbmi2", "avx512vbmi2"},
    {"avx512_vnni", "avx512vnni"},
    {"avx512_bitalg", "avx512bitalg"},
    {"avx512_vpopcntdq", "avx512vpopcntdq"},
    {"avx512_bf16", "avx512bf16"},
    {"avx512_fp16", "avx512fp16"},
    {"amx_tile", "amx-tile"},
    {"amx_bf16", "amx-bf16"},
    {"amx_int8", "amx-int8"},
};

// SVE is left out: what we generate for arm64 is NEON.
constexpr Feature kArmFeatures[] = {
    {"fp", "fp-armv8"},       // floats in registers
    {"asimd", "neon"},        // vectors
    {"atomics", "lse"},       // atomic additions
    {"asimdrdm", "rdm"},      // rounding products of fixed-point numbers
    {"asimdhp", "fullfp16"},  // arithmetic in f16
    {"asimdfhm", "fp16fml"},  // products of f16, added in f32
    {"asimddp", "dotprod"},   // dot products of i8
    {"i8mm", "i8mm"},         // matrix products of i8
    {"bf16", "bf16"},         // dot and matrix products of bf16
};

std::span<const Feature> features_of(Architecture architecture) {
  return architecture == Architecture::X86_64 ? std::span<const Feature>(kX86Features) : kArmFeatures;
}

// The levels of the psABI for x86-64, by LLVM's names, each with what it adds to the one before.
struct Level {
  std::string_view cpu;
  Words adds;
};

std::string_view highest_level(const Words& flags) {
  static const Level levels[] = {
      {"x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"}},
      {"x86-64-v3", {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
  };
  std::string_view cpu = "x86-64";
  for (const Level& level : levels) {
    if (!std::ranges::includes(flags, level.adds))
      break;
    cpu = level.cpu;
  }
  return cpu;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// The words of the first line "KEY : WORDS", that of the first processor.
Words words_of(std::string_view cpuinfo, std::string_view key) {
  Words words;
  while (!cpuinfo.empty() && words.empty()) {
    std::string_view line = cut(cpuinfo, '\n');
    if (trim(cut(line, ':')) != key)
      continue;
    while (!line.empty())
      words.insert(trim(cut(line, ' ')));
    words.erase("");
  }
  return words;
}

std::vector<std::string> in_llvms_words(std::span<const Feature> features, const Words& offered) {
  std::vector<std::string> words;
  for (const Feature& feature : features)
    if (offered.contains(feature.kernel))
      words.push_back("+" + std::string(feature.llvm));
  return words;
}

// Vectors of 64 bytes only together with operations on bytes and words (bw), on 64-bit integers (dq), and on
// shorter vectors with masks (vl): without any one of them LLVM splits some of our operations, or has to go
// through memory.
bool has_wide_vectors(const Words& flags) {
  return std::ranges::includes(flags, Words{"avx512f", "avx512bw", "avx512dq", "avx512vl"});
}

Target parse_x86(Words flags) {
  flags.insert("sse2");  // part of x86-64
  Target target;
  target.architecture = Architecture::X86_64;
  target.cpu = highest_level(flags);
  target.features = in_llvms_words(kX86Features, flags);
  target.vector_bytes = has_wide_vectors(flags) ? 64 : flags.contains("avx2") ? 32 : 16;
  target.vector_registers = has_wide_vectors(flags) ? 32 : 16;
  target.fused_multiply_add = flags.contains("fma");
  target.matrix_tiles =
      has_wide_vectors(flags) && std::ranges::includes(flags, Words{"amx_tile", "amx_bf16", "amx_int8"});
  if (!target.matrix_tiles)
    forbid_tiles(target);
  return target;
}

Target parse_arm(Words features) {
  features.insert({"fp", "asimd"});  // part of every arm64 that Linux runs on
  Target target;
  target.architecture = Architecture::Arm64;
  target.cpu = "generic";  // names of models stand for SVE, which a virtual machine may not offer
  target.features = in_llvms_words(kArmFeatures, features);
  target.vector_bytes = 16;
  target.vector_registers = 32;
  target.fused_multiply_add = true;
  return target;
}

}  // namespace

std::vector<std::string_view> feature_names(Architecture architecture) {
  std::vector<std::string_view> names;
  for (const Feature& feature : features_of(architecture))
    names.push_back(feature.llvm);
  return names;
}

std::string_view flag_of(Architecture architecture, std::string_view feature) {
  for (const Feature& each : features_of(architecture))
    if (each.llvm == feature)
      return each.kernel;
  return "";
}

void forbid_tiles(Target& target) {
  target.matrix_tiles = false;
  std::erase_if(target.features, [](const std::string& feature) { return feature.starts_with("+amx-"); });
}

std::string parse_processor_name(std::string_view cpuinfo) {
  while (!cpuinfo.empty()) {
    std::string_view line = cut(cpuinfo, '\n');
    if (trim(cut(line, ':')) == "model name")
      return std::string(trim(line));
  }
  return "";
}

Target parse_processor(Architecture architecture, std::string_view cpuinfo) {
  return architecture == Architecture::X86_64 ? parse_x86(words_of(cpuinfo, "flags"))
                                              : parse_arm(words_of(cpuinfo, "Features"));
}

}  // namespace tenon
