#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

Data transform(const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = dft(%x, {}) return %y }}", type_of(x), attributes), {x});
}

TEST(Dft, OfAnImpulseIsFlat) {
  expect_near(transform(f32({3, 1}, {1, 0, 0}), "axis=0")[0], f32({3, 2}, {1, 0, 1, 0, 1, 0}), 0);
  expect_near(transform(f32({3, 1}, {1, 0, 0}), "axis=0, onesided=true")[0], f32({2, 2}, {1, 0, 1, 0}), 0);
}

TEST(Dft, TurnsClockwise) {
  // e^(2πi·j/4) has all of its weight at frequency 1.
  const Tensor wave = f32({1, 4, 2}, {1, 0, 0, 1, -1, 0, 0, -1});
  expect_near(transform(wave, "axis=1")[0], f32({1, 4, 2}, {0, 0, 4, 0, 0, 0, 0, 0}), 1e-12);
  expect_near(transform(wave, "axis=-2, inverse=true")[0], f32({1, 4, 2}, {0, 0, 0, 0, 0, 0, 1, 0}), 1e-12);
}

TEST(Dft, RunsAlongAnyAxisButTheLast) {
  const Tensor x = f32({2, 2, 1}, {1, 2, 3, 5});
  expect_near(transform(x, "axis=0")[0], f32({2, 2, 2}, {4, 0, 7, 0, -2, 0, -3, 0}), 1e-12);
  expect_near(transform(x, "axis=1")[0], f32({2, 2, 2}, {3, 0, -1, 0, 8, 0, -2, 0}), 1e-12);
  expect_error<UserError>([&] { transform(x, "axis=2"); },
                          "line 1, column 30: dft: axis 2 is the last, which holds the real and imaginary "
                          "parts");
}

TEST(Dft, IsItsFormulaForEveryLength) {
  for (int64_t n = 1; n <= 36; ++n) {
    std::vector<double> x, y;
    for (int64_t j = 0; j < 2 * n; ++j)
      x.push_back(std::sin(static_cast<double>(j * j)));
    for (int64_t k = 0; k < n; ++k) {
      double real = 0, imaginary = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double angle = -2 * std::acos(-1) * static_cast<double>(j * k) / static_cast<double>(n);
        const double a = x[static_cast<size_t>(2 * j)], b = x[static_cast<size_t>(2 * j + 1)];
        real += a * std::cos(angle) - b * std::sin(angle);
        imaginary += a * std::sin(angle) + b * std::cos(angle);
      }
      y.insert(y.end(), {real, imaginary});
    }
    expect_near(transform(tensor(DType::F64, {n, 2}, x), "axis=0")[0], tensor(DType::F64, {n, 2}, y), 1e-12);
  }
}

TEST(Dft, OfARealSignalHasExactSymmetry) {
  const Data y = transform(f32({6, 1}, {0.1, 0.2, 0.7, -0.3, 0.9, 0.4}), "axis=0");
  const std::vector<double> numbers = widen<double>(y[0].tensor());
  EXPECT_EQ(numbers[1], 0);
  EXPECT_EQ(numbers[7], 0);
  EXPECT_EQ(numbers[4], numbers[8]);
  EXPECT_EQ(numbers[5], -numbers[9]);
}

TEST(Dft, OfARealSignalComesBackFromItsHalf) {
  for (const std::vector<double>& signal :
       {std::vector<double>{3}, {1, 5}, {1, 2, 4}, {1, -2, 7, 0}, {2, 7, 1, 8, 2}}) {
    const auto size = static_cast<int64_t>(signal.size());
    expect_near(run_text(R"(
      graph(%x: f32[n,1], %n: i64[]) {
        %s = dft(%x, axis=0, onesided=true)
        %y = dft(%s, %n, axis=0, onesided=true, inverse=true)
        return %y
      })",
                         {f32({size, 1}, signal), i64({}, {static_cast<double>(size)})})[0],
                f32({size, 1}, signal), 1e-6);
  }
}

TEST(Dft, CutsOrPadsTheSignalToItsLength) {
  const auto apply = [](int64_t length) {
    return run_text("graph(%x: f32[3,1], %n: i64[]) { %y = dft(%x, %n, axis=0) return %y }",
                    {f32({3, 1}, {1, 2, 4}), i64({}, {static_cast<double>(length)})});
  };
  expect_near(apply(2)[0], f32({2, 2}, {3, 0, -1, 0}), 1e-12);
  expect_near(apply(4)[0], f32({4, 2}, {7, 0, -3, -2, 3, 0, -3, 2}), 1e-12);
  expect_error<UserError>([&] { apply(0); },
                          "node %y: dft: the length of the signal is 0, but must be at least 1");
}

