#include "passes/expect_pass.h"

namespace tenon {
namespace {

constexpr std::string_view kPlain = R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
  %y = attention(%q, %k, %v, scale=0.25) return %y })";

TEST(RecogniseAttention, TakesTheScaleFromWhereverItStands) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %c = constant(value=f32[] {0.25}) %m = mul(%s, %c) %p = softmax(%m) %y = matmul(%p, %v) return %y })",
              kPlain);
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %c = constant(value=f32[] {0.5}) %qs = mul(%q, %c) %ks = mul(%k, %c)
    %kt = transpose(%ks, permutation=[0, 1, 3, 2]) %s = matmul(%qs, %kt)
    %p = softmax(%s, axis=3) %y = matmul(%p, %v) return %y })",
              kPlain);
}

TEST(RecogniseAttention, AddsMasks) {
  expect_pass(recognise_attention,
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: f32[2,1,1,6]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %a = add(%s, %m) %p = softmax(%a) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: f32[2,1,1,6]) {
    %y = attention(%q, %k, %v, %m, scale=1) return %y })");
}

// A bias for each head and a mask for each window would be one table for all windows and heads.
TEST(RecogniseAttention, LeavesConstantMasksThatWouldGrowTogether) {
  EXPECT_EQ(only_remark(expect_unchanged(recognise_attention,
                                         R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,8,16], %v: f32[2,4,8,5]) {
    %s = matmul(%q, %k, transpose_b=true) %b = constant(value=f32[1,4,8,8] splat 1)
    %m = constant(value=f32[2,1,8,8] splat 2) %a = add(%s, %b) %c = add(%a, %m) %p = softmax(%c)
    %y = matmul(%p, %v) return %y })")),
            "its masks are constants, and as one would hold more numbers");
}

TEST(RecogniseAttention, MakesABoolMaskOfAChoice) {
  expect_pass(recognise_attention,
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt) %low = constant(value=f32[] {-inf})
    %a = where(%m, %s, %low) %p = softmax(%a) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6]) {
    %y = attention(%q, %k, %v, %m, scale=1) return %y })");
}

// A query that sees nothing attends to all keys alike, so the low score must outweigh the others when added.
TEST(RecogniseAttention, MakesABiasOfAChoiceOfLowScores) {
  expect_pass(recognise_attention,
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt) %low = constant(value=f32[] {-1e9})
    %a = where(%m, %s, %low) %p = softmax(%a) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6]) {
    %0 = constant(value=f32[] {0}) %low = constant(value=f32[] {-1e30}) %b = where(%m, %0, %low)
    %y = attention(%q, %k, %v, %b, scale=1) return %y })");
}

TEST(RecogniseAttention, SharesKeyHeadsThatWereRepeated) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,2,6,16], %v: f32[2,2,6,5]) {
    %ks = constant(value=i64[5] {2, 2, 2, 6, 16}) %vs = constant(value=i64[5] {2, 2, 2, 6, 5})
    %kf = constant(value=i64[4] {2, 4, 6, 16}) %vf = constant(value=i64[4] {2, 4, 6, 5})
    %k1 = unsqueeze(%k, axes=[2]) %k2 = broadcast(%k1, %ks) %k3 = reshape(%k2, %kf)
    %v1 = unsqueeze(%v, axes=[2]) %v2 = broadcast(%v1, %vs) %v3 = reshape(%v2, %vf)
    %kt = transpose(%k3, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt) %p = softmax(%s)
    %y = matmul(%p, %v3) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,2,6,16], %v: f32[2,2,6,5]) {
    %k1 = unsqueeze(%k, axes=[2]) %v1 = unsqueeze(%v, axes=[2])
    %k2 = squeeze(%k1, axes=[2]) %v2 = squeeze(%v1, axes=[2])
    %y = attention(%q, %k2, %v2, scale=1) return %y })");
}

TEST(RecogniseAttention, GroupsBatchAndHeadsAsTheMaskDoes) {
  expect_pass(recognise_attention,
              R"(graph g(%q: f32[8,8,16], %k: f32[8,6,16], %v: f32[8,6,5], %m: f32[2,1,8,6]) {
    %four = constant(value=i64[4] {2, 4, 8, 6}) %three = constant(value=i64[3] {8, 8, 6})
    %kt = transpose(%k, permutation=[0, 2, 1]) %s = matmul(%q, %kt) %s4 = reshape(%s, %four)
    %a = add(%s4, %m) %s3 = reshape(%a, %three) %p = softmax(%s3) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[8,8,16], %k: f32[8,6,16], %v: f32[8,6,5], %m: f32[2,1,8,6]) {
    %qs = constant(value=i64[4] {2, 4, 8, 16}) %q4 = reshape(%q, %qs)
    %ks = constant(value=i64[4] {2, 4, 6, 16}) %k4 = reshape(%k, %ks)
    %vs = constant(value=i64[4] {2, 4, 6, 5}) %v4 = reshape(%v, %vs)
    %y4 = attention(%q4, %k4, %v4, %m, scale=1)
    %ys = constant(value=i64[3] {8, 8, 5}) %y = reshape(%y4, %ys) return %y })");
}

