#include "verify/verify_compiled.h"

#include "compile_here.h"
#include "ir/graph_text.h"
#include "rewrite/apply.h"

namespace tenon {
namespace {

void lose_tanh(Graph& graph, Journal& journal) {
  const Pattern x = any("x");
  apply_rules(graph,
              {{.name = "lose-tanh",
                .match = unary("tanh", x),
                .replace = x,
                .numerics = Numerics::BitExact,
                .fires = "",
                .stays = ""}},
              journal);
}

compiler::CompileContext with_pass(void (*run)(Graph&, Journal&)) {
  compiler::CompileContext context = here();
  context.added_passes.push_back({"lose", "", run, ""});
  return context;
}

// "target decompose-ops ok", and so on; what lies between these and the program has tests of its own.
std::vector<std::string> rows_of(const std::vector<PassVerification>& results) {
  std::vector<std::string> rows;
  for (const PassVerification& result : results)
    if (result.level != Level::Lowered && result.level != Level::Scheduled)
      rows.push_back(fmt::format("{} {} {}", name(result.level), result.pass, name(result.numbers.verdict)));
  return rows;
}

std::vector<std::string> rows_of(std::string_view text) {
  return rows_of(verify_compiled(*parse_graph(text), here(), {.samples = 1}));
}

constexpr std::string_view kModel = R"(graph g(%a: f32[3,n]) {
  %0 = tanh(%a) from "squash" %1 = exp(%0) from "grow" return %1 as "y" })";

TEST(VerifyCompiled, ChecksTheProgramWhereNoTargetPassChangesAnything) {
  const std::vector<PassVerification> results = verify_compiled(*parse_graph(kModel), here());
  ASSERT_EQ(rows_of(results), std::vector<std::string>{"compiled compiled program ok"});
  EXPECT_LT(results.back().numbers.error, 1e-5);
  for (const Check* check : {&results.back().gradients, &results.back().lint, &results.back().parameters})
    EXPECT_EQ(name(check->verdict), "-");
}

TEST(VerifyCompiled, ChecksLoweringAndSchedulesToo) {
  std::vector<std::string> levels;
  for (const PassVerification& result : verify_compiled(*parse_graph(kModel), here()))
    levels.push_back(fmt::format("{} {}", name(result.level), result.pass));
  EXPECT_EQ(levels, (std::vector<std::string>{"lowered lower", "lowered inline-producers", "kernels schedule",
                                              "compiled compiled program"}));
}

// Which passes there are depends on whether the machine has int8 dot products.
TEST(VerifyCompiled, ChecksTheTargetPassesOfAQuantisedModel) {
  const std::vector<std::string> rows = rows_of(R"(graph g(%x: f32[4,8]) {
    %s = constant(value=f32[] {0.05}) %t = constant(value=f32[] {0.02})
    %w = parameter(name="w", value=i8[8,2] {1,-2,3,4,-5,6,7,8,-9,10,11,-12,13,14,-15,16})
    %q = quantize(%x, %s, to=i8) %d = dequantize(%q, %s, to=f32) %v = dequantize(%w, %t, to=f32)
    %y = matmul(%d, %v) return %y })");
  EXPECT_GE(rows.size(), 3U);
  for (const std::string& row : rows)
    EXPECT_TRUE(row.ends_with(" ok")) << row;
  EXPECT_TRUE(rows.front().starts_with("target ")) << rows.front();
  EXPECT_EQ(rows.back(), "compiled compiled program ok");
}

TEST(VerifyCompiled, ChecksTheTargetPassesOfAHalfPrecisionModel) {
  EXPECT_EQ(rows_of(R"(graph g(%x: f16[1,2,5,5], %w: f16[3,2,3,3]) {
    %0 = conv(%x, %w) %1 = tanh(%0) return %1 })"),
            (std::vector<std::string>{"target widen-convolutions ok", "compiled compiled program ok"}));
}

