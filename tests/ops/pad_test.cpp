#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

Data pad(const Tensor& x, const std::vector<int64_t>& pads, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}, %p: i64[k]) {{ %y = pad(%x, %p, {}) return %y }}", type_of(x), attributes),
      {x, Tensor::of(pads)});
}

TEST(Pad, AddsWhatTheModeSays) {
  const Tensor x = f32({3}, {1, 2, 3});
  expect_tensor(pad(x, {1, 2}, "axes=[0]")[0], f32({6}, {0, 1, 2, 3, 0, 0}));
  expect_tensor(pad(x, {1, 2}, "axes=[0], mode=\"edge\"")[0], f32({6}, {1, 1, 2, 3, 3, 3}));
  expect_tensor(pad(x, {1, 2}, "axes=[0], mode=\"reflect\"")[0], f32({6}, {2, 1, 2, 3, 2, 1}));
  expect_tensor(pad(x, {1, 2}, "axes=[0], mode=\"wrap\"")[0], f32({6}, {3, 1, 2, 3, 1, 2}));
}

TEST(Pad, ReflectsAndWrapsAsOftenAsItTakes) {
  expect_tensor(pad(f32({2}, {1, 2}), {3, 3}, "axes=[0], mode=\"reflect\"")[0],
                f32({8}, {2, 1, 2, 1, 2, 1, 2, 1}));
  expect_tensor(pad(f32({2}, {1, 2}), {3, 3}, "axes=[0], mode=\"wrap\"")[0],
                f32({8}, {2, 1, 2, 1, 2, 1, 2, 1}));
  expect_tensor(pad(f32({1}, {7}), {2, 1}, "axes=[0], mode=\"reflect\"")[0], f32({4}, {7, 7, 7, 7}));
}

TEST(Pad, CutsFirstAndAddsFromWhatIsLeft) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_tensor(pad(x, {-1, -2}, "axes=[0]")[0], f32({1}, {2}));
  expect_tensor(pad(x, {-1, 2}, "axes=[0], mode=\"wrap\"")[0], f32({5}, {2, 3, 4, 2, 3}));
  expect_tensor(pad(x, {2, -1}, "axes=[0], mode=\"edge\"")[0], f32({5}, {1, 1, 1, 2, 3}));
  expect_tensor(pad(x, {-4, 0}, "axes=[0]")[0], f32({0}, {}));
}

TEST(Pad, TakesAxesInAnyOrder) {
  expect_tensor(pad(f32({1, 1}, {5}), {1, 0, 0, 2}, "axes=[-1, 0]")[0], f32({3, 2}, {0, 5, 0, 0, 0, 0}));
  expect_tensor(pad(f32({0, 2}, {}), {1, 1}, "axes=[0]")[0], f32({2, 2}, {0, 0, 0, 0}));
  expect_tensor(pad(f32({0, 2}, {}), {int64_t{1} << 60, 0}, "axes=[1]")[0],
                f32({0, (int64_t{1} << 60) + 2}, {}));
}

TEST(Pad, AddsAnyValue) {
  expect_tensor(run_text(R"(graph(%x: str[1], %v: str[]) { %p = constant(value=i64[2] {0,1})
      %y = pad(%x, %p, %v, axes=[0]) return %y })",
                         {Tensor::strings({"a"}, {1}), Tensor::strings({"b"}, {})})[0],
                Tensor::strings({"a", "b"}, {2}));
}

TEST(Pad, InfersSymbolicSizes) {
  EXPECT_EQ(output_type(R"(graph(%x: f32[n,m]) { %p = constant(value=i64[2] {1,-3})
      %y = pad(%x, %p, axes=[1]) return %y })"),
            "f32[n,m-2]");
  EXPECT_EQ(output_type("graph(%x: f32[n,m], %p: i64[2]) { %y = pad(%x, %p, axes=[1]) return %y }"),
            "f32[n,d0]");
  EXPECT_EQ(
      output_type("graph(%x: f32[n,m], %p: i64[2], %a: i64[1]) { %y = pad(%x, %p, axes=%a) return %y }"),
      "f32[d0,d1]");
  // To a multiple of 8.
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n]) {
      %0 = constant(value=i64[1] {0})
      %7 = constant(value=i64[1] {7})
      %8 = constant(value=i64[1] {8})
      %size = shape(%x)
      %more = add(%size, %7)
      %blocks = div(%more, %8)
      %wanted = mul(%blocks, %8)
      %missing = sub(%wanted, %size)
      %pads = concat([%0, %missing], axis=0)
      %y = pad(%x, %pads, axes=[0])
      return %y
    })"),
            "f32[8*floor((n+7)/8)]");
}

