#include "ops/slice.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

std::string slice_text(std::string_view type, int64_t start, int64_t end, int64_t step) {
  return fmt::format(R"(graph(%x: {}) {{
      %s = constant(value=i64[1] {{{}}})
      %e = constant(value=i64[1] {{{}}})
      %t = constant(value=i64[1] {{{}}})
      %y = slice(%x, %s, %e, %t, axes=[0])
      return %y
    }})",
                     type, start, end, step);
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

TEST(Slice, ClampsWhatLiesOutside) {
  const auto slice = [](int64_t start, int64_t end, int64_t step) {
    return run_text(slice_text("f32[5]", start, end, step), {f32({5}, {0, 1, 2, 3, 4})})[0];
  };
  expect_tensor(slice(1, 3, 1), f32({2}, {1, 2}));
  expect_tensor(slice(-2, kMost, 1), f32({2}, {3, 4}));
  expect_tensor(slice(-9, -3, 1), f32({2}, {0, 1}));
  expect_tensor(slice(0, 9, 2), f32({3}, {0, 2, 4}));
  expect_tensor(slice(3, 1, 1), f32({0}, {}));
  expect_tensor(slice(7, 9, 1), f32({0}, {}));
  expect_tensor(slice(kMost, kLeast, -1), f32({5}, {4, 3, 2, 1, 0}));
  expect_tensor(slice(-1, 0, -2), f32({2}, {4, 2}));
  expect_tensor(slice(kLeast, kLeast, -1), f32({1}, {0}));  // the start moves to the nearest element
  expect_tensor(slice(4, kLeast, kLeast), f32({1}, {4}));
  expect_tensor(slice(0, kMost, kMost), f32({1}, {0}));
}

TEST(Slice, OfNothingIsNothing) {
  for (const int64_t step : {1, -1})
    expect_tensor(run_text(slice_text("f32[n]", -1, step > 0 ? kMost : kLeast, step), {f32({0}, {})})[0],
                  f32({0}, {}));
}

TEST(Slice, InfersSymbolicSizes) {
  const auto size = [](int64_t start, int64_t end, int64_t step, std::string_view type = "f32[n]") {
    return output_type(slice_text(type, start, end, step));
  };
  EXPECT_EQ(size(0, kMost, 1), "f32[n]");
  EXPECT_EQ(size(0, std::numeric_limits<int32_t>::max(), 1), "f32[n]");
  EXPECT_EQ(size(kLeast, kMost, 1), "f32[n]");
  EXPECT_EQ(size(1, kMost, 1), "f32[max(n-1,0)]");
  EXPECT_EQ(size(1, kMost, 1, "f32[n+1]"), "f32[n]");
  EXPECT_EQ(size(0, -1, 1), "f32[max(n-1,0)]");
  EXPECT_EQ(size(-1, kMost, 1), "f32[min(n,1)]");
  EXPECT_EQ(size(-1, kMost, 1, "f32[n+1]"), "f32[1]");
  EXPECT_EQ(size(0, 4, 1), "f32[min(n,4)]");
  EXPECT_EQ(size(0, 4, 1, "f32[n+4]"), "f32[4]");
  EXPECT_EQ(size(0, kMost, 2), "f32[floor((n+1)/2)]");
  EXPECT_EQ(size(-1, kLeast, -1), "f32[n]");
  EXPECT_EQ(size(kMost, kLeast, -1), "f32[n]");
  EXPECT_EQ(size(-2, kLeast, -1), "f32[d0]");
}

