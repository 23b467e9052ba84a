#include "ir/graph_text.h"

namespace tenon {
namespace {

Tensor strings(std::vector<std::string> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::strings(std::move(values), {count});
}

Data apply(std::string_view op, const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x{}) return %y }}", type_of(x), op, attributes),
                  {x});
}

TEST(StringConcat, Broadcasts) {
  expect_tensor(run_text("graph(%a: str[2,1], %b: str[2]) { %y = string_concat(%a, %b) return %y }",
                         {Tensor::strings({"a", ""}, {2, 1}), strings({"x", "y"})})[0],
                Tensor::strings({"ax", "ay", "x", "y"}, {2, 2}));
}

Data split(const Tensor& x, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}) {{ %y, %n = string_split(%x{}) return %y, %n }}", type_of(x), attributes),
      {x});
}

TEST(StringSplit, FillsUpWithEmptyStrings) {
  const Data result = split(strings({"a,b,,c", "", ","}), ", delimiter=\",\"");
  expect_tensor(result[0], Tensor::strings({"a", "b", "", "c", "", "", "", "", "", "", "", ""}, {3, 4}));
  expect_tensor(result[1], i64({3}, {4, 1, 2}));
  expect_tensor(split(strings({"aXXbXX"}), ", delimiter=\"XX\"")[0], Tensor::strings({"a", "b", ""}, {1, 3}));
}

TEST(StringSplit, JoinsBlanksUnlessADelimiterIsGiven) {
  const Data result = split(strings({"  a \t b\n", " ", ""}), "");
  expect_tensor(result[0], Tensor::strings({"a", "b", "", "", "", ""}, {3, 2}));
  expect_tensor(result[1], i64({3}, {2, 0, 0}));
}

TEST(StringSplit, KeepsTheRestAfterTheLastSplit) {
  expect_tensor(split(strings({" a  b  c "}), ", max_splits=1")[0], Tensor::strings({"a", "b  c "}, {1, 2}));
  expect_tensor(split(strings({" a b "}), ", max_splits=0")[0], Tensor::strings({"a b "}, {1, 1}));
  expect_tensor(split(strings({"a,b,c"}), ", delimiter=\",\", max_splits=1")[0],
                Tensor::strings({"a", "b,c"}, {1, 2}));
  expect_tensor(split(strings({"a,b,c"}), ", delimiter=\",\", max_splits=0")[0],
                Tensor::strings({"a,b,c"}, {1, 1}));
}

TEST(StringSplit, OfNothingIsNothing) {
  expect_tensor(split(Tensor::strings({}, {2, 0}), "")[0], Tensor::strings({}, {2, 0, 0}));
  expect_tensor(split(Tensor::strings({"a b"}, {}), "")[0], strings({"a", "b"}));
}

TEST(StringNormalize, DropsWordsAndChangesCase) {
  const Tensor x = strings({"Ab", "ab", "Été",
                            "\xff"
                            "é"});
  const auto normalize = [&](std::string_view attributes) {
    return apply("string_normalize", x, attributes)[0];
  };
  expect_tensor(normalize(""), x);
  expect_tensor(normalize(", drop=[\"aB\"]"), strings({"Été",
                                                       "\xff"
                                                       "é"}));
  expect_tensor(normalize(", drop=[\"ab\"], case_sensitive=true"), strings({"Ab", "Été",
                                                                            "\xff"
                                                                            "é"}));
  // Bytes that are no UTF-8 stay.
  expect_tensor(normalize(", change_case=\"upper\""), strings({"AB", "AB", "ÉTÉ",
                                                               "\xff"
                                                               "É"}));
  expect_tensor(normalize(", change_case=\"lower\", drop=[\"ÉTÉ\"]"), strings({"ab", "ab",
                                                                               "\xff"
                                                                               "é"}));
}

TEST(StringNormalize, LeavesOverlongSpellingsAlone) {
  // Three bytes that spell A, which UTF-8 forbids.
  expect_tensor(apply("string_normalize", strings({"\xE0\x81\x81"}), ", change_case=\"lower\"")[0],
                strings({"\xE0\x81\x81"}));
}

TEST(StringNormalize, LeavesOneEmptyStringWhenAllAreDropped) {
  expect_tensor(apply("string_normalize", strings({"a"}), ", drop=[\"A\"]")[0], strings({""}));
  expect_tensor(apply("string_normalize", Tensor::strings({"a"}, {1, 1}), ", drop=[\"A\"]")[0],
                Tensor::strings({""}, {1, 1}));
  expect_tensor(apply("string_normalize", strings({}), "")[0], strings({""}));
}

