#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::kernels_of;

namespace {

// A constant of bytes, spread over all that they can be.
std::string bytes(std::string_view dtype, const Extents& extents, uint64_t seed) {
  std::string text = fmt::format("constant(value={}[{}] {{", dtype, fmt::join(extents, ","));
  for (int64_t i = 0; i < element_count(extents); ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const auto byte = static_cast<int64_t>(seed >> 56) - (dtype == "i8" ? 128 : 0);
    text += fmt::format("{}{}", i == 0 ? "" : ", ", byte);
  }
  return text + "})";
}

std::string floats(int64_t count) {
  std::string text = fmt::format("constant(value=f32[{}] {{", count);
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", 0.001 * static_cast<double>(1 + i % 7));
  return text + "})";
}

// Kernels for a machine with instructions for bytes, be it this one or not.
std::string kernels_for_bytes(const Graph& graph, NumericsBudget numerics = NumericsBudget::Default) {
  CompileContext options = without_cache();
  options.numerics = numerics;
  options.target.features.emplace_back("+avxvnni");
  std::string text;
  for (const loops::Kernel& kernel : kernels_of(graph, options))
    text += loops::print(kernel);
  return text;
}

struct Convolution {
  std::string_view x = "u8", w = "i8";
  Extents image, filters;
  std::string_view window = "strides=[1,1], dilations=[1,1], pads=[1,1,1,1]";
  int64_t groups = 1;
  int64_t less_x = 0, less_w = 0;
};

// Of integers: bytes less zero points.
std::unique_ptr<Graph> integers(const Convolution& c) {
  return read(fmt::format(R"(graph g(%x: f32[{0}]) {{
      %h = constant(value=f32[] {{127.0}})
      %o = constant(value=f32[] {{{1}}})
      %0 = mul(%x, %h)
      %1 = add(%0, %o)
      %q = cast(%1, to={2})
      %w = {3}
      %a0 = cast(%q, to=i32)
      %za = constant(value=i32[] {{{4}}})
      %a = sub(%a0, %za)
      %b0 = cast(%w, to=i32)
      %zb = constant(value=i32[] {{{5}}})
      %b = sub(%b0, %zb)
      %y = conv(%a, %b, {6}, groups={7})
      return %y
    }})",
                          fmt::join(c.image, ","), c.x == "u8" ? "128.0" : "0.0", c.x,
                          bytes(c.w, c.filters, 7), c.less_x, c.less_w, c.window, c.groups));
}

TEST(ConvolveBytes, TakesAllZeroPoints) {
  for (const char* x : {"u8", "i8"})
    for (const char* w : {"u8", "i8"})
      for (const int64_t less_x : {0, 77})
        for (const int64_t less_w : {0, 15}) {
          const std::unique_ptr<Graph> graph =
              integers({.x = x,
                        .w = w,
                        .image = {2, 8, 7, 9},
                        .filters = {20, 8, 3, 3},
                        .less_x = less_x,
                        .less_w = less_w + (std::string_view(w) == "u8" ? 128 : 0)});
          EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
          expect_as_evaluated(*graph);
        }
}

// As where each run quantises its images anew.
TEST(ConvolveBytes, TakesZeroPointsThatOnlyRunningTells) {
  for (const char* padding : {"0,0,0,0", "1,2,0,1"})
    for (const int64_t channels : {3, 8})
      for (const char* zero_w : {"128", "143"}) {
        const std::unique_ptr<Graph> graph =
            read(fmt::format(R"(graph g(%x: f32[2,{0},7,9]) {{
        %q, %s, %z = dynamic_quantize(%x)
        %w = {1}
        %a0 = cast(%q, to=i32)
        %za = cast(%z, to=i32)
        %a = sub(%a0, %za)
        %b0 = cast(%w, to=i32)
        %zb = constant(value=i32[] {{{2}}})
        %b = sub(%b0, %zb)
        %y = conv(%a, %b, strides=[1,2], dilations=[2,1], pads=[{3}])
        return %y
      }})",
                             channels, bytes("u8", {20, channels, 2, 3}, 7), zero_w, padding));
        EXPECT_EQ(has(kernels_in(*graph), "dot_i8x4("), channels == 8) << kernels_in(*graph);
        expect_as_evaluated(*graph);
      }
}

