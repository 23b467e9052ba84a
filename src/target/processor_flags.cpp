#include "target/processor_flags.h"

#include <array>
#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tenon {

#if defined(__x86_64__)

namespace {

struct Flag {
  std::string_view name;
  uint32_t leaf, subleaf;
  int place;  // of its register: eax, ebx, ecx, edx
  int bit;
  uint64_t state;  // that the system saves for each thread
};

constexpr int kEax = 0, kEbx = 1, kEcx = 2, kEdx = 3;
constexpr uint64_t kNone = 0, kVectors = 0x6, kWideVectors = 0xe6, kTiles = 0x60000;
constexpr uint32_t kExtended = 0x80000001;

// Intel's manual, volume 2A, CPUID; AMD's, volume 3, appendix E.
constexpr Flag kFlags[] = {
    {"pni", 1, 0, kEcx, 0, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kVectors},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4_1", 1, 0, kEcx, 19, kNone},
    {"sse4_2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"xsave", 1, 0, kEcx, 26, kNone},
    {"avx", 1, 0, kEcx, 28, kVectors},
    {"f16c", 1, 0, kEcx, 29, kVectors},
    {"bmi1", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kVectors},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"avx512f", 7, 0, kEbx, 16, kWideVectors},
    {"avx512dq", 7, 0, kEbx, 17, kWideVectors},
    {"avx512ifma", 7, 0, kEbx, 21, kWideVectors},
    {"avx512cd", 7, 0, kEbx, 28, kWideVectors},
    {"avx512bw", 7, 0, kEbx, 30, kWideVectors},
    {"avx512vl", 7, 0, kEbx, 31, kWideVectors},
    {"avx512vbmi", 7, 0, kEcx, 1, kWideVectors},
    {"avx512_vbmi2", 7, 0, kEcx, 6, kWideVectors},
    {"avx512_vnni", 7, 0, kEcx, 11, kWideVectors},
    {"avx512_bitalg", 7, 0, kEcx, 12, kWideVectors},
    {"avx512_vpopcntdq", 7, 0, kEcx, 14, kWideVectors},
    {"amx_bf16", 7, 0, kEdx, 22, kTiles},
    {"avx512_fp16", 7, 0, kEdx, 23, kWideVectors},
    {"amx_tile", 7, 0, kEdx, 24, kTiles},
    {"amx_int8", 7, 0, kEdx, 25, kTiles},
    {"avx_vnni", 7, 1, kEax, 4, kVectors},
    {"avx512_bf16", 7, 1, kEax, 5, kWideVectors},
    {"lahf_lm", kExtended, 0, kEcx, 0, kNone},
    {"abm", kExtended, 0, kEcx, 5, kNone},
};

using Registers = std::array<uint32_t, 4>;

Registers ask(uint32_t leaf, uint32_t subleaf) {
  Registers r{};
  if (__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) == 0)
    return {};
  return r;
}

// What the system saves of a thread's registers; nothing where it does not say.
uint64_t saved_state() {
  constexpr uint32_t kSystemSaves = 1U << 27;
  if ((ask(1, 0)[kEcx] & kSystemSaves) == 0)
    return 0;
  uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

std::string processor_flags() {
  const uint64_t state = saved_state();
  std::string line = "flags:";
  for (const Flag& flag : kFlags) {
    const uint32_t bits = ask(flag.leaf, flag.subleaf)[static_cast<size_t>(flag.place)];
    if ((bits >> flag.bit & 1) != 0 && (state & flag.state) == flag.state)
      line.append(" ").append(flag.name);
  }
  return line + "\n";
}

#elif defined(__aarch64__)

// The bits are those of Linux's asm/hwcap.h.
std::string processor_flags() {
  struct Flag {
    std::string_view name;
    unsigned long capabilities;
    int bit;
  };
  const unsigned long first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
  const Flag flags[] = {
      {"fp", first, 0},        {"asimd", first, 1},     {"atomics", first, 8},
      {"asimdhp", first, 10},  {"asimdrdm", first, 12}, {"asimddp", first, 20},
      {"asimdfhm", first, 23}, {"i8mm", second, 13},    {"bf16", second, 14},
  };
  std::string line = "Features:";
  for (const Flag& flag : flags)
    if ((flag.capabilities >> flag.bit & 1) != 0)
      line.append(" ").append(flag.name);
  return line + "\n";
}

#endif

}  // namespace tenon
