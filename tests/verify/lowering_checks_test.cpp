// Kernel graphs and schedules against the graph that they are made of: right ones, on targets by name, and
// ones that are broken on purpose.
#include "verify/lowering_checks.h"

#include "compiler/backend.h"
#include "compiler/expect_compiled.h"
#include "compiler/target_graph.h"
#include "lowering/interpret_elements.h"
#include "lowering/lower_graph.h"
#include "sanitized.h"
#include "verify/bisect.h"
#include "verify/random_inputs.h"

namespace tenon {
namespace {

constexpr std::string_view kConvolutions =
    R"(graph g(%x: f32[1,8,20,20], %w1: f32[24,8,3,3], %w2: f32[24,1,1]) {
  %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) from "conv"
  %2 = add(%0, %w2) from "bias"
  %3 = relu(%2) from "relu"
  return %3
})";

// A graph as the target pipeline leaves it, and what flows through it.
struct Ran {
  explicit Ran(std::string_view text, const compiler::CompileContext& context) {
    Journal journal(context.numerics);
    graph = make_target_graph(*read(text), context, journal);
    std::mt19937_64 random(1);
    recorded = record_values(*graph, random_inputs(*graph, random));
  }

  std::unique_ptr<Graph> graph;
  RecordedValues recorded;
};

// "lowered lower ok", and so on.
std::vector<std::string> rows_of(const std::vector<LoweringCheck>& checks) {
  std::vector<std::string> rows;
  for (const LoweringCheck& check : checks)
    rows.push_back(fmt::format("{} {} {}", name(check.level), check.pass, name(check.numbers.verdict)));
  return rows;
}

std::vector<std::string> rows_for(std::string_view target, std::string_view text) {
  const compiler::CompileContext context = for_target(target);
  const Ran ran(text, context);
  return rows_of(check_lowering(*ran.graph, ran.recorded, context));
}

TEST(LoweringChecks, FollowAGraphThroughThePassesThatChangeItsNodes) {
  EXPECT_EQ(rows_for("avx2", R"(graph g(%x: f32[6,40], %w: f32[40,33]) {
    %0 = matmul(%x, %w) %1 = relu(%0) %2 = softmax(%1, axis=-1) return %2 })"),
            (std::vector<std::string>{"lowered lower ok", "lowered inline-producers ok", "lowered pack-b ok",
                                      "kernels schedule ok"}));
}

std::vector<std::string_view> targets() {
  return kIsSanitized ? std::vector<std::string_view>{"avx512"} : target_names();
}

TEST(LoweringChecks, KnowWhereImagesAndPackedOperandsHaveTheirElements) {
  for (const std::string_view target : targets()) {
    SCOPED_TRACE(target);
    for (const std::string& row : rows_for(
             target,
             R"(graph g(%x: f32[1,16,12,12], %w1: f32[24,16,3,3], %w2: f32[24,1,3,3], %w3: f32[20,24,1,1]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = tanh(%0)
      %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=24)
      %3 = conv(%2, %w3, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      %4 = reduce_mean(%3, axes=[2,3], keep_dims=true)
      return %4 })"))
      EXPECT_TRUE(row.ends_with(" ok")) << row;
  }
}

TEST(LoweringChecks, KnowWhichElementsWordsHave) {
  for (const std::string_view target : targets()) {
    compiler::CompileContext context = for_target(target);
    context.precision = MatmulPrecision::BF16;
    const Ran ran(
        R"(graph g(%x: f32[6,40], %y: f32[1,8,5,6], %w1: f32[40,33], %w2: f32[40,33], %w3: f32[24,8,3,3]) {
      %h = constant(value=f32[] {127.0})
      %0 = mul(%x, %h) %1 = cast(%0, to=u8)
      %2 = mul(%w1, %h) %3 = cast(%2, to=i8)
      %4 = widening_matmul(%1, %3, accumulator=i32)
      %5 = mul(%y, %h) %6 = cast(%5, to=u8)
      %7 = mul(%w3, %h) %8 = cast(%7, to=i8)
      %9 = widening_conv(%6, %8, accumulator=i32, pads=[1,1,1,1], border=3)
      %10 = matmul(%x, %w2)
      return %4, %9, %10 })",
        context);
    std::string all;
    for (const std::string& row : rows_of(check_lowering(*ran.graph, ran.recorded, context))) {
      EXPECT_TRUE(row.ends_with(" ok")) << target << ": " << row;
      all += row;
    }
    EXPECT_NE(all.find("vnni-pack"), std::string::npos) << all;
  }
}