TEST(RecogniseAttention, CapsScores) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %f = constant(value=f32[] {0.0625}) %cap = constant(value=f32[] {4})
    %0 = mul(%s, %f) %1 = tanh(%0) %2 = mul(%1, %cap) %p = softmax(%2) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %y = attention(%q, %k, %v, scale=0.25, softcap=4) return %y })");
}

TEST(RecogniseAttention, KnowsACausalMask) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,3,16], %k: f32[2,4,3,16], %v: f32[2,4,3,5]) {
    %m = constant(value=f32[1,1,3,3] {0, -inf, -inf, 0, 0, -inf, 0, 0, 0})
    %y = attention(%q, %k, %v, %m, scale=1) return %y })",
              R"(graph g(%q: f32[2,4,3,16], %k: f32[2,4,3,16], %v: f32[2,4,3,5]) {
    %y = attention(%q, %k, %v, scale=1, window_after=0) return %y })");
  expect_unchanged(recognise_attention, R"(graph g(%q: f32[2,4,3,16], %k: f32[2,4,3,16], %v: f32[2,4,3,5]) {
    %m = constant(value=f32[1,1,3,3] {0, -inf, -inf, 0, 0, -inf, -1, 0, 0})
    %y = attention(%q, %k, %v, %m, scale=1) return %y })");
}

TEST(RecogniseAttention, DropsAMaskThatHidesNothing) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,3,16], %k: f32[2,4,3,16], %v: f32[2,4,3,5]) {
    %m = constant(value=bool[2,1,1,3] splat 1) %y = attention(%q, %k, %v, %m, scale=1) return %y })",
              R"(graph g(%q: f32[2,4,3,16], %k: f32[2,4,3,16], %v: f32[2,4,3,5]) {
    %y = attention(%q, %k, %v, scale=1) return %y })");
}

void simplify_and_recognise(Graph& graph, Journal& journal) {
  simplify(graph, journal);
  recognise_attention(graph, journal);
}

TEST(RecogniseAttention, ReadsEinsum) {
  expect_pass(simplify_and_recognise, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %s = einsum([%q, %k], equation="bhid,bhjd->bhij") %c = constant(value=f32[] {0.25}) %m = mul(%s, %c)
    %p = softmax(%m) %y = einsum([%p, %v], equation="bhij,bhjd->bhid") return %y })",
              kPlain);
}

TEST(RecogniseAttention, ReadsEinsumWithHeadsBesideTheFeatures) {
  expect_pass(simplify_and_recognise, R"(graph g(%q: f32[2,8,4,16], %k: f32[2,n,4,16], %v: f32[2,n,4,5]) {
    %s = einsum([%q, %k], equation="bqhd,bkhd->bhqk") %p = softmax(%s)
    %y = einsum([%p, %v], equation="bhqk,bkhd->bqhd") return %y })",
              R"(graph g(%q: f32[2,8,4,16], %k: f32[2,n,4,16], %v: f32[2,n,4,5]) {
    %q1 = transpose(%q, permutation=[0, 2, 1, 3]) %k1 = transpose(%k, permutation=[0, 2, 1, 3])
    %v1 = transpose(%v, permutation=[0, 2, 1, 3]) %a = attention(%q1, %k1, %v1, scale=1)
    %y = transpose(%a, permutation=[0, 2, 1, 3]) return %y })");
}

TEST(RecogniseAttention, ReadsTheTransposeOfItsResult) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,5,6]) {
    %s = matmul(%q, %k, transpose_b=true) %p = softmax(%s) %y = matmul(%v, %p, transpose_b=true) return %y })",
              R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,5,6]) {
    %v1 = transpose(%v, permutation=[0, 1, 3, 2]) %a = attention(%q, %k, %v1, scale=1)
    %y = transpose(%a, permutation=[0, 1, 3, 2]) return %y })");
}

TEST(RecogniseAttention, ReadsScoresOfKeysByQueries) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %s = matmul(%k, %q, transpose_b=true) %c = constant(value=f32[] {0.25}) %m = mul(%s, %c)
    %p = softmax(%m, axis=-2) %y = matmul(%p, %v, transpose_a=true) return %y })",
              kPlain);
  // Along the queries it is another function.
  expect_unchanged(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %s = matmul(%k, %q, transpose_b=true) %p = softmax(%s) %y = matmul(%p, %v, transpose_a=true) return %y })");
}