// What is inferred is what comes out, for every small size.
TEST(Slice, InfersTheSizesThatComeOut) {
  for (const int64_t step : {1, 2, 3, -1, -2})
    for (const int64_t start : {kLeast, int64_t{-3}, int64_t{-1}, int64_t{0}, int64_t{2}, kMost})
      for (const int64_t end : {kLeast, int64_t{-2}, int64_t{-1}, int64_t{0}, int64_t{3}, kMost})
        for (const int64_t n : {0, 1, 2, 3, 4, 5}) {
          const auto graph = parse_graph(slice_text("f32[n]", start, end, step));
          const Tensor x = f32({n}, std::vector<double>(static_cast<size_t>(n)));
          EXPECT_NO_THROW(evaluate(*graph, {x})) << start << ':' << end << ':' << step << " of " << n;
        }
}

TEST(Slice, FollowsBoundsThatTheModelComputes) {
  const auto size = [](std::string_view start, std::string_view end) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n], %cache: f32[n+m], %other: f32[k]) {{
        %0 = constant(value=i64[1] {{0}})
        %1 = constant(value=i64[1] {{1}})
        %n = shape(%x)
        %all = shape(%cache)
        %less = sub(%all, %1)
        %k = shape(%other)
        %y = slice(%cache, {}, {}, axes=[0])
        return %y
      }})",
                                   start, end));
  };
  EXPECT_EQ(size("%0", "%n"), "f32[n]");
  EXPECT_EQ(size("%n", "%all"), "f32[m]");
  EXPECT_EQ(size("%0", "%less"), "f32[max(m+n-1,0)]");
  EXPECT_EQ(size("%less", "%all"), "f32[min(m+n,1)]");
  EXPECT_EQ(size("%0", "%k"), "f32[min(k,m+n)]");
}

TEST(Slice, EndsBackwardsWhereTheModelSays) {
  // Up to n-2, which in a single element is -1: the place of that element, so that none is taken.
  const std::string text = R"(
    graph(%x: f32[n]) {
      %n = shape(%x)
      %two = constant(value=i64[1] {2})
      %end = sub(%n, %two)
      %back = constant(value=i64[1] {-1})
      %y = slice(%x, %back, %end, %back, axes=[0])
      return %y
    })";
  EXPECT_EQ(output_type(text), "f32[d0]");
  expect_tensor(run_text(text, {f32({1}, {1})})[0], f32({0}, {}));
  expect_tensor(run_text(text, {f32({2}, {1, 2})})[0], f32({1}, {2}));
}

TEST(Slice, TakesAxesThatTheModelComputes) {
  const std::string text = R"(
    graph(%x: f32[2,3], %s: i64[1], %e: i64[1], %a: i64[1]) {
      %y = slice(%x, %s, %e, axes=%a)
      return %y
    })";
  EXPECT_EQ(output_type(text), "f32[d0,d1]");
  expect_tensor(
      run_text(text, {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({1}, {1}), i64({1}, {3}), i64({1}, {-1})})[0],
      f32({2, 2}, {2, 3, 5, 6}));
}

TEST(Slice, MovesStringsAndSmallTypes) {
  expect_tensor(run_text(slice_text("str[3]", -1, kLeast, -2), {Tensor::strings({"a", "b", "c"}, {3})})[0],
                Tensor::strings({"c", "a"}, {2}));
  expect_tensor(run_text(slice_text("u4[3]", 1, 3, 1), {tensor(DType::U4, {3}, {1, 2, 3})})[0],
                tensor(DType::U4, {2}, {2, 3}));
}

// Such tensors are valid, although their strides overflow.
TEST(Slice, OfAHugeTensorWithoutElements) {
  const Tensor x = f32({int64_t{1} << 62, 0, int64_t{1} << 62, int64_t{1} << 62}, {});
  expect_tensor(run_text(slice_text(to_string(type_of(x)), 5, kMost, 7), {x})[0],
                f32({(((int64_t{1} << 62) - 6) / 7) + 1, 0, int64_t{1} << 62, int64_t{1} << 62}, {}));
  const Data parts = run_text(fmt::format(R"(graph(%x: {}) {{
      %s = constant(value=i64[2] {{7,{}}})
      %a, %b = split(%x, %s, axis=2)
      return %b
    }})",
                                          type_of(x), (int64_t{1} << 62) - 7),
                              {x});
  EXPECT_EQ(parts[0].tensor().extent(2), (int64_t{1} << 62) - 7);
}

