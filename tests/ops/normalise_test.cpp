#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Normalise, BatchNormTakesStatisticsOfItsOwnDType) {
  expect_tensor(run_text(R"(
    graph(%x: f16[2,2], %s: f32[2], %b: f32[2], %m: f64[2], %v: f64[2]) {
      %y = batch_norm(%x, %s, %b, %m, %v, epsilon=0)
      return %y
    })",
                         {tensor(DType::F16, {2, 2}, {1, 2, 3, 4}), f32({2}, {1, 2}), f32({2}, {0, 1}),
                          tensor(DType::F64, {2}, {1, 2}), tensor(DType::F64, {2}, {4, 1})})[0],
                tensor(DType::F16, {2, 2}, {0, 1, 1, 5}));
}

TEST(Normalise, BatchNormTakesAVectorForABatchOfOneChannel) {
  expect_tensor(run_text(R"(
    graph(%x: f32[n], %s: f32[1]) {
      %y = batch_norm(%x, %s, %s, %s, %s, epsilon=3)
      return %y
    })",
                         {f32({2}, {1, 5}), f32({1}, {1})})[0],
                f32({2}, {1, 3}));
}

TEST(Normalise, LayerNormReachesFromItsAxisToTheLast) {
  const auto apply = [](std::string_view attributes) {
    return run_text(
        fmt::format("graph(%x: f32[2,1,2]) {{ %y = layer_norm(%x, {}, epsilon=0) return %y }}", attributes),
        {f32({2, 1, 2}, {1, 3, 5, 9})});
  };
  expect_tensor(apply("axis=-1")[0], f32({2, 1, 2}, {-1, 1, -1, 1}));
  expect_tensor(apply("axis=1")[0], f32({2, 1, 2}, {-1, 1, -1, 1}));
  const double deviation = std::sqrt(8.75);
  expect_near(apply("axis=0")[0],
              f32({2, 1, 2}, {-3.5 / deviation, -1.5 / deviation, 0.5 / deviation, 4.5 / deviation}), 1e-6);
}

TEST(Normalise, LayerNormIsExactFarFromZero) {
  // mean(x²) - mean(x)² would cancel to nothing here.
  const double base = 1 << 23;
  expect_tensor(run_text("graph(%x: f32[2]) { %y = layer_norm(%x, epsilon=0) return %y }",
                         {f32({2}, {base, base + 2})})[0],
                f32({2}, {-1, 1}));
}

TEST(Normalise, ScaleAndBiasBroadcastToX) {
  expect_tensor(run_text(R"(
    graph(%x: f32[2,2], %s: f32[2,1], %b: f32[]) {
      %y = layer_norm(%x, %s, %b, epsilon=0)
      return %y
    })",
                         {f32({2, 2}, {1, 3, 3, 1}), f32({2, 1}, {1, 2}), f32({}, {1})})[0],
                f32({2, 2}, {0, 2, 3, -1}));
}

TEST(Normalise, RmsNormKeepsTheMean) {
  expect_tensor(run_text("graph(%x: f32[1,4], %s: f32[4]) { %y = rms_norm(%x, %s, epsilon=1.5) return %y }",
                         {f32({1, 4}, {3, -1, 0, 0}), f32({4}, {2, 4, 1, 1})})[0],
                f32({1, 4}, {3, -2, 0, 0}));
}

TEST(Normalise, GroupsAreOfNeighbouringChannels) {
  const Tensor x = f32({1, 4}, {1, 3, 10, 30}), one = f32({4}, {1, 1, 1, 1}), bias = f32({4}, {0, 0, 0, 5});
  const auto apply = [&](std::string_view op) {
    return run_text(fmt::format(R"(
      graph(%x: f32[1,4], %s: f32[4], %b: f32[4]) {{
        %y = {}, epsilon=0)
        return %y
      }})",
                                op),
                    {x, one, bias});
  };
  expect_tensor(apply("group_norm(%x, %s, %b, groups=2")[0], f32({1, 4}, {-1, 1, -1, 6}));
  // One element by itself is its own mean, and 0 / 0 is NaN.
  const double nan = std::nan("");
  expect_tensor(apply("instance_norm(%x, %s, %b")[0], f32({1, 4}, {nan, nan, nan, nan}));
}

