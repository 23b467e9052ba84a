#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

// x: [n] resized to `count` elements.
Data resize(const Tensor& x, int64_t count, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}, %s: i64[1]) {{ %y = resize(%x, sizes=%s, axes=[0]{}{}) return %y }}",
                  type_of(x), attributes.empty() ? "" : ", ", attributes),
      {x, i64({1}, {static_cast<double>(count)})});
}

Data scale(const Tensor& x, float factor, std::string_view attributes) {
  return run_text(
      fmt::format("graph(%x: {}, %s: f32[1]) {{ %y = resize(%x, scales=%s, axes=[0], {}) return %y }}",
                  type_of(x), attributes),
      {x, f32({1}, {factor})});
}

TEST(Resize, RoundsPositionsAsAsked) {
  const Tensor x = f32({2}, {1, 2});
  // Positions 0, 0.5, 1, 1.5.
  const auto nearest = [&](std::string_view round) {
    return resize(x, 4, fmt::format("positions=\"asymmetric\", round=\"{}\"", round))[0];
  };
  expect_tensor(nearest("half_down"), f32({4}, {1, 1, 2, 2}));
  expect_tensor(nearest("half_up"), f32({4}, {1, 2, 2, 2}));
  expect_tensor(nearest("down"), f32({4}, {1, 1, 2, 2}));
  expect_tensor(nearest("up"), f32({4}, {1, 2, 2, 2}));
}

TEST(Resize, PlacesElements) {
  const Tensor x = f32({4}, {0, 1, 2, 3});  // so that linear interpolation shows the position
  const auto linear = [&](int64_t count, std::string_view positions) {
    return resize(x, count, fmt::format("mode=\"linear\", positions=\"{}\"", positions))[0];
  };
  expect_tensor(linear(2, "half_pixel"), f32({2}, {0.5, 2.5}));
  expect_tensor(linear(1, "half_pixel"), f32({1}, {1.5}));
  expect_tensor(linear(1, "half_pixel_or_first"), f32({1}, {0}));
  expect_tensor(linear(2, "shifted"), f32({2}, {1, 3}));
  expect_tensor(linear(2, "asymmetric"), f32({2}, {0, 2}));
  expect_tensor(linear(2, "align_corners"), f32({2}, {0, 3}));
  expect_tensor(linear(1, "align_corners"), f32({1}, {0}));
  // 4 · 0.625 is 2.5, of which the middle two are kept.
  expect_near(scale(x, 0.625F, "mode=\"linear\", positions=\"half_pixel_symmetric\"")[0],
              f32({2}, {0.7, 2.3}), 1e-6);
  expect_near(scale(x, 0.625F, "mode=\"linear\", positions=\"half_pixel\"")[0], f32({2}, {0.3, 1.9}), 1e-6);
}

TEST(Resize, WidensTheFilterAgainstAliasing) {
  const Tensor x = f32({4}, {0, 0, 8, 0});
  expect_tensor(resize(x, 2, "mode=\"linear\"")[0], f32({2}, {0, 4}));
  // The triangle over 0.5 ± 2 weighs 1, 3, 3, 1 eighths; the border repeats.
  expect_tensor(resize(x, 2, "mode=\"linear\", antialias=true")[0], f32({2}, {1, 3}));
  expect_tensor(resize(f32({2}, {1, 3}), 4, "mode=\"linear\", antialias=true")[0],
                f32({4}, {1, 1.5, 2.5, 3}));
}

TEST(Resize, LeavesNeighboursOutsideOutWhenAsked) {
  const Tensor x = f32({2}, {1, 3});
  const Tensor all = resize(x, 4, "mode=\"cubic\"")[0].tensor(),
               inside = resize(x, 4, "mode=\"cubic\", exclude_outside=true")[0].tensor();
  EXPECT_NE(all.data<float>()[0], inside.data<float>()[0]);
  // At -0.25 the neighbours 0 and 1 weigh 0.87890625 and -0.10546875... of the four; alone they make up all.
  expect_near(resize(f32({2}, {5, 5}), 4, "mode=\"cubic\", exclude_outside=true")[0], f32({4}, {5, 5, 5, 5}),
              1e-6);
}

TEST(Resize, CropsARegion) {
  const std::string text =
      "graph(%x: f32[4], %s: i64[1], %r: f32[2]) { %y = resize(%x, sizes=%s, region=%r, axes=[0], "
      "mode=\"{}\", "
      "positions=\"crop\", outside_value=9) return %y }";
  const auto crop = [&](std::string_view mode, double start, double end, double count) {
    std::string filled = text;
    filled.replace(filled.find("{}"), 2, mode);
    return run_text(filled, {f32({4}, {0, 1, 2, 3}), i64({1}, {count}), f32({2}, {start, end})})[0];
  };
  expect_tensor(crop("linear", 0, 0.5, 3), f32({3}, {0, 0.75, 1.5}));
  expect_tensor(crop("linear", 0.5, 1.5, 3), f32({3}, {1.5, 3, 9}));
  expect_tensor(crop("linear", 0, 1, 1), f32({1}, {1.5}));
  expect_tensor(crop("nearest", -1, 1, 3), f32({3}, {9, 0, 3}));
  expect_tensor(crop("linear", std::nan(""), 1, 2), f32({2}, {9, 9}));
}