TEST(Slice, RefusesWhatMakesNoSense) {
  const auto refuse = [](std::string_view arguments, const std::string& message) {
    expect_error<UserError>(
        [&] {
          parse_graph(fmt::format(R"(graph(%x: f32[4,4]) {{ %z = constant(value=i64[1] {{0}})
%y = slice({}) return %y }})",
                                  arguments));
        },
        "line 2, column 6: slice: " + message);
  };
  refuse("%x, %z, %z, %z, axes=[0]",
         "steps[0] is 0\n  x  %x: f32[4,4]\n  starts  %z: i64[1]\n  ends  %z: i64[1]\n  steps  %z: i64[1]");
  refuse("%x, %z, %z, axes=[0, 1]",
         "starts must be a vector of 2 numbers\n  x  %x: f32[4,4]\n  starts  %z: i64[1]\n  ends  %z: i64[1]");
  refuse("%x, %z, %z, axes=[2]", "axis 2 is out of range for a tensor of rank 2");
  refuse("%x, %z, %z, axes=[1, -1]", "axis 1 is named twice");
}

TEST(SizeAlong, RefusesAnAxisThatIsNotThere) {
  const auto graph = parse_graph("graph(%x: f32[2,3]) { return %x }");
  expect_error<UserError>([&] { size_along(graph->input(0), 2); },
                          "shape: axis 2 is out of range for a tensor of rank 2");
}

TEST(Concat, JoinsAlongAnyAxis) {
  const Tensor a = f32({2, 1}, {1, 2}), b = f32({2, 2}, {3, 4, 5, 6});
  expect_tensor(
      run_text("graph(%a: f32[2,1], %b: f32[2,2]) { %y = concat([%a, %b], axis=-1) return %y }", {a, b})[0],
      f32({2, 3}, {1, 3, 4, 2, 5, 6}));
  expect_tensor(run_text("graph(%a: f32[0,2], %b: f32[2,2]) { %y = concat([%a, %b], axis=0) return %y }",
                         {f32({0, 2}, {}), b})[0],
                b);
}

TEST(Concat, InfersWhatOnePartTells) {
  const auto type = [](std::string_view a, std::string_view b) {
    return output_type(
        fmt::format("graph(%a: f32{}, %b: f32{}) {{ %y = concat([%a, %b], axis=1) return %y }}", a, b));
  };
  EXPECT_EQ(type("[n,past]", "[4,seq]"), "f32[4,past+seq]");
  EXPECT_EQ(type("[n,2]", "[*]"), "f32[n,d0]");
  EXPECT_EQ(type("[*]", "[*]"), "f32[*]");
}

TEST(Concat, RefusesShapesThatDiffer) {
  const auto refuse = [](std::string_view b, const std::string& message) {
    expect_error<UserError>(
        [&] {
          parse_graph(
              fmt::format("graph(%a: f32[2,3], %b: f32{}) {{ %y = concat([%a, %b], axis=0) return %y }}", b));
        },
        fmt::format("line 1, column {}: concat: {}\n  x  %a: f32[2,3]\n  x  %b: f32{}", 37 + b.size(),
                    message, b));
  };
  refuse("[2,4]", "the sizes of dimension 1 differ");
  refuse("[2]", "the ranks differ");
  expect_error<UserError>(
      [] {
        run_text("graph(%a: f32[2,n], %b: f32[2,m]) { %y = concat([%a, %b], axis=0) return %y }",
                 {f32({2, 1}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})});
      },
      "node %y: concat: f32[2,1] and f32[2,2] cannot be joined along axis 0");
}