TEST(ConvolveBytes, TakesAllWindows) {
  for (const char* window :
       {"strides=[1,1], dilations=[1,1], pads=[0,0,0,0]", "strides=[2,2], dilations=[1,1], pads=[1,0,1,2]",
        "strides=[1,3], dilations=[2,1], pads=[2,2,2,2]",
        "strides=[2,1], dilations=[1,1], pads=[], padding=\"same_upper\""}) {
    const std::unique_ptr<Graph> graph = integers(
        {.image = {1, 12, 11, 10}, .filters = {36, 12, 3, 3}, .window = window, .less_x = 9, .less_w = 0});
    EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
  const std::unique_ptr<Graph> pixels = integers({.image = {1, 64, 5, 7},
                                                  .filters = {37, 64, 1, 1},
                                                  .window = "strides=[1,1], dilations=[1,1], pads=[0,0,0,0]",
                                                  .less_x = 200});
  EXPECT_TRUE(has(kernels_in(*pixels), "dot_i8x4("));
  expect_as_evaluated(*pixels);
}

TEST(ConvolveBytes, TakesGroups) {
  const std::unique_ptr<Graph> words =
      integers({.image = {1, 32, 6, 6}, .filters = {64, 8, 3, 3}, .groups = 4, .less_x = 3});
  EXPECT_TRUE(has(kernels_in(*words), "dot_i8x4(")) << kernels_in(*words);
  expect_as_evaluated(*words);
}

// On machines that multiply matrices in registers, two words of channels at a time.
TEST(ConvolveBytes, ByMatricesInRegisters) {
  const CompileContext options = with_matrices_in_registers("+i8mm");
  const auto has_matrices = [&](int64_t channels) {
    return has(
        kernels_in(*integers({.image = {1, channels, 9, 12}, .filters = {32, channels, 3, 3}, .less_x = 3}),
                   options),
        " tile {");
  };
  EXPECT_TRUE(has_matrices(8));
  EXPECT_FALSE(has_matrices(12)) << "words are not taken one by one";
}

// Each channel by itself, or three of them: products of floats, which are exact.
TEST(ConvolveBytes, ReadsAsFloatsWhatIsNotFourAtATime) {
  for (const int64_t less_x : {0, 77}) {
    const std::unique_ptr<Graph> depthwise =
        integers({.image = {1, 24, 9, 9}, .filters = {24, 1, 3, 3}, .groups = 24, .less_x = less_x});
    EXPECT_TRUE(has(kernels_in(*depthwise), ": u8[1,11,11,24]")) << kernels_in(*depthwise);
    expect_as_evaluated(*depthwise);
    const std::unique_ptr<Graph> three = integers({.x = "i8",
                                                   .image = {1, 3, 12, 12},
                                                   .filters = {16, 3, 5, 5},
                                                   .window = "strides=[2,2], dilations=[1,1], pads=[2,2,2,2]",
                                                   .less_x = less_x});
    EXPECT_FALSE(has(kernels_in(*three), "dot_i8x4("));
    expect_as_evaluated(*three);
  }
}

// Those that are not in fours get some more that count as 0.
TEST(ConvolveBytes, TakesAnyNumberOfChannels) {
  for (const int64_t channels : {17, 30, 103})
    for (const int64_t less_w : {0, 115}) {
      const std::unique_ptr<Graph> graph =
          integers({.image = {1, channels, 6, 7},
                    .filters = {16, channels, 3, 3},
                    .window = "strides=[1,2], dilations=[1,1], pads=[1,1,1,1]",
                    .less_x = 77,
                    .less_w = less_w});
      EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
      expect_as_evaluated(*graph);
    }
}

// Groups with different sums of x, a border that is no byte, and sums that floats would round.
TEST(ConvolveBytes, LeavesAloneOtherConvolutions) {
  for (const Convolution& c :
       {Convolution{.image = {1, 8, 6, 6}, .filters = {16, 4, 3, 3}, .groups = 2, .less_w = 5},
        Convolution{.image = {1, 8, 6, 6}, .filters = {16, 8, 3, 3}, .less_x = 300},
        Convolution{.image = {1, 15, 8, 8}, .filters = {16, 15, 6, 6}}}) {
    const std::unique_ptr<Graph> graph = integers(c);
    EXPECT_FALSE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
    EXPECT_FALSE(has(kernels_in(*graph), "f32(x0")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// Zero points that are no bytes, or bytes of another kind than the image, and weights far from theirs: floats
// would round, and a border would be another byte.
TEST(ConvolveBytes, TakesOnlyZeroPointsThatAreBytes) {
  const auto expect_exact = [](int64_t channels, int64_t filters, int64_t zero_w, const Tensor& zero_point) {
    const std::unique_ptr<Graph> graph = read(fmt::format(R"(graph g(%x: u8[1,{0},6,6], %z: {1}[]) {{
        %w = {2}
        %a0 = cast(%x, to=i32)
        %za = cast(%z, to=i32)
        %a = sub(%a0, %za)
        %b0 = cast(%w, to=i32)
        %zb = constant(value=i32[] {{{3}}})
        %b = sub(%b0, %zb)
        %y = conv(%a, %b, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %y
      }})",
                                                          channels, name(zero_point.dtype()),
                                                          bytes("u8", {filters, channels, 3, 3}, 7), zero_w));
    std::vector<double> pixels(static_cast<size_t>(channels) * 36);
    for (size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<double>(i * 89 % 256);
    const Data inputs = {Datum(narrow<double>(DType::U8, {1, channels, 6, 6}, pixels)), Datum(zero_point)};
    EXPECT_EQ(widen<double>(compile(*graph, without_cache())->run(inputs).front().tensor()),
              widen<double>(evaluate(*graph, inputs).front().tensor()));
  };
  for (const int64_t channels : {3, 8}) {
    expect_exact(channels, 20, 128, Tensor::scalar<int64_t>(1234567));
    expect_exact(channels, 20, 128, Tensor::scalar<int8_t>(-5));
    expect_exact(channels, 300, 100000, Tensor::scalar<uint8_t>(7));
    expect_exact(channels, 300, 143, Tensor::scalar<uint8_t>(7));
  }
}

// --- dequantised numbers ---

struct Quantised {
  std::string_view op;  // with %a and %b
  std::string_view x = "u8", w = "i8";
  Extents image, filters;
  int64_t scales = 1, axis = 0;
  std::string_view zero_x = "0", zero_w = "";
};

// What follows it quantises the result again.
std::unique_ptr<Graph> quantised(const Quantised& q) {
  return read(fmt::format(
      R"(graph g(%x: f32[{0}]) {{
      %s = constant(value=f32[] {{0.01}})
      %z = constant(value={1}[] {{{2}}})
      %q = quantize(%x, %s, %z, to={1})
      %a = dequantize(%q, %s, %z, to=f32)
      %w = {3}
      %t = {4}
      {5}
      %b = dequantize(%w, %t{6}, to=f32, axis={7})
      %y = {8}
      %r = relu(%y)
      return %r
    }})",
      fmt::join(q.image, ","), q.x, q.zero_x, bytes(q.w, q.filters, 3), floats(q.scales),
      q.zero_w.empty() ? "" : fmt::format("%zw = constant(value={}[{}] {{{}}})", q.w, q.scales, q.zero_w),
      q.zero_w.empty() ? "" : ", %zw", q.axis, q.op));
}

