#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

struct Named {
  std::string name;
  Tensor tensor;
};

std::string text(std::string_view op, const std::vector<std::pair<std::string, std::string>>& operands,
                 std::string_view attributes) {
  std::string inputs, arguments;
  for (const auto& [name, type] : operands) {
    inputs += fmt::format("{}%{}: {}", inputs.empty() ? "" : ", ", name, type);
    arguments += fmt::format("{}=%{}, ", name, name);
  }
  return fmt::format("graph({}) {{ %y = {}({}{}) return %y }}", inputs, op, arguments, attributes);
}

Datum run(std::string_view op, const std::vector<Named>& operands, std::string_view attributes) {
  std::vector<std::pair<std::string, std::string>> types;
  Data data;
  for (const Named& operand : operands) {
    types.emplace_back(operand.name, to_string(type_of(operand.tensor)));
    data.emplace_back(operand.tensor);
  }
  return run_text(text(op, types, attributes), data)[0];
}

// Keys of zeros, so that every key that is seen gets the same probability, and the values 1, 2, 4, 8.
const Tensor k = f32({1, 1, 4, 1}, {0, 0, 0, 0}), v = f32({1, 1, 4, 1}, {1, 2, 4, 8});

Tensor queries(int64_t count) {
  return f32({1, 1, count, 1}, std::vector<double>(static_cast<size_t>(count), 1));
}

TEST(Attention, IsAWeightedMeanOfTheValues) {
  // Scores 0 and ln 3 are the probabilities 1/4 and 3/4.
  expect_near(run("attention",
                  {{"q", f32({1, 1, 1, 1}, {2})},
                   {"k", f32({1, 1, 2, 1}, {0, std::log(3.0)})},
                   {"v", f32({1, 1, 2, 2}, {0, 4, 8, 0})}},
                  "scale=0.5"),
              f32({1, 1, 1, 2}, {6, 1}), 1e-6);
}

TEST(Attention, KeyHeadsServeConsecutiveQueryHeads) {
  const Datum y = run("attention",
                      {{"q", f32({1, 4, 1, 1}, {1, 1, 1, 1})},
                       {"k", f32({1, 2, 1, 1}, {0, 0})},
                       {"v", f32({1, 2, 1, 1}, {10, 20})}},
                      "scale=1");
  expect_tensor(y, f32({1, 4, 1, 1}, {10, 10, 20, 20}));
}

TEST(Attention, WindowsCountFromTheQuerysPlace) {
  const auto attend = [](std::vector<Named> more, std::string_view attributes) {
    std::vector<Named> operands = {{"q", queries(2)}, {"k", k}, {"v", v}};
    operands.insert(operands.end(), more.begin(), more.end());
    return run("attention", operands, attributes);
  };
  expect_tensor(attend({}, "scale=1, window_after=0"), f32({1, 1, 2, 1}, {1, 1.5}));
  expect_tensor(attend({{"offset", i64({}, {2})}}, "scale=1, window_after=0"),
                f32({1, 1, 2, 1}, {7.0F / 3, 15.0F / 4}));
  expect_tensor(attend({{"offset", i64({1}, {1})}}, "scale=1, window_before=0, window_after=1"),
                f32({1, 1, 2, 1}, {3, 6}));
  expect_tensor(attend({{"offset", i64({1}, {-1})}}, "scale=1, window_after=0"), f32({1, 1, 2, 1}, {0, 1}));
  expect_tensor(attend({{"lengths", i64({1}, {2})}}, "scale=1"), f32({1, 1, 2, 1}, {1.5, 1.5}));
  const auto least = static_cast<double>(std::numeric_limits<int64_t>::min());
  expect_tensor(attend({{"offset", i64({1}, {least})}}, "scale=1, window_after=0"),
                f32({1, 1, 2, 1}, {0, 0}));
}