TEST(Dft, InfersSymbolicShapes) {
  const auto type = [](std::string_view x, std::string_view attributes) {
    return output_type(
        fmt::format("graph(%x: f32{}, %a: i64[]) {{ %y = dft(%x{}) return %y }}", x, attributes));
  };
  EXPECT_EQ(type("[n,m,1]", ""), "f32[n,m,2]");
  EXPECT_EQ(type("[n,m,1]", ", onesided=true"), "f32[n,floor(m/2)+1,2]");
  EXPECT_EQ(type("[n,m,2]", ", onesided=true, inverse=true"), "f32[n,2*m-2,1]");
  EXPECT_EQ(type("[n,m,1]", ", %a"), "f32[n,d0,2]");
  EXPECT_EQ(type("[n,m,1]", ", axis=%a"), "f32[d0,d1,2]");
  EXPECT_EQ(type("[*]", ""), "f32[*]");
}

TEST(Dft, RefusesWhatIsNoSignal) {
  const auto refuse = [](std::string_view x, std::string_view attributes, const std::string& message) {
    expect_error<UserError>(
        [&] { parse_graph(fmt::format("graph(%x: f32{})\n{{ %y = dft(%x{}) return %y }}", x, attributes)); },
        fmt::format("line 2, column 8: dft: {}\n  x  %x: f32{}", message, x));
  };
  refuse("[4]", "", "x needs an axis for the signal and one for the parts of its numbers");
  refuse("[4,3]", "", "the last dimension is 3, but must be 1 (real) or 2 (complex)");
  refuse("[4,1]", ", onesided=true, inverse=true", "the last dimension is 1, but must be 2 (complex)");
  refuse("[1,2]", ", onesided=true, inverse=true", "the length of the signal is 0, but must be at least 1");
  refuse("[4,2]", ", onesided=true", "only a real signal has a one-sided spectrum, but x is complex");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[n,1]) { %y = dft(%x) return %y }", {f32({0, 1}, {})});
      },
      "node %y: dft: the length of the signal is 0, but must be at least 1");
}

TEST(Frames, OverlapOrLeaveGaps) {
  const auto apply = [](int64_t length, int64_t step) {
    return run_text(
        "graph(%x: i64[1,5], %n: i64[], %s: i64[]) { %y = frames(%x, %n, %s, axis=1) return %y }",
        {i64({1, 5}, {1, 2, 3, 4, 5}), i64({}, {static_cast<double>(length)}), Tensor::scalar(step)});
  };
  expect_tensor(apply(3, 2)[0], i64({1, 2, 3}, {1, 2, 3, 3, 4, 5}));
  expect_tensor(apply(1, 3)[0], i64({1, 2, 1}, {1, 4}));
  expect_tensor(apply(5, std::numeric_limits<int64_t>::max())[0], i64({1, 1, 5}, {1, 2, 3, 4, 5}));
  expect_tensor(apply(6, 1)[0], i64({1, 0, 6}, {}));
  expect_error<UserError>([&] { apply(1, 0); }, "node %y: frames: step is 0, but must be at least 1");
}