constexpr std::string_view kConv = "conv(%a, %b, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])";

TEST(MultiplyDequantised, ScalesConvolutionsOfBytes) {
  for (const char* x : {"u8", "i8"})
    for (const char* zero : {"0", "100"})
      for (const int64_t scales : {1, 20}) {
        const std::unique_ptr<Graph> graph = quantised({.op = kConv,
                                                        .x = x,
                                                        .image = {1, 16, 8, 8},
                                                        .filters = {20, 16, 3, 3},
                                                        .scales = scales,
                                                        .zero_x = zero});
        EXPECT_TRUE(has(kernels_for_bytes(*graph), "dot_i8x4(")) << kernels_for_bytes(*graph);
        expect_as_evaluated(*graph);
      }
}

TEST(MultiplyDequantised, ReadsBytesWhereEachChannelIsByItself) {
  const std::unique_ptr<Graph> graph =
      quantised({.op = "conv(%a, %b, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], groups=16)",
                 .image = {1, 16, 9, 9},
                 .filters = {16, 1, 3, 3},
                 .scales = 16,
                 .zero_x = "55"});
  EXPECT_TRUE(has(kernels_for_bytes(*graph), "x0: u8[1,11,11,16]")) << kernels_for_bytes(*graph);
  expect_as_evaluated(*graph);
}

