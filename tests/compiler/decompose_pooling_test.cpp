#include "passes/target/decompose_pooling.h"

#include <cmath>

#include "compiler/expect_compiled.h"
#include "sanitized.h"

namespace tenon {

using compiler::compile;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t count_poolings(const Graph& graph) {
  int64_t count = 0;
  for (const Node* node : graph.nodes())
    count += node->is("max_pool") || node->is("average_pool");
  return count;
}

std::unique_ptr<Graph> split(const Graph& graph, NumericsBudget numerics = NumericsBudget::Default) {
  std::unique_ptr<Graph> result = graph.clone();
  Journal journal(numerics);
  decompose_pooling(*result, journal);
  return result;
}

// Some elements are special, far enough from each other that most windows see none or one.
Data special_inputs(const Graph& graph, const std::map<std::string, int64_t>& sizes = {}) {
  Data inputs = inputs_for(graph, sizes);
  for (Datum& input : inputs) {
    const Tensor& x = input.tensor();
    std::vector<double> values = widen<double>(x);
    if (is_float(x.dtype()))
      for (size_t i = 0; i < values.size(); ++i)
        if (i % 61 == 7)
          values[i] = std::array{std::nan(""), kInfinity, -kInfinity, -0.0}[i / 61 % 4];
    input = narrow<double>(x.dtype(), x.extents(), values);
  }
  return inputs;
}

// Maxima are equal; means within rounding. NaN and infinities stand in the same places.
void expect_same(const Data& got, const Data& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].tensor().extents(), wanted[i].tensor().extents());
    const std::vector<double> a = widen<double>(got[i].tensor()), b = widen<double>(wanted[i].tensor());
    for (size_t k = 0; k < a.size(); ++k) {
      if (std::isfinite(b[k]))
        ASSERT_NEAR(a[k], b[k], tolerance) << "output " << i << ", element " << k;
      else
        ASSERT_TRUE(a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])))
            << "output " << i << ", element " << k << ": " << a[k] << " for " << b[k];
    }
  }
}

std::string pooling(std::string_view op, std::string_view type, std::string_view attributes) {
  return fmt::format("graph g(%x: {}) {{ {} = {}(%x, {}) return %y }}", type,
                     op == "max_pool" ? "%y, %i" : "%y", op, attributes);
}

// Windows along one dimension, of every kind.
struct Slid {
  int64_t kernel, stride, dilation, before, after;
};

const std::vector<Slid> kSlid{
    {1, 1, 1, 0, 0}, {1, 2, 1, 0, 0},  {3, 1, 1, 1, 1},  {4, 2, 1, 1, 2}, {5, 1, 1, 2, 2}, {5, 1, 1, 0, 4},
    {5, 2, 1, 2, 2}, {6, 1, 2, 3, 5},  {7, 1, 1, 3, 3},  {9, 1, 1, 0, 0}, {9, 1, 1, 4, 4}, {9, 3, 1, 8, 8},
    {4, 1, 3, 2, 2}, {15, 1, 1, 7, 7}, {16, 1, 1, 7, 8}, {5, 1, 1, 9, 9},
};

std::string attributes_for(const std::vector<Slid>& slid, bool round_up) {
  std::vector<int64_t> kernel, strides, dilations, pads, after;
  for (const Slid& each : slid) {
    kernel.push_back(each.kernel);
    strides.push_back(each.stride);
    dilations.push_back(each.dilation);
    pads.push_back(each.before);
    after.push_back(each.after);
  }
  pads.insert(pads.end(), after.begin(), after.end());
  return fmt::format("kernel=[{}], strides=[{}], dilations=[{}], pads=[{}], round_up={}",
                     fmt::join(kernel, ", "), fmt::join(strides, ", "), fmt::join(dilations, ", "),
                     fmt::join(pads, ", "), round_up);
}

