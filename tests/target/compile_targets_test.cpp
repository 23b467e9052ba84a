#include "target/compile_targets.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace tenon {
namespace {

TEST(CompileTargets, AreLevelsAndProcessors) {
  EXPECT_EQ(compile_target("x86-64").features, std::vector<std::string>{"+sse2"});
  for (const char* level : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
    EXPECT_EQ(compile_target(level).cpu, level);
  EXPECT_EQ(compile_target("x86-64-v3").vector_bytes, 32);
  const Target server = compile_target("sapphirerapids");
  EXPECT_EQ(server.cpu, "x86-64-v4");
  EXPECT_TRUE(server.matrix_tiles && server.has_int8_dot_products() && server.has("+avx512bf16"));
  EXPECT_EQ(compile_target("armv8").architecture, Architecture::Arm64);
  EXPECT_FALSE(compile_target("armv8.2").has("+dotprod"));
  EXPECT_TRUE(compile_target("armv8.6").multiplies_matrices(true));
}

TEST(CompileTargets, HaveFeaturesBesides) {
  const Target arm = compile_target("armv8.2+dotprod+fullfp16");
  EXPECT_EQ(arm.features,
            (std::vector<std::string>{"+fp-armv8", "+neon", "+lse", "+rdm", "+fullfp16", "+dotprod"}));
  EXPECT_TRUE(compile_target("x86-64-v3+avxvnni").has_int8_dot_products());
}

TEST(CompileTargets, AreListedWhereANameIsNotThere) {
  expect_error<UserError>([] { compile_target("x86-64-v5"); },
                          "there is no target 'x86-64-v5'; there are native, x86-64, x86-64-v2, x86-64-v3, "
                          "x86-64-v4, sapphirerapids, armv8, armv8.2, armv8.4, armv8.6, each also with "
                          "features, as in armv8.2+dotprod");
  expect_error<UserError>([] { compile_target("armv8.2+avx2"); },
                          "armv8.2 has no feature 'avx2'; there are fp-armv8, neon, lse, rdm, fullfp16, "
                          "fp16fml, dotprod, i8mm, bf16");
}

}  // namespace
}  // namespace tenon