TEST(MultiplyDequantised, ScalesProductsOfBytes) {
  const std::string zeros = "1, 2, 3, 4, 5, 6, 7, -8, 9, 10, 11, -128";
  for (const char* zero_w : {"", zeros.c_str()}) {
    for (const char* op : {"matmul(%a, %b)", "matmul(%a, %b, transpose_b=true)", "linear(%a, %b)"}) {
      const bool by_rows = std::string_view(op) == "matmul(%a, %b)";
      const std::unique_ptr<Graph> graph = quantised({.op = op,
                                                      .image = {2, 9, 32},
                                                      .filters = by_rows ? Extents{32, 12} : Extents{12, 32},
                                                      .scales = 12,
                                                      .axis = by_rows ? 1 : 0,
                                                      .zero_x = "90",
                                                      .zero_w = zero_w});
      EXPECT_TRUE(has(kernels_for_bytes(*graph), "dot_i8x4(")) << op << kernels_for_bytes(*graph);
      expect_as_evaluated(*graph);
    }
  }
}

// Floats would add up what integers do: other bits.
TEST(MultiplyDequantised, LeavesStrictNumericsAlone) {
  const std::unique_ptr<Graph> graph =
      quantised({.op = kConv, .image = {1, 16, 8, 8}, .filters = {20, 16, 3, 3}});
  EXPECT_FALSE(has(kernels_for_bytes(*graph, NumericsBudget::Strict), "dot_i8x4("));
}

// Scales that differ along what is summed, and sums that 32 bits have no room for.
TEST(MultiplyDequantised, LeavesAloneOtherProducts) {
  for (const Quantised& q :
       {Quantised{.op = "matmul(%a, %b)", .image = {4, 12}, .filters = {12, 12}, .scales = 12, .axis = 0},
        Quantised{.op = kConv, .image = {1, 20, 5, 5}, .filters = {20, 20, 3, 3}, .scales = 20, .axis = 1},
        Quantised{.op = "matmul(%a, %b)", .image = {3, 33028}, .filters = {33028, 1}}}) {
    const std::unique_ptr<Graph> graph = quantised(q);
    EXPECT_FALSE(has(kernels_for_bytes(*graph), "dot_i8x4(")) << kernels_for_bytes(*graph);
    expect_as_evaluated(*graph);
  }
}

// --- what is quantised again ---