TEST(SplitWindows, KeepsWhatEveryWindowGives) {
  int64_t split_ones = 0;
  for (const std::string_view op : {"max_pool", "average_pool", "average_pool counting padding"})
    for (const bool round_up : {false, true})
      for (const Slid& row : kSlid)
        for (const Slid& column : kSlid) {
          std::string attributes = attributes_for({row, column}, round_up);
          if (op.ends_with("padding"))
            attributes += ", count_padding=true";
          SCOPED_TRACE(fmt::format("{}, {}", op, attributes));
          const std::unique_ptr<Graph> graph =
              read(pooling(op.substr(0, op.find(' ')), "f32[1,2,17,19]", attributes));
          const std::unique_ptr<Graph> parts = split(*graph);
          split_ones += count_poolings(*parts) > 1;
          const Data inputs = special_inputs(*graph);
          expect_same(evaluate(*parts, inputs), evaluate(*graph, inputs), op == "max_pool" ? 0 : 1e-6);
          if (testing::Test::HasFatalFailure())
            return;
        }
  EXPECT_GT(split_ones, 600);
}

TEST(SplitWindows, KeepsWhatLongWindowsGive) {
  int64_t split_ones = 0;
  for (const char* op : {"max_pool", "average_pool"})
    for (const bool round_up : {false, true})
      for (const bool count_padding : {false, true})
        for (int64_t kernel = 30; kernel < 37; ++kernel)
          for (const Slid& slid : std::vector<Slid>{
                   {kernel, 1, 1, 0, 0}, {kernel, 1, 1, 7, 25}, {kernel, 2, 1, 5, 8}, {kernel, 3, 2, 1, 0}}) {
            std::string attributes = attributes_for({slid}, round_up);
            if (op == std::string_view("average_pool"))
              attributes += fmt::format(", count_padding={}", count_padding);
            SCOPED_TRACE(fmt::format("{}, {}", op, attributes));
            const std::unique_ptr<Graph> graph = read(pooling(op, "f32[1,2,100]", attributes));
            const std::unique_ptr<Graph> parts = split(*graph);
            split_ones += count_poolings(*parts) > 1;
            const Data inputs = special_inputs(*graph);
            expect_same(evaluate(*parts, inputs), evaluate(*graph, inputs),
                        op == std::string_view("max_pool") ? 0 : 1e-6);
            if (testing::Test::HasFatalFailure())
              return;
          }
  EXPECT_GT(split_ones, 80);
}

// Compiled, in one, two and three dimensions, of sizes known or not, and with padding by name.
TEST(SplitWindows, IsCompiledAsEvaluated) {
  for (const auto& [op, type, attributes, count] :
       std::vector<std::tuple<const char*, const char*, const char*, int64_t>>{
           {"max_pool", "f32[1,3,100]", "kernel=[31], strides=[1], dilations=[1], pads=[15, 15]", 2},
           {"max_pool", "f32[1,3,2000]", "kernel=[500], strides=[1], dilations=[1], pads=[0, 0]", 3},
           {"average_pool", "f32[1,3,100]", "kernel=[25], strides=[1], dilations=[1], pads=[0, 0]", 2},
           {"max_pool", "f32[2,3,20,20]",
            "kernel=[13, 13], strides=[1, 1], dilations=[1, 1], pads=[6, 6, 6, 6]", 4},
           {"max_pool", "i32[2,3,20,20]",
            "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]", 4},
           {"max_pool", "f16[2,3,9,9]",
            "kernel=[5, 5], strides=[1, 1], dilations=[1, 1], padding=\"same_lower\"", 2},
           {"max_pool", "f32[n,3,h,w]",
            "kernel=[5, 5], strides=[1, 1], dilations=[1, 1], padding=\"same_upper\"", 2},
           {"max_pool", "f32[n,3,9,h]",
            "kernel=[7, 8], strides=[2, 2], dilations=[1, 1], pads=[2, 2, 2, 2], round_up=true", 2},
           {"max_pool", "f32[1,3,9,10]",
            "kernel=[7, 8], strides=[2, 2], dilations=[1, 1], padding=\"same_upper\", round_up=true", 2},
           {"average_pool", "f32[1,3,30,30]",
            "kernel=[15, 15], strides=[1, 1], dilations=[1, 1], pads=[7, 7, 7, 7], count_padding=true", 4},
           {"average_pool", "f64[1,3,30,30]",
            "kernel=[15, 15], strides=[1, 1], dilations=[1, 1], pads=[7, 7, 7, 7]", 2},
           {"average_pool", "f32[1,8,6,7,9]",
            "kernel=[3, 4, 5], strides=[1, 1, 1], dilations=[1, 1, 1], pads=[1, 1, 1, 1, 2, 3]", 3},
           {"max_pool", "f32[1,8,6,7,9]",
            "kernel=[4, 1, 7], strides=[1, 1, 2], dilations=[2, 1, 1], pads=[2, 0, 1, 2, 0, 3]", 2},
       }) {
    SCOPED_TRACE(fmt::format("{} of {}, {}", op, type, attributes));
    const std::unique_ptr<Graph> graph = read(pooling(op, type, attributes));
    EXPECT_EQ(count_poolings(*split(*graph)), count);
    const Data inputs = special_inputs(*graph, {{"n", 2}, {"h", 11}, {"w", 8}});
    expect_same(compile(*graph, without_cache())->run(inputs), evaluate(*graph, inputs),
                op == std::string_view("max_pool") ? 0 : 1e-5);
  }
}

