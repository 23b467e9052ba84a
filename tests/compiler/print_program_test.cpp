#include "compiler/print_program.h"

#include <gtest/gtest.h>

#include "compile_here.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::kernels_of;
using compiler::print_kernels;
using compiler::print_program;

namespace {

class PrintProgram : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }

  static std::string kernels(std::string_view text) {
    const std::unique_ptr<Graph> graph = parse(text);
    return print_kernels(compile(*graph, here())->program(), kernels_of(*graph, here()));
  }
  static std::string program(std::string_view text, const CompileContext& options = here(),
                             const Bindings& sizes = {}) {
    return print_program(compile(*parse(text), options)->program(), sizes);
  }
};

TEST_F(PrintProgram, KernelsParseBack) {
  const std::string text =
      kernels("graph(%x: f32[3,5]) { %a = relu(%x) %y = softmax(%a, axis=1) return %y }");
  const size_t nest = text.find('\n') + 1;
  const std::string comment = text.substr(0, nest);
  EXPECT_TRUE(comment == "// \"%a\", \"%y\"\n" || comment == "// \"%y\", \"%a\"\n") << text;
  EXPECT_TRUE(text.substr(nest).starts_with("kernel kernel0(x0: f32[3,5]) -> (y0: f32[3,5]) {\n")) << text;
  EXPECT_EQ(loops::print(loops::parse_checked_kernel(text)), text.substr(nest));
}

TEST_F(PrintProgram, AKernelThatIsCalledTwiceIsShownOnce) {
  const std::string text = kernels(
      "graph(%x: f32[3]) {\n  %k = constant(value=i64[1] {3})\n  %a = exp(%x)\n"
      "  %v, %i = top_k(%a, %k)\n  %b = exp(%v)\n  return %b, %i\n}");
  EXPECT_TRUE(text.starts_with("// \"%a\"\n// \"%b\"\nkernel kernel0(")) << text;
  EXPECT_EQ(text.find("\nkernel "), text.rfind("\nkernel ")) << text;
}

TEST_F(PrintProgram, NamesStayOnOneLine) {
  const std::string text = kernels("graph(%x: f32[3]) {\n  %y = exp(%x) from \"a\\nb\"\n  return %y\n}");
  EXPECT_TRUE(text.starts_with("// \"a\\nb\"\nkernel ")) << text;
}

TEST_F(PrintProgram, ShowsBuffersAndSteps) {
  EXPECT_EQ(program("graph main(%x: f32[n,4], %w: f32[4]) {\n"
                    "  %a = add(%x, %w)\n  %b = relu(%a)\n  return %b as \"out\"\n}",
                    {.target = this_machine(), .fuse = false}, {{"n", 7}}),
            "program main where n = 7 {\n"
            "  v0: f32[n,4] input \"x\"\n"
            "  v1: f32[4] input \"w\"\n"
            "  v3: f32[n,4] output \"out\"\n"
            "  alloc v2: f32[n,4] at 0\n"
            "  v2 = kernel0(v0, v1)  // \"%a\"\n"
            "  v3 = kernel1(v2)  // \"%b\"\n"
            "  dealloc v2\n"
            "  return v3\n"
            "}\n"
            "arena: 128 B, of which 128 B are in use at one time\n");
}

TEST_F(PrintProgram, ShowsViewsAndHostCalls) {
  EXPECT_EQ(program("graph main(%x: f32[2,4]) {\n  %s = constant(value=i64[1] {8})\n"
                    "  %a = relu(%x)\n  %f = reshape(%a, %s)\n"
                    "  %i = nonzero(%f)\n  return %i\n}"),
            "program main {\n"
            "  v0: f32[2,4] input \"x\"\n"
            "  v3: f32[8] view of v2\n"
            "  alloc v2: f32[2,4] at 0\n"
            "  v2 = kernel0(v0)  // \"%a\"\n"
            "  v3 = view(v2)\n"
            "  alloc v4: i64[1,d0] when its size is known\n"
            "  v4 = host nonzero(v3)  // \"%i\"\n"
            "  dealloc v2\n"
            "  return v4\n"
            "}\n"
            "arena: 64 B, of which 64 B are in use at one time\n");
}

}  // namespace
}  // namespace tenon