TEST(VerifyCompiled, ChecksTheTargetPassesOfATransposedConvolution) {
  EXPECT_EQ(rows_of(R"(graph g(%x: f32[1,2,4,4]) {
    %w = parameter(name="w", value=f32[2,1,2,2] {1,2,3,4,5,6,7,8})
    %0 = conv_transpose(%x, %w, strides=[2,2]) return %0 })"),
            (std::vector<std::string>{"target conv-transpose-to-conv ok", "target compute-weights ok",
                                      "target remove-dead ok", "compiled compiled program ok"}));
}

// The nested graph has a target pipeline of its own.
TEST(VerifyCompiled, ChecksTheProgramOfControlFlow) {
  EXPECT_EQ(rows_of(R"(graph g(%a: f32[4,4]) {
    %n = constant(value=i64[] {3})
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[4,4]) {
      %go = constant(value=bool[] {1}) %p = softmax(%x, axis=1) %y = matmul(%p, %x) return %go, %y }
    return %0 })"),
            std::vector<std::string>{"compiled compiled program ok"});
}

TEST(VerifyCompiled, NamesATargetPassThatIsWrong) {
  const std::vector<PassVerification> results = verify_compiled(*parse_graph(kModel), with_pass(lose_tanh));
  ASSERT_EQ(rows_of(results),
            (std::vector<std::string>{"target lose FAILED", "compiled compiled program FAILED"}));
  EXPECT_EQ(results.front().changes, 1);
  for (const PassVerification& result : {results.front(), results.back()})
    EXPECT_TRUE(result.numbers.detail.starts_with("y: element ")) << result.numbers.detail;
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[1].numbers.detail, "not compared: the graph is wrong before it is lowered");
}

TEST(VerifyCompiled, ChecksEachTargetRewriteOfALargeModel) {
  const auto large = parse_graph(R"(graph g(%a: f32[2600000]) {
    %0 = tanh(%a) from "squash" %1 = gelu(%0) from "gate" return %1 as "y" })");
  const std::vector<PassVerification> wrong = verify_compiled(*large, with_pass(lose_tanh));
  ASSERT_EQ(rows_of(wrong), (std::vector<std::string>{"target decompose-ops ok", "target lose FAILED",
                                                      "compiled compiled program FAILED"}));
  EXPECT_TRUE(wrong[1].numbers.detail.find("(lose-tanh), bit-exact, of squash: element ") !=
              std::string::npos)
      << wrong[1].numbers.detail;
}

TEST(VerifyCompiled, HoldsStrictNumericsTo1e5) {
  compiler::CompileContext context = here();
  context.numerics = NumericsBudget::Strict;
  const VerifyOptions strict = {.numerics = NumericsBudget::Strict};
  EXPECT_EQ(options_for_target(strict, context).tolerance, 1e-5);
  EXPECT_EQ(options_for_target({}, here()).tolerance, 1e-4);
  const auto graph = parse_graph("graph g(%a: f32[8,64]) { %0 = softmax(%a, axis=1) return %0 }");
  for (const PassVerification& result : verify_compiled(*graph, context, strict))
    EXPECT_EQ(result.numbers.verdict, Verdict::Passed) << result.pass << ": " << result.numbers.detail;
}

TEST(VerifyModel, GoesFromPortablePassesToTheProgram) {
  EXPECT_EQ(rows_of(verify_model(*parse_graph(R"(graph g(%a: f32[2,3]) {
              %1 = constant(value=f32[] {1}) %0 = mul(%a, %1) %2 = softmax(%0, axis=1) return %2 })"),
                                 here())),
            (std::vector<std::string>{"portable simplify ok", "portable everything ok",
                                      "compiled compiled program ok"}));
}

TEST(VerifyModel, DoesNotCompileWhatIsWrongAlready) {
  VerifyOptions options;
  options.pipeline.insert(options.pipeline.begin(), {"lose", "", lose_tanh, ""});
  const std::vector<PassVerification> results = verify_model(*parse_graph(kModel), here(), options);
  EXPECT_EQ(results.back().level, Level::Compiled);
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Unknown);
  EXPECT_EQ(results.back().numbers.detail, "not compared: the optimised model is wrong already");
  EXPECT_EQ(results[results.size() - 2].pass, "everything");
}

}  // namespace
}  // namespace tenon