// Every use of an addition becomes a subtraction.
void break_additions(loops::Definition& definition) {
  for (loops::Scalar& value : definition.values)
    if (value.kind() == loops::Scalar::Kind::Apply && value.function() == loops::Function::Add)
      value = loops::Scalar::apply(loops::Function::Subtract, value.operands());
}

TEST(LoweringChecks, NameTheNodeOfAKernelGraphThatIsWrong) {
  const compiler::CompileContext context = for_target("avx2");
  const Ran ran(kConvolutions, context);
  KernelGraphChecks checks(ran.recorded, {});
  lowering::KernelGraph graph = lowering::lower_graph(*ran.graph);
  EXPECT_EQ(checks.check_pass("lower", graph).numbers.verdict, Verdict::Passed);
  EXPECT_EQ(checks.check_pass("nothing", graph).changes, 0);
  for (lowering::KernelNode& node : graph.nodes)
    if (node.stage)
      break_additions(node.stage->definition);
  const LoweringCheck wrong = checks.check_pass("break", graph);
  EXPECT_EQ(wrong.numbers.verdict, Verdict::Failed);
  EXPECT_EQ(wrong.changes, 1);
  EXPECT_EQ(wrong.sources, std::vector<std::string>{"bias"});
  EXPECT_TRUE(wrong.numbers.detail.starts_with("bias: element ")) << wrong.numbers.detail;
}

TEST(LoweringChecks, SayWhatIsMalformed) {
  const compiler::CompileContext context = for_target("avx2");
  const Ran ran(kConvolutions, context);
  lowering::KernelGraph graph = lowering::lower_graph(*ran.graph);
  graph.outputs.push_back(graph.buffers.add({.elements = {.name = "nobody_writes_it", .sizes = {}}}));
  const LoweringCheck wrong = KernelGraphChecks(ran.recorded, {}).check_pass("forget", graph);
  EXPECT_EQ(wrong.lint.verdict, Verdict::Failed);
  EXPECT_NE(wrong.lint.detail.find("nobody_writes_it"), std::string::npos) << wrong.lint.detail;
}

// Nudged operands make NaN of NaN, which explains nothing.
TEST(LoweringChecks, DoNotTakeNaNForRounding) {
  const Ran ran(kConvolutions, for_target("avx2"));
  lowering::KernelGraph graph = lowering::lower_graph(*ran.graph);
  for (lowering::KernelNode& node : graph.nodes)
    for (loops::Scalar& value : node.stage->definition.values)
      if (node.stage->sources.front() == "relu") {
        const loops::Scalar zero = loops::Scalar::zero(value.dtype());
        value = loops::Scalar::apply(loops::Function::Multiply,
                                     {value, loops::Scalar::apply(loops::Function::Divide, {zero, zero})});
      }
  EXPECT_EQ(KernelGraphChecks(ran.recorded, {}).check_pass("lose", graph).numbers.verdict, Verdict::Failed);
}

// Though its own expression is what it was.
TEST(LoweringChecks, LookAgainAtWhatReadsABufferOfAnotherLayout) {
  const Ran ran(kConvolutions, for_target("avx2"));
  lowering::KernelGraph graph = lowering::lower_graph(*ran.graph);
  KernelGraphChecks checks(ran.recorded, {});
  EXPECT_FALSE(checks.check_pass("lower", graph).failed());
  const auto image = std::ranges::find_if(
      graph.nodes, [](const lowering::KernelNode& node) { return node.stage->sources.front() == "bias"; });
  graph.buffers[*image->writes.begin()].layout =
      lowering::ImageLayout{.order = {0, 1, 3, 2}, .before = {0, 0, 0, 0}, .after = {0, 0, 0, 0}};
  EXPECT_TRUE(checks.check_pass("transpose", graph).failed());
}