// Small windows, long steps, windows that tell where elements stand, and elements without an infinity.
TEST(SplitWindows, LeavesOthersAlone) {
  for (const auto& [op, type, attributes] : std::vector<std::array<const char*, 3>>{
           {"max_pool", "f32[1,8,56,56]",
            "kernel=[2, 2], strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0]"},
           {"max_pool", "f32[1,8,56,56]",
            "kernel=[3, 3], strides=[2, 2], dilations=[1, 1], pads=[1, 1, 1, 1]"},
           {"max_pool", "f32[1,8,56,56]",
            "kernel=[3, 3], strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]"},
           {"max_pool", "f32[1,8,56,56]",
            "kernel=[8, 8], strides=[8, 8], dilations=[1, 1], pads=[0, 0, 0, 0]"},
           {"average_pool", "f32[1,8,8,8]",
            "kernel=[7, 7], strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]"},
           {"max_pool", "f32[1,8,100]", "kernel=[7], strides=[1], dilations=[1], pads=[3, 3]"},
           {"average_pool", "f32[1,8,100]", "kernel=[31], strides=[1], dilations=[1], pads=[0, 0]"},
           {"average_pool", "f32[1,8,100]", "kernel=[25], strides=[1], dilations=[1], pads=[12, 12]"},
           {"average_pool", "f16[1,8,30,30]",
            "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]"},
           {"max_pool", "f32[1,8,n,n]",
            "kernel=[2000000, 2000000], strides=[1, 1], dilations=[2, 2], padding=\"same_upper\""},
           {"max_pool", "f8e4m3fn[1,8,30,30]",
            "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]"},
       }) {
    SCOPED_TRACE(fmt::format("{} of {}, {}", op, type, attributes));
    const std::unique_ptr<Graph> graph = read(pooling(op, type, attributes));
    EXPECT_EQ(count_poolings(*split(*graph)), 1);
  }
  const std::unique_ptr<Graph> graph = read(
      "graph g(%x: f32[1,8,30,30]) { %y, %i = max_pool(%x, kernel=[9, 9], strides=[1, 1], dilations=[1, 1], "
      "pads=[4, 4, 4, 4]) return %y, %i }");
  EXPECT_EQ(count_poolings(*split(*graph)), 1);
}

TEST(SplitWindows, LeavesMeansAloneUnderStrictNumerics) {
  const char* attributes = "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]";
  const std::unique_ptr<Graph> mean = read(pooling("average_pool", "f32[1,8,30,30]", attributes)),
                               greatest = read(pooling("max_pool", "f32[1,8,30,30]", attributes));
  EXPECT_EQ(count_poolings(*split(*mean)), 2);
  EXPECT_EQ(count_poolings(*split(*mean, NumericsBudget::Strict)), 1);
  EXPECT_EQ(count_poolings(*split(*greatest, NumericsBudget::Strict)), 4);
}