TEST(StringNormalize, RefusesOtherShapesAndCases) {
  expect_error<UserError>(
      [] {
        apply("string_normalize", Tensor::strings({"a", "b"}, {2, 1}), "");
      },
      "line 1, column 28: string_normalize: x must be a vector, or a matrix of one row\n  x  %x: str[2,1]");
  expect_error<UserError>(
      [] { apply("string_normalize", strings({"a"}), ", change_case=\"title\""); },
      "line 1, column 26: string_normalize: change_case is \"title\", but must be none, lower or upper");
}

TEST(RegexFullMatch, MatchesAllOfTheString) {
  expect_tensor(apply("regex_full_match", strings({"ab", "abc", "", "aab"}), ", pattern=\"a+b\"")[0],
                tensor(DType::Bool, {4}, {1, 0, 0, 1}));
  // A pattern over which backtracking matchers take exponential time.
  expect_tensor(apply("regex_full_match", strings({std::string(1000, 'a') + "b"}), ", pattern=\"(a*)*\"")[0],
                tensor(DType::Bool, {1}, {0}));
}

TEST(RegexFullMatch, RefusesBadPatterns) {
  const auto refuse = [](const std::string& pattern, const std::string& why) {
    expect_error<UserError>(
        [&] { apply("regex_full_match", strings({"a"}), fmt::format(", pattern=\"{}\"", pattern)); },
        fmt::format("line 1, column 26: regex_full_match: the pattern \"{}\" is not valid: {}", pattern,
                    why));
  };
  refuse("(", "missing ): (");
  refuse("((a{1000}){1000}){1000}", "invalid repetition size: {1000}");
}

// The pool: 1-grams 1 and 2, then 2-grams (1,2) and (2,1).
constexpr std::string_view kPool = ", pool=i64[6] {1, 2, 1, 2, 2, 1}, starts=[0, 2], columns=[1, 0, 2, 3]";

Data count(const Tensor& x, std::string_view attributes) {
  return apply("count_ngrams", x, fmt::format("{}{}", kPool, attributes));
}

TEST(CountNgrams, CountsThoseOfThePool) {
  const Tensor x = i64({4}, {1, 2, 2, 1});
  expect_tensor(count(x, ", min_length=1, max_length=1")[0], f32({4}, {2, 2, 0, 0}));
  expect_tensor(count(x, ", min_length=2, max_length=2")[0], f32({4}, {0, 0, 1, 1}));
  // Skipping one token as well: (1,2) at 0 and 2, (2,1) at 1 and 3. Single tokens are counted once.
  expect_tensor(count(x, ", min_length=1, max_length=9, max_skips=1")[0], f32({4}, {2, 2, 2, 2}));
  expect_tensor(count(i64({2, 2}, {1, 2, 7, 7}), ", min_length=1, max_length=2")[0],
                f32({2, 4}, {1, 1, 1, 0, 0, 0, 0, 0}));
  expect_tensor(count(i64({2, 0}, {}), ", min_length=1, max_length=2")[0],
                f32({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}));
  expect_tensor(
      count(tensor(DType::I32, {1}, {2}), ", min_length=1, max_length=1, max_skips=9223372036854775807")[0],
      f32({4}, {1, 0, 0, 0}));
}

TEST(CountNgrams, Weighs) {
  const Tensor x = i64({3}, {1, 2, 1});
  const std::string_view lengths = ", min_length=1, max_length=2, weights=[0.5, 3.0, 10.0, 20.0]";
  expect_tensor(count(x, fmt::format("{}, weighting=\"idf\"", lengths))[0], f32({4}, {3, 0.5, 10, 20}));
  expect_tensor(count(x, fmt::format("{}, weighting=\"tfidf\"", lengths))[0], f32({4}, {3, 1, 10, 20}));
}

TEST(CountNgrams, RefusesPoolsThatMakeNoSense) {
  const auto refuse = [](std::string_view attributes, const std::string& message) {
    expect_error<UserError>(
        [&] {
          apply("count_ngrams", i64({1}, {1}), fmt::format(", min_length=1, max_length=2{}", attributes));
        },
        message);
  };
  refuse(", pool=i64[2] {1, 2}, starts=[0, 3], columns=[0]",
         "node %y: count_ngrams: starts [0,3] do not divide a pool of 2 tokens");
  refuse(", pool=i64[2] {1, 2}, starts=[0], columns=[0]",
         "node %y: count_ngrams: there are more n-grams in the pool than columns, or than weights");
  refuse(", pool=i64[1] {1}, starts=[0], columns=[-1]",
         "line 1, column 26: count_ngrams: there is no column -1");
  refuse(", pool=i64[1] {1}, starts=[0], columns=[0], weighting=\"log\"",
         "line 1, column 26: count_ngrams: weighting is \"log\", but must be tf, idf or tfidf");
  refuse(", pool=str[1] {\"a\"}, starts=[0], columns=[0]",
         "node %y: count_ngrams: x is i64[1] and the pool str[1], but a vector or matrix of the same kind "
         "was wanted");
}

}  // namespace
}  // namespace tenon