TEST(Frames, DecomposeIntoAGather) {
  for (const int64_t length : {1, 3, 5, 6}) {
    const auto graph = parse_graph(
        "graph(%x: i64[2,n], %n: i64[], %s: i64[]) { %y = frames(%x, %n, %s, axis=1) return %y }");
    const Data inputs = {i64({2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), Tensor::scalar(length),
                         Tensor::scalar(int64_t{2})};
    const Data expected = evaluate(*graph, inputs);
    Node* const node = graph->nodes().front();
    const InsertBefore here(node);
    graph->replace(node, node->op().decompose(*node));
    expect_tensor(evaluate(*graph, inputs)[0], expected[0].tensor());
  }
}

TEST(Frames, TakeAnyAxisAndInferItsShape) {
  const std::string text = R"(
    graph(%x: i64[n,2]) {
      %two = constant(value=i64[] {2})
      %y = frames(%x, %two, %two, axis=0)
      return %y
    })";
  EXPECT_EQ(output_type(text), "i64[floor(n/2),2,2]");
  expect_tensor(run_text(text, {i64({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})})[0],
                i64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(CosineWindow, IsPeriodicOrSymmetric) {
  const auto hann = [](int64_t size, std::string_view attributes) {
    return run_text(fmt::format("graph(%n: i64[]) {{ %y = cosine_window(%n, coefficients=[0.5, 0.5]{}) "
                                "return %y }}",
                                attributes),
                    {Tensor::scalar(size)});
  };
  expect_near(hann(4, "")[0], f32({4}, {0, 0.5, 1, 0.5}), 1e-12);
  expect_near(hann(5, ", periodic=false")[0], f32({5}, {0, 0.5, 1, 0.5, 0}), 1e-12);
  expect_tensor(hann(1, ", periodic=false")[0], f32({1}, {1}));
  expect_tensor(hann(0, ", dtype=f16")[0], tensor(DType::F16, {0}, {}));
  expect_error<UserError>([&] { hann(-1, ""); },
                          "node %y: cosine_window: size is -1, but must be at least 0");
}

TEST(Signal, RefusesNegativeSizes) {
  const auto refuse = [](std::string_view node, const std::string& message) {
    expect_error<UserError>(
        [&] {
          parse_graph(
              fmt::format("graph(%x: f32[n]) {{ %s = constant(value=i64[] {{-3}}) %o = "
                          "constant(value=i64[] {{1}}) %f = constant(value=f32[] {{1}}) %y = {} "
                          "return %y }}",
                          node));
        },
        message);
  };
  refuse("frames(%x, %s, %o, axis=0)",
         "line 1, column 120: frames: length is -3\n  x  %x: f32[n]\n  length  %s: i64[]\n  step  %o: i64[]");
  refuse("cosine_window(%s, coefficients=[1])",
         "line 1, column 120: cosine_window: size is -3\n  size  %s: i64[]");
  refuse("mel_weights(%s, %o, %o, %f, %f)",
         "line 1, column 120: mel_weights: mel_bins is -3\n  mel_bins  %s: i64[]\n  dft_length  %o: "
         "i64[]\n  sample_rate  %o: i64[]\n  lower  %f: f32[]\n  upper  %f: f32[]");
}

TEST(CosineWindow, HoldsNumbers) {
  expect_error<UserError>(
      [] {
        parse_graph("graph(%n: i64[]) { %y = cosine_window(%n, coefficients=[1.0], dtype=str) return %y }");
      },
      "line 1, column 25: cosine_window: dtype is str, but only numbers will do\n  size  %n: i64[]");
}

TEST(MelWeightMatrix, HasOneTriangleForEachBand) {
  const std::string text = R"(
    graph(%m: i64[], %n: i64[], %r: i64[], %low: f32[], %high: f32[]) {
      %y = mel_weights(%m, %n, %r, %low, %high)
      return %y
    })";
  const Data narrow_bands = run_text(text, {Tensor::scalar<int64_t>(2), Tensor::scalar<int64_t>(16),
                                            Tensor::scalar<int64_t>(8000), f32({}, {0}), f32({}, {4000})});
  // The edges fall on bins 0, 0, 2 and 4.
  expect_near(narrow_bands[0], f32({9, 2}, {1, 0, 0.5, 0.5, 0, 1, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
              1e-7);
  EXPECT_EQ(output_type(text), "f32[d0,d1]");
}

TEST(Determinant, OfMatricesInABatch) {
  const auto determinant = [](const Tensor& x) {
    return run_text(fmt::format("graph(%x: {}) {{ %y = determinant(%x) return %y }}", type_of(x)), {x});
  };
  expect_near(determinant(f32({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0}))[0], f32({2}, {-2, -1}), 1e-6);
  expect_tensor(determinant(f32({3, 3}, {1, 2, 3, 2, 4, 6, 0, 1, 1}))[0], f32({}, {0}));
  expect_tensor(determinant(f32({2, 0, 0}, {}))[0], f32({2}, {1, 1}));
  EXPECT_EQ(output_type("graph(%x: f32[n,m,m]) { %y = determinant(%x) return %y }"), "f32[n]");
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[2,3]) { %y = determinant(%x) return %y }"); },
      "line 1, column 28: determinant: the last two dimensions must be those of a square matrix\n"
      "  x  %x: f32[2,3]");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[n,m]) { %y = determinant(%x) return %y }", {f32({1, 2}, {1, 2})});
      },
      "node %y: determinant: x is f32[1,2], but the last two dimensions must be those of a square matrix");
}

}  // namespace
}  // namespace tenon