// A sum of squares, which f32 would lose digits of.
TEST(LoweringChecks, AddUpLongSumsAsTheReferenceDoes) {
  for (const std::string& row : rows_for("avx2", R"(graph g(%x: f32[1000000]) {
    %0 = mul(%x, %x) %1 = reduce_sum(%0, axes=[0]) return %1 })"))
    EXPECT_FALSE(row.ends_with("FAILED")) << row;
}

// Whose image is padded to whole tiles after it was planned.
TEST(LoweringChecks, KnowWinogradConvolutionsThatFollowEachOther) {
  const std::vector<std::string> rows =
      rows_for("neon", R"(graph g(%x: f32[1,64,14,14], %w1: f32[64,64,3,3], %w2: f32[64,64,3,3]) {
    %0 = conv(%x, %w1, pads=[1,1,1,1]) %1 = conv(%0, %w2, pads=[1,1,1,1]) return %1 })");
  EXPECT_NE(std::ranges::find(rows, "lowered use-winograd ok"), rows.end());
  for (const std::string& row : rows)
    EXPECT_FALSE(row.ends_with("FAILED")) << row;
}

// --- schedules that are broken on purpose ---

// The last iteration of the innermost loops is left out.
void forget_iterations(std::vector<loops::Statement>& body) {
  for (loops::Statement& statement : body) {
    if (auto* loop = std::get_if<loops::Loop>(&statement)) {
      const bool is_innermost = std::ranges::none_of(
          loop->body, [](const loops::Statement& inner) { return loops::body_of(inner) != nullptr; });
      if (is_innermost && loop->end.constant().value_or(0) > 4)
        loop->end = loop->end - 1;
    }
    if (std::vector<loops::Statement>* inner = loops::body_of(statement))
      forget_iterations(*inner);
  }
}

compiler::Backend forgetful_backend() {
  compiler::Backend backend = compiler::default_backend();
  backend.schedule = [](const std::vector<lowering::Stage>& stages, const lowering::Group& group,
                        const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                        const schedule::Context& context) {
    loops::Kernel kernel = compiler::default_backend().schedule(stages, group, outputs, buffers, context);
    forget_iterations(kernel.body);
    return kernel;
  };
  return backend;
}

constexpr std::string_view kProduct = R"(graph g(%x: f32[6,40], %w: f32[40,33]) {
  %0 = matmul(%x, %w) from "product" %1 = relu(%0) from "relu" return %1 })";

TEST(LoweringChecks, NameTheKernelWhoseScheduleIsWrong) {
  const compiler::Backend backend = forgetful_backend();
  compiler::CompileContext context = for_target("avx2");
  context.backend = &backend;
  const Ran ran(kProduct, context);
  const std::vector<LoweringCheck> checks = check_lowering(*ran.graph, ran.recorded, context);
  EXPECT_EQ(rows_of(checks).back(), "kernels schedule FAILED");
  EXPECT_EQ(checks.back().kernel, 0U);
  EXPECT_EQ(checks.back().sources, (std::vector<std::string>{"product", "relu"}));
}

TEST(LoweringChecks, BisectNamesTheKernelWhoseScheduleIsWrong) {
  const compiler::Backend backend = forgetful_backend();
  compiler::CompileContext context = without_cache();
  context.backend = &backend;
  const std::optional<Culprit> culprit = bisect(*read(kProduct), {.context = context});
  ASSERT_TRUE(culprit);
  ASSERT_TRUE(culprit->program);
  EXPECT_EQ(culprit->program->part, "schedule");
  EXPECT_EQ(culprit->program->sources, (std::vector<std::string>{"product", "relu"}));
}

}  // namespace
}  // namespace tenon
