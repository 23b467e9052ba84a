#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;
using runtime::Executor;
using runtime::Home;
using runtime::HostStep;
using runtime::Slot;

namespace {

TEST(Layouts, PutChannelsLastAndZerosAround) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[1,3,9,10], %w1: f32[16,3,3,3], %w2: f32[24,16,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        %2 = conv(%1, %w2, strides=[2,2], dilations=[1,1], pads=[1,0,1,2])
        return %2
      })");
  const std::string text = kernels_in(*graph);
  EXPECT_TRUE(has(text, "-> (y0: f32[1,3,11,12])")) << text;   // the input, whose channels are few
  EXPECT_TRUE(has(text, "-> (y0: f32[1,11,11,16])")) << text;  // as windows of %2 see it
  EXPECT_TRUE(has(text, "-> (y0: f32[1,5,5,24])")) << text;
  EXPECT_FALSE(has(text, "<=")) << "no window asks whether it is inside:\n" << text;
  expect_as_evaluated(*graph);
}

// One convolution sees 2.5 around the image and another zeros, of which one border can be there.
TEST(Layouts, PutOneOfTwoBordersAround) {
  const std::string padded = R"(
        %p = constant(value=i64[4] {1, 1, 1, 1})
        %v = constant(value=f32[] {2.5})
        %2 = pad(%1, %p, %v, axes=[2,3])
        %3 = conv(%2, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
)";
  const std::string with_zeros = "%4 = conv(%1, %w3, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])\n";
  for (const std::string& convolutions : {padded + with_zeros, with_zeros + padded})
    expect_as_evaluated(*read(fmt::format(
        R"(graph g(%x: f32[1,8,9,9], %w1: f32[16,8,1,1], %w2: f32[16,16,3,3], %w3: f32[8,16,3,3]) {{
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        %1 = relu(%0)
        {}
        return %3, %4
      }})",
        convolutions)));
}

TEST(Layouts, LeaveAloneWhatIsNotConvolved) {
  for (const char* text : {"graph g(%x: f32[2,8,6,6]) { %0, %i = max_pool(%x, kernel=[2,2], strides=[2,2], "
                           "dilations=[1,1], pads=[0,0,0,0]) %1 = relu(%0) return %1 }",
                           // Too few channels for vectors.
                           "graph g(%x: f32[2,8,6,6], %w: f32[2,8,3,3]) { %0 = conv(%x, %w, strides=[1,1], "
                           "dilations=[1,1], pads=[1,1,1,1]) %1 = relu(%0) return %1 }",
                           // Weights that only running tells.
                           "graph g(%x: f32[2,8,6,6], %k: f32[8,8,3,3]) { %0 = conv(%x, %k, strides=[1,1], "
                           "dilations=[1,1], pads=[1,1,1,1]) %1 = relu(%0) return %1 }"}) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_TRUE(has(kernels_in(*graph), "x0: f32[2,8,6,6]")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// What the caller, or a step that sees memory as it is, reads keeps its order.
TEST(Layouts, AreSeenByNobody) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[2,5,6,7], %w1: f32[12,5,3,3], %w2: f32[8,12,1,1], %w3: f32[336,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = relu(%0)
      %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      %s = constant(value=i64[2] {2, 336})
      %3 = reshape(%2, %s)
      %4 = matmul(%3, %w3)
      %5 = cumulative_sum(%1, axis=1)
      return %1, %2, %4, %5
    })"));
}

TEST(Layouts, ReachAllThatIsMadePixelByPixel) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: f32[1,8,12,12], %w1: f32[16,8,3,3], %w2: f32[16,1,5,5], %w3: f32[8,16,1,1], %w4: f32[16,1,1]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1, %i = max_pool(%0, kernel=[3,3], strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
        %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[2,2,2,2], groups=16)
        %3 = add(%2, %w4)
        %4 = reduce_mean(%3, axes=[2,3], keep_dims=true)
        %5 = sigmoid(%4)
        %6 = mul(%3, %5)
        %7 = conv(%6, %w3, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        %8 = transpose(%7, permutation=[0,2,3,1])
        return %8
      })");
  EXPECT_FALSE(has(kernels_in(*graph), "f32[1,16,6,6]")) << kernels_in(*graph);
  expect_as_evaluated(*graph);
}