TEST(Resize, KeepsTheAspect) {
  const auto type = [](std::string_view aspect) {
    return output_type(
        fmt::format("graph(%x: f32[n,2,4]) {{ %s = constant(value=i64[2] {{7, 8}}) "
                    "%y = resize(%x, sizes=%s, axes=[1,2], aspect=\"{}\") return %y }}",
                    aspect));
  };
  EXPECT_EQ(type("stretch"), "f32[n,7,8]");
  EXPECT_EQ(type("not_larger"), "f32[n,4,8]");
  EXPECT_EQ(type("not_smaller"), "f32[n,7,14]");
}

TEST(Resize, TakesAxesInAnyOrder) {
  expect_tensor(run_text("graph(%x: f32[2,1]) { %s = constant(value=i64[2] {3, 2}) %y = resize(%x, sizes=%s, "
                         "axes=[-1,0]) return %y }",
                         {f32({2, 1}, {1, 2})})[0],
                f32({2, 3}, {1, 1, 1, 2, 2, 2}));
}

TEST(Resize, MovesAnyElementsAndBlendsNumbers) {
  expect_tensor(resize(Tensor::strings({"a", "b"}, {2}), 3, "")[0], Tensor::strings({"a", "a", "b"}, {3}));
  expect_tensor(resize(tensor(DType::U8, {2}, {0, 255}), 4, "mode=\"linear\"")[0],
                tensor(DType::U8, {4}, {0, 64, 191, 255}));
  // The cubic overshoots; what it says does not wrap around.
  expect_tensor(resize(tensor(DType::U8, {4}, {0, 0, 255, 255}), 8, "mode=\"cubic\"")[0],
                tensor(DType::U8, {8}, {0, 0, 0, 58, 197, 255, 255, 255}));
  const auto large = static_cast<double>((int64_t{1} << 62) + 1024);
  expect_tensor(resize(i64({1}, {large}), 2, "")[0], i64({2}, {large, large}));
}

TEST(Resize, InfersSymbolicShapes) {
  const auto type = [](std::string_view scales) {
    return output_type(
        fmt::format("graph(%x: f32[n,3,h,5]) {{ %s = constant(value=f32[4] {{{}}}) "
                    "%y = resize(%x, scales=%s, axes=[0,1,2,3]) return %y }}",
                    scales));
  };
  EXPECT_EQ(type("1, 1, 2, 2"), "f32[n,3,2*h,10]");
  EXPECT_EQ(type("1, 1, 0.5, 2.8"), "f32[n,3,floor(h/2),14]");
  EXPECT_EQ(type("1, 1, 0.3, 1"), "f32[n,3,d0,5]");
  EXPECT_EQ(output_type("graph(%x: f32[n,h], %s: i64[1]) { %y = resize(%x, sizes=%s, axes=[1]) return %y }"),
            "f32[n,d0]");
  EXPECT_EQ(output_type("graph(%x: f32[n,h], %like: f32[m,k]) { %s = shape(%like) %y = resize(%x, sizes=%s, "
                        "axes=[0,1]) return %y }"),
            "f32[m,k]");
}

TEST(Resize, OfNothing) {
  expect_tensor(resize(f32({0}, {}), 0, "mode=\"linear\"")[0], f32({0}, {}));
  expect_tensor(resize(f32({2}, {1, 2}), 0, "mode=\"linear\"")[0], f32({0}, {}));
  expect_error<UserError>([] { resize(f32({0}, {}), 2, ""); }, "node %y: resize: 0 elements cannot become 2");
}

TEST(Resize, RefusesWhatMeansNothing) {
  const auto refuse = [](std::string_view attributes, const std::string& message) {
    expect_error<UserError>(
        [&] {
          parse_graph(fmt::format(
              "graph(%x: f32[2], %s: i64[1]) {{ %y = resize(%x, sizes=%s, {}) return %y }}", attributes));
        },
        "line 1, column 38: resize: " + message);
  };
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[n]) { %s = constant(value=i64[1] {-3}) %y = resize(%x, sizes=%s, axes=[0]) return "
            "%y "
            "}");
      },
      "line 1, column 59: resize: sizes[0] is -3\n  x  %x: f32[n]\n  sizes  %s: i64[1]");
  refuse("axes=[1]", "axis 1 is out of range for a tensor of rank 1");
  refuse("axes=[0], mode=\"area\"", "mode is \"area\", but must be nearest, linear or cubic");
  refuse("axes=[0], positions=\"centre\"",
         "positions is \"centre\", but must be half_pixel, half_pixel_or_first, half_pixel_symmetric, "
         "shifted, asymmetric, align_corners or crop");
  expect_error<UserError>([] { parse_graph("graph(%x: f32[2]) { %y = resize(%x, axes=[0]) return %y }"); },
                          "line 1, column 26: resize: either scales or sizes must be given\n  x  %x: f32[2]");
  expect_error<UserError>(
      [] {
        scale(f32({2}, {1, 2}), -1, "mode=\"linear\"");
      },
      "node %y: resize: scale -1 is not above 0");
  expect_error<UserError>(
      [] {
        scale(f32({2}, {1, 2}), 1e30F, "mode=\"linear\"");
      },
      "node %y: resize: the result would have 2e+30 elements along a dimension");
}

}  // namespace
}  // namespace tenon