// --- several windows of one image ---

std::string poolings(std::string_view type, const std::vector<std::string>& attributes) {
  std::string nodes, results;
  for (size_t i = 0; i < attributes.size(); ++i) {
    nodes += fmt::format("%y{0}, %i{0} = max_pool(%x, {1}) ", i, attributes[i]);
    results += fmt::format("{}%y{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format("graph g(%x: {}) {{ {} return {} }}", type, nodes, results);
}

// How many poolings are of the image itself.
int64_t count_of_input(const Graph& graph) { return graph.input(0).use_count(); }

TEST(SplitWindows, MakesLargeWindowsOfSmallOnes) {
  const std::string five = "kernel=[5, 5], strides=[1, 1], dilations=[1, 1], pads=[2, 2, 2, 2]",
                    nine = "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]",
                    thirteen = "kernel=[13, 13], strides=[1, 1], dilations=[1, 1], pads=[6, 6, 6, 6]";
  for (const std::vector<std::string>& order :
       {std::vector{five, nine, thirteen}, {thirteen, nine, five}, {nine, thirteen, five}})
    for (const char* type : {"f32[1,3,20,20]", "f32[2,9,4,3]", "f32[1,3,h,w]"}) {
      const std::unique_ptr<Graph> graph = read(poolings(type, order)), parts = split(*graph);
      EXPECT_EQ(count_of_input(*parts), 1);
      const Data inputs = special_inputs(*graph, {{"h", 13}, {"w", 1}});
      const Data wanted = evaluate(*graph, inputs);
      expect_same(evaluate(*parts, inputs), wanted, 0);
      expect_same(compile(*graph, without_cache())->run(inputs), wanted, 0);
    }
}

// Whatever the padding, what is made of smaller windows is what the larger ones see.
TEST(SplitWindows, MakesWindowsOfOthersOnlyWhereTheySeeTheSame) {
  int64_t shared = 0;
  for (const int64_t small : {2, 3, 5})
    for (const int64_t large : {7, 8, 11})
      for (int64_t small_pads = 0; small_pads < 36; ++small_pads)
        for (int64_t large_pads = 0; large_pads < 64; large_pads += kIsSanitized ? 9 : 3) {
          const std::vector<Slid> first{{small, 1, 1, small_pads % 6, small_pads / 6}},
              second{{large, 1, 1, large_pads % 8, large_pads / 8}};
          const std::vector<std::string> both{attributes_for({first[0], first[0]}, false),
                                              attributes_for({second[0], second[0]}, false)};
          SCOPED_TRACE(fmt::format("{}; {}", both[0], both[1]));
          const std::unique_ptr<Graph> graph = read(poolings("f32[1,1,12,11]", both)), parts = split(*graph);
          shared += count_of_input(*parts) == 1;
          const Data inputs = special_inputs(*graph);
          expect_same(evaluate(*parts, inputs), evaluate(*graph, inputs), 0);
          if (testing::Test::HasFatalFailure())
            return;
        }
  EXPECT_GT(shared, kIsSanitized ? 30 : 100);
}

TEST(SplitWindows, MakesNoWindowsOfOthersThatSkipElements) {
  const std::string large = "kernel=[9, 9], strides=[1, 1], dilations=[1, 1], pads=[4, 4, 4, 4]";
  for (const char* small : {"kernel=[5, 5], strides=[2, 2], dilations=[1, 1], pads=[2, 2, 2, 2]",
                            "kernel=[3, 3], strides=[1, 1], dilations=[2, 2], pads=[2, 2, 2, 2]",
                            "kernel=[5, 5], strides=[1, 1], dilations=[1, 1], pads=[2, 2, 5, 5]"}) {
    const std::unique_ptr<Graph> graph = read(poolings("f32[1,3,20,20]", {small, large})),
                                 parts = split(*graph);
    EXPECT_EQ(count_of_input(*parts), 2) << small;
    const Data inputs = special_inputs(*graph);
    expect_same(evaluate(*parts, inputs), evaluate(*graph, inputs), 0);
  }
}

}  // namespace
}  // namespace tenon
