#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;

namespace {

// No two neighbours are the same.
Tensor counted(DType dtype, const Extents& extents) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(extents); ++i)
    values.push_back(static_cast<double>(dtype == DType::Bool ? i % 3 / 2 : i % 113));
  return narrow<double>(dtype, extents, values);
}

// With whole squares, squares and what is left of rows and lanes, and fewer than a square has.
TEST(TransposedLoads, AreThoseOfTheSource) {
  std::vector<CompileContext> contexts{without_cache(), without_cache()};
  contexts.back().target.vector_bytes = 16;
  contexts.back().target.vector_registers = 16;
  for (const DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::Bool})
    for (const Extents& extents : {Extents{2, 64, 48}, {2, 37, 53}, {1, 16, 100}, {2, 5, 40}, {1, 197, 20}}) {
      const std::unique_ptr<Graph> graph =
          read(fmt::format("graph g(%x: {}[{}]) {{ %0 = transpose(%x, permutation=[0,2,1]) return %0 }}",
                           name(dtype), fmt::join(extents, ",")));
      const Data inputs{counted(dtype, extents)}, wanted = evaluate(*graph, inputs);
      for (const CompileContext& context : contexts)
        EXPECT_TRUE(
            identical(compile(*graph, context)->run(inputs).front().tensor(), wanted.front().tensor()))
            << print(*graph);
    }
}

TEST(TransposedLoads, MayHaveSizesThatVary) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[n,m]) { %0 = transpose(%x, permutation=[1,0]) return %0 }");
  for (const int64_t n : {1, 16, 33})
    for (const int64_t m : {1, 15, 16, 70})
      expect_as_evaluated(*graph, {{"n", n}, {"m", m}});
}

// Beside loads that are contiguous along the lanes, or the same in all.
TEST(TransposedLoads, StandBesideOthers) {
  for (const char* text : {
           R"(graph g(%x: f32[40,50], %y: f32[50,40], %z: f32[40], %w: f32[50,1]) {
             %0 = transpose(%x, permutation=[1,0])
             %1 = add(%0, %y)
             %2 = mul(%1, %z)
             %3 = sub(%2, %w)
             return %3
           })",
           R"(graph g(%x: f32[40,50], %y: f32[40,50]) {
             %0 = transpose(%x, permutation=[1,0])
             %1 = transpose(%y, permutation=[1,0])
             %2 = max(%0, %1)
             return %2
           })",
           R"(graph g(%x: u8[40,50]) {
             %0 = transpose(%x, permutation=[1,0])
             %1 = cast(%0, to=f32)
             return %1
           })",
           R"(graph g(%x: f32[40,2,50]) {
             %0 = transpose(%x, permutation=[2,1,0])
             %1 = exp(%0)
             return %1
           })",
       })
    expect_as_evaluated(*read(text));
}

// What lies beyond the edge is not read.
TEST(TransposedLoads, LeavePaddingOut) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[20,30]) {
    %p = constant(value=i64[4] {1, 2, 3, 4})
    %v = constant(value=f32[] {7})
    %0 = transpose(%x, permutation=[1,0])
    %1 = pad(%0, %p, %v, axes=[0,1])
    return %1
  })"));
}

}  // namespace
}  // namespace tenon