TEST(Split, CutsIntoTheSizesGiven) {
  const Data parts = run_text(R"(
    graph(%x: f32[n,4]) {
      %sizes = constant(value=i64[3] {1,0,3})
      %a, %b, %c = split(%x, %sizes, axis=1)
      return %a, %b, %c
    })",
                              {f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  expect_tensor(parts[0], f32({2, 1}, {1, 5}));
  expect_tensor(parts[1], f32({2, 0}, {}));
  expect_tensor(parts[2], f32({2, 3}, {2, 3, 4, 6, 7, 8}));
}

TEST(Split, RefusesSizesThatDoNotAddUp) {
  expect_error<UserError>(
      [] {
        parse_graph(R"(graph(%x: f32[4]) { %s = constant(value=i64[2] {1,2})
%a, %b = split(%x, %s, axis=0) return %a, %b })");
      },
      "line 2, column 10: split: dimension 0 is 4, but the parts add up to 3\n  x  %x: f32[4]\n  sizes  %s: "
      "i64[2]");
  const std::string text = "graph(%x: f32[4], %s: i64[2]) { %a, %b = split(%x, %s, axis=0) return %a, %b }";
  for (const auto& sizes : {i64({2}, {1, 2}), i64({2}, {-1, 5}), i64({2}, {4, 4})})
    expect_error<UserError>(
        [&] {
          run_text(text, {f32({4}, {1, 2, 3, 4}), sizes});
        },
        fmt::format("node %a: split: the parts [{}] do not add up to dimension 0 of [4]",
                    fmt::join(as_ints(sizes), ",")));
}

// The shape of a linear layer's result cut into heads, as exporters write it.
TEST(ShapeArithmetic, CutsALayerIntoHeads) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[batch,seq,768]) {
      %0 = constant(value=i64[1] {0})
      %1 = constant(value=i64[1] {1})
      %2 = constant(value=i64[1] {2})
      %3 = constant(value=i64[1] {3})
      %shape = shape(%x)
      %b = slice(%shape, %0, %1, axes=[0])
      %scalar = squeeze(%b, axes=[0])
      %batch = unsqueeze(%scalar, axes=[0])
      %seq = slice(%shape, %1, %2, axes=[0])
      %heads = constant(value=i64[1] {12})
      %width = slice(%shape, %2, %3, axes=[0])
      %each = div(%width, %heads)
      %target = concat([%batch, %seq, %heads, %each], axis=0)
      %y = reshape(%x, %target)
      return %y
    })"),
            "f32[batch,seq,12,64]");
}

// Pads as PyTorch's exporter turns them round: from the last axis, before and after, to all before, then all
// after.
TEST(ShapeArithmetic, TurnsPadsRound) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,m,k]) {
      %last = constant(value=i64[1] {-1})
      %least = constant(value=i64[1] {-9223372036854775807})
      %minus = constant(value=i64[1] {-1})
      %0 = constant(value=i64[1] {0})
      %1 = constant(value=i64[1] {1})
      %pairs = constant(value=i64[2] {-1,2})
      %flat = constant(value=i64[1] {-1})
      %rest = constant(value=i64[3] {0,0,0})
      %shape = shape(%x)
      %n = slice(%shape, %0, %1, axes=[0])
      %pads = concat([%0, %n, %1, %rest], axis=0)
      %table = reshape(%pads, %pairs)
      %reversed = slice(%table, %last, %least, %minus, axes=[0])
      %turned = transpose(%reversed, permutation=[1, 0])
      %vector = reshape(%turned, %flat)
      %y = pad(%x, %vector, axes=[0, 1, 2])
      return %y
    })"),
            "f32[n,m+1,k+n]");
}

TEST(ShapeArithmetic, AnUnknownElementDoesNotHideTheOthers) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,768], %length: i64[1]) {
      %sizes = constant(value=i64[2] {12,64})
      %target = concat([%length, %sizes], axis=0)
      %y = reshape(%x, %target)
      return %y
    })"),
            "f32[n,12,64]");
}

}  // namespace
}  // namespace tenon