TEST(RecogniseAttention, SharesKeysThatAllHeadsAreMultipliedWith) {
  expect_pass(recognise_attention, R"(graph g(%q: f32[b,4,8,16], %k: f32[b,1,6,16], %v: f32[b,1,6,5]) {
    %s = matmul(%q, %k, transpose_b=true) %p = softmax(%s) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[b,4,8,16], %k: f32[b,1,6,16], %v: f32[b,1,6,5]) {
    %y = attention(%q, %k, %v, scale=1) return %y })");
  // The values are not shared: attention would take as many heads of both.
  expect_unchanged(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,1,6,16], %v: f32[2,4,6,5]) {
    %s = matmul(%q, %k, transpose_b=true) %p = softmax(%s) %y = matmul(%p, %v) return %y })");
}

TEST(RecogniseAttention, RegroupsAMaskOfBatchAndHeadsInOne) {
  expect_pass(
      recognise_attention,
      R"(graph g(%q: f32[8,6,16], %k: f32[8,6,16], %v: f32[2,4,6,5], %m: f32[8,1,6], %n: f32[2,1,6,6]) {
    %s = matmul(%q, %k, transpose_b=true) %a = add(%s, %m) %z = constant(value=i64[4] {2, 4, 6, 6})
    %t = reshape(%a, %z) %b = add(%t, %n) %p = softmax(%b) %y = matmul(%p, %v) return %y })",
      R"(graph g(%q: f32[8,6,16], %k: f32[8,6,16], %v: f32[2,4,6,5], %m: f32[8,1,6], %n: f32[2,1,6,6]) {
    %z = constant(value=i64[4] {2, 4, 6, 16}) %q1 = reshape(%q, %z)
    %w = constant(value=i64[4] {2, 4, 6, 16}) %k1 = reshape(%k, %w)
    %i = constant(value=i64[3] {8, 1, 6}) %mi = broadcast(%m, %i)
    %j = constant(value=i64[4] {2, 4, 1, 6}) %m1 = reshape(%mi, %j) %b = add(%n, %m1)
    %y = attention(%q1, %k1, %v, %b, scale=1) return %y })");
}

// As in windows that were shifted: one mask for each, whatever the image and the head.
TEST(RecogniseAttention, RepeatsAMaskOfWindowsForImagesButNotForHeads) {
  expect_pass(recognise_attention,
              R"(graph g(%q: f32[6,4,5,16], %k: f32[6,4,5,16], %v: f32[6,4,5,16], %m: f32[1,3,1,5,5]) {
    %s = matmul(%q, %k, transpose_b=true) %z = constant(value=i64[5] {2, 3, 4, 5, 5}) %t = reshape(%s, %z)
    %a = add(%t, %m) %w = constant(value=i64[4] {6, 4, 5, 5}) %u = reshape(%a, %w)
    %p = softmax(%u) %y = matmul(%p, %v) return %y })",
              R"(graph g(%q: f32[6,4,5,16], %k: f32[6,4,5,16], %v: f32[6,4,5,16], %m: f32[1,3,1,5,5]) {
    %i = constant(value=i64[5] {2, 3, 1, 5, 5}) %n = broadcast(%m, %i)
    %j = constant(value=i64[4] {6, 1, 5, 5}) %b = reshape(%n, %j)
    %y = attention(%q, %k, %v, %b, scale=1) return %y })");
}

TEST(RecogniseAttention, LeavesAnotherAxisAlone) {
  expect_unchanged(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %p = softmax(%s, axis=2) %y = matmul(%p, %v) return %y })");
}

TEST(RecogniseAttention, LeavesAChoiceOfScoresThatF16HasNot) {
  const Journal journal =
      expect_unchanged(recognise_attention,
                       R"(graph g(%q: f16[2,4,8,16], %k: f16[2,4,6,16], %v: f16[2,4,6,5], %m: bool[8,6]) {
    %s = matmul(%q, %k, transpose_b=true) %w = cast(%s, to=f32) %low = constant(value=f32[] {-1e9})
    %a = where(%m, %w, %low) %p = softmax(%a) %n = cast(%p, to=f16) %y = matmul(%n, %v) return %y })");
  EXPECT_EQ(only_remark(journal), "f16 has no number as low as the score that is chosen");
}

