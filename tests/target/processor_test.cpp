#include "target/processor.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Words = std::vector<std::string>;

Target x86(const std::string& flags) {
  return parse_processor(Architecture::X86_64, "processor\t: 0\nflags\t\t: " + flags + "\n");
}

Target arm(const std::string& features) {
  return parse_processor(Architecture::Arm64, "processor\t: 0\nFeatures\t: " + features + "\n");
}

constexpr const char* kLevel2 = "sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm";
constexpr const char* kLevel3 =
    "sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm xsave avx f16c fma abm movbe bmi1 avx2 bmi2";

TEST(Processor, OfNoTextHasWhatAllHave) {
  const Target target = parse_processor(Architecture::X86_64, "");
  EXPECT_EQ(target.architecture, Architecture::X86_64);
  EXPECT_EQ(target.cpu, "x86-64");
  EXPECT_EQ(target.features, Words{"+sse2"});
  EXPECT_EQ(target.vector_bytes, 16);
  EXPECT_EQ(target.vector_registers, 16);
  EXPECT_FALSE(target.fused_multiply_add);

  const Target other = parse_processor(Architecture::Arm64, "flags : avx2 bf16\nnonsense");
  EXPECT_EQ(other.architecture, Architecture::Arm64);
  EXPECT_EQ(other.cpu, "generic");
  EXPECT_EQ(other.features, (Words{"+fp-armv8", "+neon"}));
  EXPECT_EQ(other.vector_bytes, 16);
  EXPECT_EQ(other.vector_registers, 32);
  EXPECT_TRUE(other.fused_multiply_add);
}

TEST(Processor, FeaturesAreInTheWordsOfLlvm) {
  const Target target = x86("fpu sse sse2 pni fma sse4_1 avx f16c abm bmi1 avx2 avx_vnni amx_tile");
  EXPECT_EQ(target.features, (Words{"+sse2", "+sse3", "+sse4.1", "+lzcnt", "+bmi", "+avx", "+f16c", "+fma",
                                    "+avx2", "+avxvnni"}));
  EXPECT_EQ(target.vector_bytes, 32);
  EXPECT_EQ(target.vector_registers, 16);
  EXPECT_TRUE(target.fused_multiply_add);
}

TEST(Processor, HasTilesOnlyWithAllThatGoesWithThem) {
  const std::string wide = "avx512f avx512bw avx512dq avx512vl";
  EXPECT_TRUE(x86(wide + " amx_tile amx_bf16 amx_int8").matrix_tiles);
  for (const std::string& flags : {wide + " amx_tile amx_bf16", wide + " amx_bf16 amx_int8",
                                   std::string("amx_tile amx_bf16 amx_int8")}) {
    const Target target = x86(flags);
    EXPECT_FALSE(target.matrix_tiles) << flags;
    EXPECT_FALSE(std::ranges::any_of(target.features, [](const std::string& feature) {
      return feature.starts_with("+amx");
    })) << flags;
  }
}

TEST(Processor, LevelIsTheHighestOfWhichNothingLacks) {
  const std::string level3 = kLevel3, wide = level3 + " avx512f avx512bw avx512dq avx512vl";
  EXPECT_EQ(x86("sse2").cpu, "x86-64");
  EXPECT_EQ(x86(kLevel2).cpu, "x86-64-v2");
  EXPECT_EQ(x86(level3).cpu, "x86-64-v3");
  EXPECT_EQ(x86(wide).cpu, "x86-64-v3") << "without avx512cd";
  EXPECT_EQ(x86(wide + " avx512cd").cpu, "x86-64-v4");
  EXPECT_EQ(x86("sse2 avx512f avx512bw avx512cd avx512dq avx512vl").cpu, "x86-64") << "without what is below";
}

TEST(Processor, HasWideVectorsOnlyWithAllThatGoesWithThem) {
  const std::string level3 = kLevel3;
  const Target wide = x86(level3 + " avx512f avx512bw avx512dq avx512vl");
  EXPECT_EQ(wide.vector_bytes, 64);
  EXPECT_EQ(wide.vector_registers, 32);
  for (const char* fewer : {" avx512f avx512cd", " avx512f avx512bw avx512dq", " avx512f avx512bw avx512vl",
                            " avx512f avx512dq avx512vl", " avx512bw avx512dq avx512vl"}) {
    EXPECT_EQ(x86(level3 + fewer).vector_bytes, 32) << fewer;
    EXPECT_EQ(x86(level3 + fewer).vector_registers, 16) << fewer;
  }
}

TEST(Processor, OfArmNeverOffersScalableVectors) {
  const Target target = arm(
      "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop "
      "asimddp sve asimdfhm sve2 svebf16 i8mm bf16 dgh");
  EXPECT_EQ(target.features, (Words{"+fp-armv8", "+neon", "+lse", "+rdm", "+fullfp16", "+fp16fml", "+dotprod",
                                    "+i8mm", "+bf16"}));
  EXPECT_EQ(target.cpu, "generic");
  EXPECT_EQ(target.vector_bytes, 16);
}

TEST(Processor, IsTheFirstOfThoseInTheText) {
  const Target target = parse_processor(
      Architecture::X86_64, "vmx flags\t: avx512f\nflags\t\t: avx2 fma\n\nflags\t\t: avx2 f16c\n");
  EXPECT_EQ(target.features, (Words{"+sse2", "+fma", "+avx2"}));
}

TEST(Processor, HasTheNameThatItsMakerGaveIt) {
  EXPECT_EQ(parse_processor_name("processor\t: 0\nmodel\t\t: 173\nmodel name\t: Some(R) Processor 9\n"),
            "Some(R) Processor 9");
  EXPECT_EQ(parse_processor_name("processor\t: 0\nCPU part\t: 0xd40\n"), "");
}

}  // namespace
}  // namespace tenon