// Two that read one image: the one's windows reach farther.
TEST(Layouts, HaveZerosForAllWindows) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[1,4,9,9], %w0: f32[8,4,1,1], %w1: f32[8,8,3,3], %w2: f32[8,8,5,5]) {
      %0 = conv(%x, %w0, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      %1 = conv(%0, %w1, strides=[2,2], dilations=[2,2], pads=[2,2,2,2])
      %2 = conv(%0, %w2, strides=[2,2], dilations=[1,1], pads=[2,2,2,2])
      %3 = average_pool(%0, kernel=[3,3], strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
      %4 = add(%1, %2)
      %5 = add(%4, %3)
      return %5
    })"));
}

// What is read at places that other elements tell, as where an image is resized or gathered from.
TEST(Layouts, AreForPlacesThatOnlyRunningTells) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[1,8,6,6], %l: f32[1,8,12,12], %w1: f32[8,8,3,3], %w2: f32[8,8,3,3]) {
      %s = relu(%x)
      %y = conv(%s, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %i = constant(value=i64[12] {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5})
      %0 = gather(%s, %i, axis=2)
      %1 = gather(%0, %i, axis=3)
      %2 = add(%l, %1)
      %z = conv(%2, %w2, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      return %y, %z
    })"));
}

// Branches have the constants that they are handed, so that these are put in order when compiling.
TEST(Layouts, ReachNestedGraphs) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%test: bool[], %x: f32[1,8,9,9], %w1: f32[16,8,3,3], %w2: f32[16,8,3,3]) {
      %y = if(%test, [%x, %w1, %w2]) then(%a: f32[1,8,9,9], %b: f32[16,8,3,3], %c: f32[16,8,3,3]) {
        %0 = conv(%a, %b, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %0
      } else(%a: f32[1,8,9,9], %b: f32[16,8,3,3], %c: f32[16,8,3,3]) {
        %0 = conv(%a, %c, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %0
      }
      return %y
    })");
  expect_as_evaluated(*graph);
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const auto* step = std::get_if<HostStep>(&program->program().steps.front());
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->reads.size(), 2);  // the test and the image
  for (const auto& [name, branch] : step->regions)
    EXPECT_TRUE(std::ranges::any_of(branch->slots, [](const Slot& slot) {
      return slot.home == Home::Constant && slot.type == Type::tensor(DType::F32, {3, 3, 8, 16});
    })) << name;
}

TEST(Layouts, ShareWeights) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[1,8,7,7], %w: f32[8,8,3,3]) {
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = conv(%0, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %2 = reduce_sum(%w, axes=[0,1,2,3], keep_dims=false)
      %3 = mul(%1, %2)
      return %3
    })"));
}

TEST(Layouts, AreForImagesOfAnyRankSizeAndDtype) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[2,6,31], %w1: f32[16,6,5], %w2: f32[10,16,3]) {
      %0 = conv(%x, %w1, strides=[2], dilations=[1], pads=[2,2])
      %1 = tanh(%0)
      %2 = conv(%1, %w2, strides=[1], dilations=[2], pads=[2,2])
      return %2
    })"));
  expect_as_evaluated(*read(R"(graph g(%x: f32[1,3,5,6,7], %w1: f32[9,3,3,3,3], %w2: f32[8,9,1,2,3]) {
      %0 = conv(%x, %w1, strides=[1,1,1], dilations=[1,1,1], pads=[1,1,1,1,1,1])
      %1 = relu(%0)
      %2 = conv(%1, %w2, strides=[1,2,1], dilations=[1,1,1], pads=[0,1,1,0,0,1])
      return %2
    })"));
  const std::unique_ptr<Graph> symbolic =
      read(R"(graph g(%x: f32[n,3,h,w], %w1: f32[12,3,3,3], %w2: f32[8,12,3,3]) {
        %0 = conv(%x, %w1, strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %3 = add(%2, %2)
        return %3
      })");
  for (int64_t size : {1, 2, 9, 30})
    expect_as_evaluated(*symbolic, {{"n", 2}, {"h", 7}, {"w", size}});
  expect_as_evaluated(*read(R"(graph g(%x: f16[1,4,6,6], %w1: f16[8,4,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = cast(%0, to=f32)
      %2 = relu(%1)
      return %2
    })"));
}