// What is added may bring all other scores below the one that is chosen.
TEST(RecogniseAttention, LeavesAChoiceOfSums) {
  constexpr std::string_view text =
      R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6], %b: f32[8,6]) {{
    %s = matmul(%q, %k, transpose_b=true) %t = add(%s, %b) %low = constant(value=f32[] {{{}}})
    %a = where(%m, %t, %low) %p = softmax(%a) %y = matmul(%p, %v) return %y }})";
  expect_unchanged(recognise_attention, fmt::format(fmt::runtime(text), "-1e9"));
  const std::unique_ptr<Graph> graph = parse_graph(fmt::format(fmt::runtime(text), "-inf"));
  Journal journal;
  recognise_attention(*graph, journal);
  EXPECT_TRUE(graph->outputs().front().node()->is("attention"));
}

// A query whose keys are all masked, some by the choice and some by what is added, attends to the highest.
TEST(RecogniseAttention, LeavesSumsOfAChoice) {
  constexpr std::string_view text =
      R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5], %m: bool[8,6], %b: f32[8,6]) {{
    %s = matmul(%q, %k, transpose_b=true) %low = constant(value=f32[] {{{}}})
    %c = where(%m, %s, %low) %a = add(%c, %b) %p = softmax(%a) %y = matmul(%p, %v) return %y }})";
  const Journal unchanged = expect_unchanged(recognise_attention, fmt::format(fmt::runtime(text), "-1e9"));
  EXPECT_EQ(only_remark(unchanged), "more is added where a condition has chosen a low score");
  for (const char* low : {"-inf", "-3e38"}) {
    const std::unique_ptr<Graph> graph = parse_graph(fmt::format(fmt::runtime(text), low));
    Journal journal;
    recognise_attention(*graph, journal);
    EXPECT_TRUE(graph->outputs().front().node()->is("attention")) << low;
  }
}

// What the outer condition chooses is all that is left of the inner choice, which is no sum.
TEST(RecogniseAttention, NestsChoices) {
  constexpr std::string_view text =
      R"(graph g(%q: f32[1,1,2,4], %k: f32[1,1,3,4], %v: f32[1,1,3,4], %m: bool[2,3], %n: bool[2,3]) {{
    %l = constant(value=f32[] {{{}}}) %o = constant(value=f32[] {{{}}})
    %s = matmul(%q, %k, transpose_b=true) %a = where(%m, %s, %l) %b = where(%n, %a, %o)
    %p = softmax(%b) %y = matmul(%p, %v) return %y }})";
  const Data inputs{
      narrow<double>(DType::F32, {1, 1, 2, 4}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}),
      narrow<double>(DType::F32, {1, 1, 3, 4}, std::vector<double>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 1}),
      narrow<double>(DType::F32, {1, 1, 3, 4}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}),
      narrow<double>(DType::Bool, {2, 3}, std::vector<double>{0, 1, 0, 0, 1, 1}),
      narrow<double>(DType::Bool, {2, 3}, std::vector<double>{0, 0, 1, 1, 0, 1})};
  for (const auto& [inner, outer, is_found] :
       {std::tuple("-1e9", "-1e9", true), std::tuple("-1e9", "-1e10", false),
        std::tuple("-3e38", "-1e38", true), std::tuple("-1e9", "-inf", true)}) {
    const std::string given = fmt::format(fmt::runtime(text), inner, outer);
    const std::unique_ptr<Graph> graph = parse_graph(given);
    Journal journal;
    recognise_attention(*graph, journal);
    EXPECT_EQ(graph->outputs().front().node()->is("attention"), is_found) << given;
    const std::vector<double> got = widen<double>(evaluate(*graph, inputs)[0].tensor()),
                              wanted = widen<double>(evaluate(*parse_graph(given), inputs)[0].tensor());
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-5) << given << "\nelement " << i;
  }
}

TEST(RecogniseAttention, LeavesProbabilitiesThatOthersUse) {
  const Journal journal = expect_unchanged(
      recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %p = softmax(%s) %y = matmul(%p, %v) return %y, %p })");
  EXPECT_EQ(only_remark(journal), "the probabilities are used elsewhere too");
}

TEST(RecogniseAttention, LeavesAMaskThatWidensTheScores) {
  expect_unchanged(recognise_attention,
                   R"(graph g(%q: f32[1,4,8,16], %k: f32[1,4,6,16], %v: f32[1,4,6,5], %m: f32[2,1,8,6]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %a = add(%s, %m) %p = softmax(%a) %y = matmul(%p, %v) return %y })");
}

TEST(RecogniseAttention, DoesNothingWhereBitsCount) {
  expect_unchanged(recognise_attention, R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,6,16], %v: f32[2,4,6,5]) {
    %kt = transpose(%k, permutation=[0, 1, 3, 2]) %s = matmul(%q, %kt)
    %p = softmax(%s) %y = matmul(%p, %v) return %y })",
                   NumericsBudget::Strict);
}

}  // namespace
}  // namespace tenon