TEST(Attention, MasksAreBoolOrAdded) {
  const auto attend = [](const Tensor& mask, std::string_view attributes = "") {
    return run("attention", {{"q", queries(1)}, {"k", k}, {"v", v}, {"mask", mask}},
               fmt::format("scale=1{}", attributes));
  };
  expect_tensor(attend(tensor(DType::Bool, {4}, {0, 1, 0, 1})), f32({1, 1, 1, 1}, {5}));
  expect_tensor(attend(f32({1, 4}, {0, -kInf, 0, -kInf})), f32({1, 1, 1, 1}, {2.5}));
  // A last dimension of 1 is for every key, or else for the first alone.
  expect_tensor(attend(tensor(DType::Bool, {1, 1}, {1})), f32({1, 1, 1, 1}, {3.75}));
  expect_tensor(attend(tensor(DType::Bool, {1, 1}, {1}), ", pad_mask=true"), f32({1, 1, 1, 1}, {1}));
  expect_tensor(attend(f32({3}, {0, 0, 0}), ", pad_mask=true"), f32({1, 1, 1, 1}, {7.0F / 3}));
}

TEST(Attention, RowsThatSeeNothingAreZeroButNaNIsKept) {
  const auto attend = [](double mask, double value) {
    return run("attention",
               {{"q", queries(1)},
                {"k", f32({1, 1, 2, 1}, {0, 0})},
                {"v", f32({1, 1, 2, 1}, {1, value})},
                {"mask", f32({2}, {mask, mask})}},
               "scale=1");
  };
  expect_tensor(attend(-kInf, 1), f32({1, 1, 1, 1}, {0}));
  expect_tensor(attend(-kInf, kNaN), f32({1, 1, 1, 1}, {kNaN}));  // 0 · NaN
  expect_tensor(attend(kNaN, 1), f32({1, 1, 1, 1}, {kNaN}));
}

TEST(Attention, RoundsEachStepOfSmallFloatsButNotTheSoftmaxOfAWiderDType) {
  // As for softmax: in bf16 the first key takes all.
  const auto attend = [](std::string_view attributes) {
    const Tensor one = tensor(DType::BF16, {1, 1, 1, 1}, {1}),
                 keys = tensor(DType::BF16, {1, 1, 3, 1}, {0, -6, -6}),
                 values = tensor(DType::BF16, {1, 1, 3, 1}, {1, 0, 0});
    return run("attention", {{"q", one}, {"k", keys}, {"v", values}}, attributes);
  };
  expect_tensor(attend("scale=1, softmax_dtype=bf16"), tensor(DType::BF16, {1, 1, 1, 1}, {1}));
  expect_tensor(attend("scale=1"), tensor(DType::BF16, {1, 1, 1, 1}, {0.99609375}));
}

TEST(Attention, OfNoKeysIsZeroAndOfNoQueriesEmpty) {
  const Tensor none = f32({1, 1, 0, 1}, {});
  expect_tensor(run("attention", {{"q", queries(2)}, {"k", none}, {"v", none}}, "scale=1"),
                f32({1, 1, 2, 1}, {0, 0}));
  expect_tensor(run("attention", {{"q", none}, {"k", k}, {"v", v}}, "scale=1"), none);
}

TEST(AttentionScores, ShowsEveryStage) {
  const auto scores = [](std::string_view stage) {
    return run("attention_scores",
               {{"q", queries(2)},
                {"k", f32({1, 1, 2, 1}, {6, 6})},
                {"mask", tensor(DType::Bool, {2, 2}, {1, 0, 0, 0})}},
               fmt::format("scale=2, softcap=1, stage=\"{}\"", stage));
  };
  expect_tensor(scores("raw"), f32({1, 1, 2, 2}, {12, 12, 12, 12}));
  expect_tensor(scores("capped"), f32({1, 1, 2, 2}, {1, 1, 1, 1}));
  expect_tensor(scores("biased"), f32({1, 1, 2, 2}, {1, -kInf, -kInf, -kInf}));
  expect_tensor(scores("probabilities"), f32({1, 1, 2, 2}, {1, 0, 0, 0}));
}

