// Blocks of a row of sums side by side: where that is done, and that it gives the same.
#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::CompileContext;
using compiler::kernels_of;

namespace {

std::string product(std::string_view rows, int columns) {
  return fmt::format(R"(graph(%x: f32[{0},70], %w: f32[70,{1}], %b: f32[{1}]) {{
    %0 = matmul(%x, %w)
    %1 = add(%0, %b)
    %2 = tanh(%1)
    return %2
  }})",
                     rows, columns);
}

std::string kernels_for(int cores, const std::string& text) {
  CompileContext options = without_cache();
  options.target.cores = cores;
  std::string kernels;
  for (const loops::Kernel& kernel : kernels_of(*read(text), options))
    kernels += loops::print(kernel);
  return kernels;
}

TEST(InterleaveBlocks, OfARowThatAllCoresShareEvenly) {
  EXPECT_TRUE(has(kernels_for(1, product("1", 512)), "for block0 in 0..4 unrolled"));
  EXPECT_TRUE(has(kernels_for(2, product("1", 512)), "for block0 in 0..4 unrolled"));
  EXPECT_FALSE(has(kernels_for(7, product("1", 512)), "block0"));   // some would have more to do
  EXPECT_FALSE(has(kernels_for(2, product("1", 100)), "block0"));   // the last block is not whole
  EXPECT_FALSE(has(kernels_for(2, product("64", 512)), "block0"));  // rows keep the registers busy
  EXPECT_FALSE(has(kernels_for(2, product("n", 512)), "block0"));
}

TEST(InterleaveBlocks, GiveWhatTheEvaluatorDoes) {
  for (const int columns : {96, 192, 320, 512})
    expect_as_evaluated(*read(product("1", columns)));
}

}  // namespace
}  // namespace tenon