TEST(Pad, RefusesWhatMakesNoSense) {
  const auto refuse = [](const std::vector<int64_t>& pads, std::string_view attributes,
                         const std::string& message) {
    expect_error<UserError>([&] { pad(f32({2, 0}, {}), pads, attributes); }, "node %y: pad: " + message);
  };
  refuse({-2, -1}, "axes=[0]", "pads -2 and -1 cut more off dimension 0 than there is, 2");
  refuse({kLeast, 0}, "axes=[0]",
         "pads -9223372036854775808 and 0 cut more off dimension 0 than there is, 2");
  refuse({kMost, 0}, "axes=[0]", "pads of 9223372036854775807 overflow the size of a dimension");
  refuse({0, 1}, "axes=[1], mode=\"edge\"", "dimension 1 has no elements to take for mode edge");
  refuse({1, 1, 1}, "axes=[0]", "pads must be a vector of 2 numbers, but is i64[3]");
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[2], %p: i64[2]) { %y = pad(%x, %p, axes=[0], mode=\"mirror\") return %y }");
      },
      "line 1, column 38: pad: mode is \"mirror\", but must be constant, edge, reflect or wrap");
}

TEST(Tile, RepeatsAlongEachAxis) {
  const auto tile = [](const Tensor& x, const std::vector<int64_t>& repeats) {
    return run_text(fmt::format("graph(%x: {}, %r: i64[k]) {{ %y = tile(%x, %r) return %y }}", type_of(x)),
                    {x, Tensor::of(repeats)})[0];
  };
  expect_tensor(tile(f32({2, 1}, {1, 2}), {1, 3}), f32({2, 3}, {1, 1, 1, 2, 2, 2}));
  expect_tensor(tile(f32({1, 2}, {1, 2}), {2, 2}), f32({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}));
  expect_tensor(tile(f32({2}, {1, 2}), {0}), f32({0}, {}));
  expect_tensor(tile(f32({0}, {}), {kMost}), f32({0}, {}));
  expect_tensor(tile(f32({}, {1}), {}), f32({}, {1}));
  expect_error<UserError>(
      [&] {
        tile(f32({2}, {1, 2}), {1, 1});
      },
      "node %y: tile: repeats must be a vector of 1 numbers, but is i64[2]");
  expect_error<UserError>(
      [&] {
        tile(f32({2}, {1, 2}), {-1});
      },
      "node %y: tile: repeats[0] is -1, but must be at least 0");
}

TEST(Tile, InfersSymbolicSizes) {
  EXPECT_EQ(output_type(R"(graph(%x: f32[n,4]) { %r = shape(%x) %y = tile(%x, %r) return %y })"),
            "f32[n*n,16]");
  EXPECT_EQ(output_type("graph(%x: f32[*], %r: i64[2]) { %y = tile(%x, %r) return %y }"), "f32[d0,d1]");
}

TEST(ReverseSequence, ReversesTheBeginningOfEachSequence) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string text =
      "graph(%x: f32[b,t], %l: i64[b]) { %y = reverse_sequence(%x, %l, time_axis=-1, batch_axis=0) return %y "
      "}";
  expect_tensor(run_text(text, {x, i64({2}, {2, 3})})[0], f32({2, 3}, {2, 1, 3, 6, 5, 4}));
  expect_tensor(run_text(text, {x, i64({2}, {0, 1})})[0], x);
  expect_error<UserError>(
      [&] {
        run_text(text, {x, i64({2}, {4, 1})});
      },
      "node %y: reverse_sequence: a length is 4, but a sequence has 3 elements");
}

}  // namespace
}  // namespace tenon