TEST(Attention, InfersSymbolicShapes) {
  EXPECT_EQ(
      output_type(text("attention", {{"q", "f32[b,12,n,64]"}, {"k", "f32[b,4,m,64]"}, {"v", "f32[b,4,m,32]"}},
                       "scale=1")),
      "f32[b,12,n,32]");
  EXPECT_EQ(output_type(text("attention_scores", {{"q", "f16[b,h,n,64]"}, {"k", "f16[b,h,m+n,64]"}},
                             "scale=1, stage=\"raw\"")),
            "f16[b,h,n,m+n]");
  EXPECT_EQ(output_type(text("attention", {{"q", "f32[*]"}, {"k", "f32[1,1,2,3]"}, {"v", "f32[1,1,2,3]"}},
                             "scale=1")),
            "f32[*]");
}

TEST(Attention, RefusesOperandsThatDoNotFit) {
  const auto refuse = [](std::vector<std::string> types, const std::string& message) {
    const std::vector<std::string> names = {"q", "k", "v", "mask", "offset", "lengths"};
    std::vector<std::pair<std::string, std::string>> operands;
    std::string shown;
    for (size_t i = 0; i < types.size(); ++i)
      if (!types[i].empty()) {
        operands.emplace_back(names[i], types[i]);
        shown += fmt::format("\n  {}  %{}: {}", names[i], names[i], types[i]);
      }
    try {
      parse_graph(text("attention", operands, "scale=1"));
      FAIL() << "it was taken";
    } catch (const UserError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.substr(what.find("attention")), "attention: " + message + shown);
    }
  };
  const std::string q = "f32[2,6,3,8]", keys = "f32[2,3,5,8]";
  refuse({"f32[2,3,8]", keys, keys}, "q must have rank 4: batch, heads, sequence, size");
  refuse({q, "f32[2,4,5,8]", "f32[2,4,5,8]"}, "6 query heads cannot share 4 key heads evenly");
  refuse({q, "f32[2,3,5,7]", keys}, "q and k differ in their sizes");
  refuse({q, keys, "f32[2,3,4,8]"}, "k and v differ in the number of keys");
  refuse({q, keys, keys, "bool[3,4]"}, "mask does not broadcast to the scores [2,6,3,5]");
  refuse({q, keys, keys, "f16[3,5]"}, "mask must be bool or have the dtype of q");
  refuse({q, keys, keys, "", "i64[3]"}, "offset must be a number per batch");
  refuse({q, keys, keys, "", "", "i64[]"}, "lengths must be a number per batch");
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[1,1,1,1]) { %y = attention(%x, %x, %x, scale=-1) return %y }"); },
      "line 1, column 32: attention: scale is -1, but its root is needed");
}

TEST(Attention, ChecksShapesAgainWhenItRuns) {
  const auto attend = [](const Tensor& q, const Tensor& keys, const Tensor& values) {
    return run_text(
        "graph(%q: f32[*], %k: f32[*], %v: f32[*]) { %y = attention(%q, %k, %v, scale=1) return %y }",
        {q, keys, values});
  };
  expect_error<UserError>([&] { attend(v, f32({1}, {1}), v); },
                          "node %y: attention: q and k must have rank 4, not 4 and 1");
  expect_error<UserError>(
      [&] {
        attend(f32({1, 3, 1, 1}, {1, 1, 1}), f32({1, 2, 1, 1}, {1, 1}), v);
      },
      "node %y: attention: 3 query heads cannot share 2 key heads evenly\n"
      "  q  %q: f32[*]\n  k  %k: f32[*]\n  v  %v: f32[*]");
  expect_error<UserError>([&] { attend(v, k, queries(3)); },
                          "node %y: attention: k [1,1,4,1] and v [1,1,3,1] differ in batch, heads or keys");
}

// --- linear attention ---

Data run_linear(const std::vector<Named>& operands) {
  std::string inputs, arguments;
  Data data;
  for (const Named& operand : operands) {
    inputs += fmt::format("{}%{}: {}", inputs.empty() ? "" : ", ", operand.name, type_of(operand.tensor));
    arguments += fmt::format("{}=%{}, ", operand.name, operand.name);
    data.emplace_back(operand.tensor);
  }
  return run_text(
      fmt::format("graph({}) {{ %y, %s = linear_attention({}scale=2) return %y, %s }}", inputs, arguments),
      data);
}