TEST(Normalise, OfNothingIsNothing) {
  for (const char* op : {"batch_norm(%x, %p, %p, %p, %p)", "instance_norm(%x, %p, %p)",
                         "group_norm(%x, %p, %p, groups=3)", "layer_norm(%x)", "rms_norm(%x, axis=0)"})
    expect_tensor(run_text(fmt::format("graph(%x: f32[2,3,0], %p: f32[3]) {{ %y = {} return %y }}", op),
                           {f32({2, 3, 0}, {}), f32({3}, {1, 1, 1})})[0],
                  f32({2, 3, 0}, {}));
}

TEST(Normalise, LocalResponseNormSumsOverNeighbouringChannels) {
  const auto apply = [](int64_t size) {
    return run_text(fmt::format(R"(
      graph(%x: f32[1,3,1]) {{
        %y = local_response_norm(%x, size={}, alpha={}, beta=1, bias=0)
        return %y
      }})",
                                size, size),
                    {f32({1, 3, 1}, {1, 2, 1})});
  };
  expect_near(apply(1)[0], f32({1, 3, 1}, {1, 0.5, 1}), 1e-6);
  expect_near(apply(2)[0], f32({1, 3, 1}, {0.2, 0.4, 1}), 1e-6);  // one more above than below
  expect_near(apply(3)[0], f32({1, 3, 1}, {0.2, 1 / 3.0, 0.2}), 1e-6);
  expect_near(apply(9)[0], f32({1, 3, 1}, {1 / 6.0, 1 / 3.0, 1 / 6.0}), 1e-6);
}

TEST(Normalise, InfersTheTypeOfX) {
  EXPECT_EQ(output_type("graph(%x: f16[n,c,h], %p: f16[c]) { %y = instance_norm(%x, %p, %p) return %y }"),
            "f16[n,c,h]");
  EXPECT_EQ(output_type("graph(%x: f32[*], %p: f32[4]) { %y = layer_norm(%x, %p) return %y }"), "f32[*]");
}

TEST(Normalise, RefusesWhatDoesNotFit) {
  const auto refuse = [](std::string_view x, std::string_view p, std::string_view op,
                         const std::string& message) {
    expect_error<UserError>(
        [&] { parse_graph(fmt::format("graph(%x: f32{}, %p: f32{})\n{{ %y = {} return %y }}", x, p, op)); },
        "line 2, column 8: " + message);
  };
  refuse("[n,4]", "[3]", "instance_norm(%x, %p, %p)",
         "instance_norm: scale must have one element for each channel of x: [4]\n"
         "  x  %x: f32[n,4]\n  scale  %p: f32[3]\n  bias  %p: f32[3]");
  refuse("[]", "[1]", "instance_norm(%x, %p, %p)",
         "instance_norm: x has no batch dimension\n  x  %x: f32[]\n  scale  %p: f32[1]\n  bias  %p: f32[1]");
  refuse("[n,4]", "[4]", "group_norm(%x, %p, %p, groups=3)",
         "group_norm: 4 channels do not divide into 3 groups");
  refuse("[n,c]", "[c]", "group_norm(%x, %p, %p, groups=0)",
         "group_norm: groups is 0, but must be at least 1");
  refuse("[n,4]", "[3]", "layer_norm(%x, %p)",
         "layer_norm: scale does not broadcast to x\n  x  %x: f32[n,4]\n  scale  %p: f32[3]");
  refuse("[1,4]", "[2,4]", "rms_norm(%x, %p)",
         "rms_norm: scale does not broadcast to x\n  x  %x: f32[1,4]\n  scale  %p: f32[2,4]");
  refuse("[4]", "[1,4]", "layer_norm(%x, %p)",
         "layer_norm: scale does not broadcast to x\n  x  %x: f32[4]\n  scale  %p: f32[1,4]");
  refuse("[2,4]", "[4]", "layer_norm(%x, %p, axis=2)",
         "layer_norm: axis 2 is out of range for a tensor of rank 2");
  refuse("[2,4]", "[4]", "local_response_norm(%x, size=0)",
         "local_response_norm: size is 0, but must be at least 1");
}

TEST(Normalise, RefusesAtRunTimeWhatOnlyRunningTells) {
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[n,c], %p: f32[m]) { %y = instance_norm(%x, %p, %p) return %y }",
                 {f32({1, 2}, {1, 2}), f32({3}, {1, 1, 1})});
      },
      "node %y: instance_norm: scale has 3 elements, but x is f32[1,2], with 2 channels");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[n,2], %p: f32[m,2]) { %y = rms_norm(%x, %p) return %y }",
                 {f32({1, 2}, {1, 2}), f32({2, 2}, {1, 1, 1, 1})});
      },
      "node %y: rms_norm: the shape [2,2] does not broadcast to [1,2]");
}

}  // namespace
}  // namespace tenon