// Weights that are read once are read as they are.
TEST(Layouts, LeaveHalvesForOnePixel) {
  const auto convolution = [](int64_t size) {
    return read(
        fmt::format("graph g(%x: f16[1,64,{0},{0}], %w: f16[32,64,1,1]) {{ %0 = conv(%x, %w, "
                    "strides=[1,1], dilations=[1,1], pads=[0,0,0,0]) return %0 }}",
                    size));
  };
  EXPECT_TRUE(has(kernels_in(*convolution(1)), "x1: f16[")) << kernels_in(*convolution(1));
  EXPECT_FALSE(has(kernels_in(*convolution(2)), "x1: f16[")) << kernels_in(*convolution(2));
}

// f16 and bf16 are converted to f32 where an image is packed, and not for each product.
TEST(Layouts, HoldHalvesAsFloats) {
  for (const auto& [dtype, tolerance] : {std::pair(DType::F16, 2e-3), std::pair(DType::BF16, 2e-2)}) {
    const std::unique_ptr<Graph> graph = read(fmt::format(
        R"(graph g(%x: {0}[1,16,12,12], %y: {0}[1,16,12,12], %w: {0}[32,32,3,3], %w2: {0}[32,16,2,2]) {{
        %0 = concat([%x, %y], axis=1)
        %1 = conv(%0, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %2 = conv_transpose(%1, %w2, strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0])
        return %1, %2
      }})",
        dtype));
    EXPECT_FALSE(has(kernels_in(*graph), "+= f32(")) << kernels_in(*graph);
    EXPECT_FALSE(has(kernels_in(*graph), " * f32(")) << kernels_in(*graph);
    const Data inputs = inputs_for(*graph, {}), got = compile(*graph, without_cache())->run(inputs);
    const auto expect_near = [&, limit = tolerance](const Tensor& result, const Tensor& wanted) {
      EXPECT_EQ(result.dtype(), wanted.dtype());
      const std::vector<double> a = widen<double>(result), b = widen<double>(wanted);
      for (size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], limit * (1 + std::abs(b[k])));
    };
    expect_near(got[0].tensor(), evaluate(*graph, inputs)[0].tensor());
    // Of what the first convolution gave: a sum that it rounds to the next number is large to the second.
    const std::unique_ptr<Graph> second = parse(fmt::format(
        R"(graph g(%x: {0}[1,32,12,12], %v: {0}[32,16,2,2]) {{
        %0 = conv_transpose(%x, %v, strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0])
        return %0
      }})",
        dtype));
    constexpr uint64_t kSeedOfSecondWeights = 102;
    expect_near(
        got[1].tensor(),
        evaluate(*second, {got[0], numbers(dtype, {32, 16, 2, 2}, kSeedOfSecondWeights)})[0].tensor());
  }
}

// Lanes run along what lies side by side: the windows of a pooling, where these move by all of their size.
TEST(Layouts, LetLanesRunAlongWindows) {
  const auto pooling = [](int64_t kernel, int64_t stride) {
    return read(
        fmt::format("graph g(%x: f32[2,5,60,60]) {{ %0 = average_pool(%x, kernel=[{0},{0}], "
                    "strides=[{1},{1}], dilations=[1,1], pads=[0,0,0,0]) %1 = relu(%0) return %1 }}",
                    kernel, stride));
  };
  for (const auto& [kernel, stride, along] : std::vector<std::tuple<int64_t, int64_t, bool>>{
           {30, 30, true}, {20, 19, true}, {3, 2, false}, {20, 1, false}}) {
    const std::unique_ptr<Graph> graph = pooling(kernel, stride);
    const std::string sums = fmt::format("k1 in 0..{} vector", kernel);
    EXPECT_EQ(has(kernels_in(*graph), sums), along) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// A factor may be another in each lane though what it reads is the same.
TEST(Layouts, TellLanesApartByConditions) {
  expect_as_evaluated(*read(R"(graph g(%a: f32[64,32,1], %b: f32[1,32,64]) {
      %s = constant(value=i64[3] {64,32,64})
      %e = broadcast(%a, %s)
      %t = triangle(%e, upper=true)
      %m = mul(%t, %b)
      %y = reduce_sum(%m, axes=[1], keep_dims=false)
      return %y
    })"));
}

TEST(Layouts, AreForGroupedAndTransposedConvolutions) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[1,12,8,8], %w1: f32[24,4,3,3], %w2: f32[24,5,3,3], %w3: f32[48,2,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=3)
      %1 = relu(%0)
      %2 = conv(%1, %w3, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=12)
      %3 = conv_transpose(%1, %w2, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[0,0], groups=2)
      return %2, %3
    })"));
}