TEST(LinearAttention, FollowsEachRule) {
  const Tensor one = f32({1, 1, 2, 1}, {1, 1}), values = f32({1, 1, 2, 1}, {3, 5});
  const Tensor decay = f32({1, 1, 2, 1}, {0, std::log(0.5)}), beta = f32({1, 1, 2, 1}, {1, 0.5});
  const std::vector<Named> qkv = {{"q", one}, {"k", one}, {"v", values}};
  const auto expect = [&](std::vector<Named> more, const std::vector<double>& y, double state) {
    std::vector<Named> operands = qkv;
    operands.insert(operands.end(), more.begin(), more.end());
    const Data got = run_linear(operands);
    expect_near(got[0], f32({1, 1, 2, 1}, y), 1e-6);
    expect_near(got[1], f32({1, 1, 1, 1}, {state}), 1e-6);
  };
  expect({}, {6, 16}, 8);
  expect({{"state", f32({1, 1, 1, 1}, {1})}}, {8, 18}, 9);
  expect({{"decay", decay}}, {6, 13}, 6.5);
  expect({{"beta", beta}}, {6, 8}, 4);                         // 3 + 0.5 · (5 - 3)
  expect({{"decay", decay}, {"beta", beta}}, {6, 6.5}, 3.25);  // 1.5 + 0.5 · (5 - 1.5)
}

TEST(LinearAttention, KeepsTheStateOverNoSteps) {
  const Tensor none = f32({1, 1, 0, 2}, {});
  const Tensor state = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  const Data got = run_linear({{"q", none}, {"k", none}, {"v", none}, {"state", state}});
  expect_tensor(got[0], none);
  expect_tensor(got[1], state);
}

TEST(LinearAttention, RefusesAStateThatDoesNotFit) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%q: f32[1,2,n,4], %k: f32[1,1,n,4], %v: f32[1,1,n,3], %s: f32[1,2,4,3]) { %y, %t = "
            "linear_attention(%q, %k, %v, %s, scale=1) return %y }");
      },
      "line 1, column 90: linear_attention: state must have the shape [1,1,4,3]\n  q  %q: f32[1,2,n,4]\n  k  "
      "%k: "
      "f32[1,1,n,4]\n  v  %v: f32[1,1,n,3]\n  state  %s: f32[1,2,4,3]");
}

// --- rotary ---

TEST(Rotary, TurnsPairsByTheAnglesOfTheirPosition) {
  // A quarter turn at the second of two positions: (a, b) becomes (-b, a).
  const std::vector<Named> operands = {{"x", f32({1, 1, 2, 5}, {1, 2, 3, 4, 5, 1, 2, 3, 4, 5})},
                                       {"cos", f32({1, 2, 2}, {1, 1, 0, 0})},
                                       {"sin", f32({1, 2, 2}, {0, 0, 1, 1})}};
  expect_tensor(run("rotary", operands, "interleaved=false"),
                f32({1, 1, 2, 5}, {1, 2, 3, 4, 5, -3, -4, 1, 2, 5}));
  expect_tensor(run("rotary", operands, "interleaved=true"),
                f32({1, 1, 2, 5}, {1, 2, 3, 4, 5, -2, 1, -4, 3, 5}));
}

TEST(Rotary, InfersAndRefuses) {
  EXPECT_EQ(
      output_type(text("rotary", {{"x", "f16[b,8,n,64]"}, {"cos", "f16[1,n,32]"}, {"sin", "f16[1,n,32]"}},
                       "interleaved=false")),
      "f16[b,8,n,64]");
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[1,1,2,4], %c: f32[1,2,3]) { %y = rotary(%x, %c, %c) return %y }"); },
      "line 1, column 48: rotary: 3 pairs do not fit into the 4 numbers of each x\n  x  %x: f32[1,1,2,4]\n  "
      "cos  "
      "%c: f32[1,2,3]\n  sin  %c: f32[1,2,3]");
  const Tensor wide = f32({1, 1, 3}, {1, 1, 1});
  expect_error<UserError>(
      [&] {
        run_text("graph(%x: f32[*], %c: f32[*]) { %y = rotary(%x, %c, %c) return %y }", {queries(1), wide});
      },
      "node %y: rotary: 3 pairs do not fit into the 1 numbers of each x");
}

}  // namespace
}  // namespace tenon