// The whole of a layer is one kernel, which reads bytes and writes them.
TEST(FoldScales, LetsLayersReadAndWriteBytes) {
  const std::unique_ptr<Graph> graph = read(fmt::format(
      R"(graph g(%q: u8[1,16,6,6]) {{
      %s = constant(value=f32[] {{0.01}})
      %z = constant(value=u8[] {{30}})
      %a = dequantize(%q, %s, %z, to=f32)
      %w = {}
      %t = {}
      %b = dequantize(%w, %t, to=f32, axis=0)
      %c = conv(%a, %b, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      %d = constant(value=f32[8,1,1] {{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}})
      %e = add(%c, %d)
      %u = constant(value=f32[] {{0.05}})
      %y = quantize(%e, %u, %z, to=u8)
      return %y
    }})",
      bytes("i8", {8, 16, 1, 1}, 5), floats(8)));
  const std::string text = kernels_for_bytes(*graph);
  EXPECT_TRUE(has(text, "dot_i8x4(")) << text;
  EXPECT_FALSE(has(text, " / ")) << "no scale is divided by:\n" << text;
  const Tensor q = narrow<int64_t>(DType::U8, {1, 16, 6, 6}, [] {
    std::vector<int64_t> values(16 * 36);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i * 7919 % 256);
    return values;
  }());
  const std::vector<double> got = widen<double>(compile(*graph, without_cache())->run({q}, {})[0].tensor()),
                            wanted = widen<double>(evaluate(*graph, {q})[0].tensor());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1) << "element " << i;
}

// Floats have too few bits for the integers before they are subtracted.
TEST(FoldScales, SubtractsLargeIntegersAsTheyAre) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: i32[4]) {
      %c = constant(value=i32[] {1073741824})
      %0 = sub(%x, %c)
      %1 = cast(%0, to=f32)
      %s = constant(value=f32[] {0.5})
      %y = quantize(%1, %s, to=u8)
      return %y
    })");
  const Tensor x =
      narrow<int64_t>(DType::I32, {4}, std::vector<int64_t>{1073741825, 1073741830, 1073741860, 1073741924});
  EXPECT_EQ(widen<double>(compile(*graph, without_cache())->run({x}, {})[0].tensor()),
            (std::vector<double>{2, 12, 72, 200}));
}

TEST(FoldScales, LeavesStrictNumericsAlone) {
  const std::unique_ptr<Graph> graph = read(
      "graph g(%x: f32[40]) { %s = constant(value=f32[] {0.3}) %0 = exp(%x) %y = quantize(%0, %s, to=u8) "
      "return %y }");
  EXPECT_TRUE(has(kernels_for_bytes(*graph, NumericsBudget::Strict), "/"));
  EXPECT_FALSE(has(kernels_for_bytes(*graph), "/"));
}

// As the graph may say it, with and without whole words of channels.
TEST(WideningConv, ComputesWhatItsFormulaSays) {
  for (const int64_t channels : {3, 4, 6, 12})
    for (const char* image : {"2,12,7,9", "n,12,7,9"})
      for (const char* window :
           {"pads=[1,1,1,1], border=77", "strides=[2,1], dilations=[1,2], pads=[0,2,1,0]"}) {
        const int64_t groups = 12 / channels;
        const std::unique_ptr<Graph> graph = read(fmt::format(
            R"(graph g(%x: f32[{}]) {{
              %h = constant(value=f32[] {{127.0}})
              %0 = mul(%x, %h)
              %1 = add(%0, %h)
              %q = cast(%1, to=u8)
              %w = {}
              %y = widening_conv(%q, %w, accumulator=i32, {}, groups={})
              return %y
            }})",
            image, bytes("i8", {8 * groups, channels, 3, 3}, 7), window, groups));
        EXPECT_EQ(has(kernels_in(*graph), "dot_i8x4("), channels % 4 == 0) << kernels_in(*graph);
        expect_as_evaluated(*graph, {{"n", 3}});
      }
}

}  // namespace
}  // namespace tenon