// As where a sequence of a transformer is convolved.
TEST(Layouts, PadAnImageWithPermutedDimensions) {
  for (const char* text : {
           "graph g(%x: f32[1,21,24], %w: f32[24,12,5]) { %0 = transpose(%x, permutation=[0,2,1]) %1 = "
           "conv(%0, %w, strides=[1], dilations=[1], pads=[2,2], groups=2) %2 = relu(%1) return %2 }",
           "graph g(%x: f32[2,n,9,16], %w: f32[16,1,3,3]) { %0 = transpose(%x, permutation=[0,3,1,2]) %1 = "
           "conv(%0, %w, strides=[1,2], dilations=[1,1], pads=[1,1,1,1], groups=16) %2 = transpose(%1, "
           "permutation=[0,2,3,1]) return %2 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_FALSE(has(kernels_in(*graph), "<=")) << "no window asks whether it is inside:\n"
                                                << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 7}});
  }
}

// Where each iteration of a sum would have to find out anew which element is meant.
TEST(Layouts, CopyAnImageThatIsMirroredBeforeItIsConvolved) {
  const auto mirrored = [](std::string_view mode) {
    return read(fmt::format(R"(graph(%x: f32[1,3,20,20], %w: f32[16,3,3,3]) {{
      %p = constant(value=i64[4] {{1, 1, 1, 1}})
      %0 = pad(%x, %p, axes=[2,3], mode="{}")
      %1 = conv(%0, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      return %1
    }})",
                            mode));
  };
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    const std::string text = kernels_in(*mirrored(mode));
    EXPECT_TRUE(has(text, "-> (y0: f32[1,3,22,22])")) << text;
    expect_as_evaluated(*mirrored(mode));
  }
}

// Means and variances of channels are those of columns then.
TEST(Layouts, ReachNormalisedInstances) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: f32[2,8,9,10], %w1: f32[16,8,1,1], %w2: f32[16], %w3: f32[16], %w4: f32[16,16,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        %1 = instance_norm(%0, %w2, %w3)
        %2 = relu(%1)
        %3 = conv(%2, %w4, strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
        return %3
      })");
  const std::string text = kernels_in(*graph);
  EXPECT_FALSE(has(text, "[2,16,9") || has(text, "[2,16,90]")) << "channels come last:\n" << text;
  expect_as_evaluated(*graph);
  for (const char* sizes : {"3,8", "3,8,40", "1,8,n", "2,8,5,6,7"})
    expect_as_evaluated(*read(fmt::format("graph g(%x: f32[{}], %w1: f32[8], %w2: f32[8]) {{ "
                                          "%0 = instance_norm(%x, %w1, %w2) return %0 }}",
                                          sizes)),
                        {{"n", 33}});
}

// Of what is cut off where an image is longer, none is kept around one of any size.
TEST(Layouts, PutNoWideBordersAroundImagesThatAreCutOff) {
  const auto cut = [](int64_t end) {
    return read(fmt::format(R"(graph g(%x: f32[n,16,h,v], %w: f32[16,16,3,3]) {{
      %b = constant(value=i64[2] {{0, 0}})
      %e = constant(value=i64[2] {{{0}, {0}}})
      %s = constant(value=i64[2] {{2, 2}})
      %0 = slice(%x, %b, %e, %s, axes=[2,3])
      %1 = conv(%0, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      return %1
    }})",
                            end));
  };
  const std::string text = kernels_in(*cut(224));
  EXPECT_TRUE(has(text, "n0+4")) << text;
  for (const int64_t end : {6, 224, 1 << 30})
    expect_as_evaluated(*cut(end), {{"n", 1}, {"h", 9}, {"v", 12}});
}

}  // namespace
}  // namespace tenon
