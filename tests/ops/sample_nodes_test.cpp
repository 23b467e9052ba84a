// The decompositions of ops that sample, against the ops themselves.
#include "ops/sample_nodes.h"

#include <cmath>
#include <limits>
#include <random>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

std::unique_ptr<Graph> decomposed(const std::string& text) {
  std::unique_ptr<Graph> graph = parse_graph(text);
  for (Node* node : graph->nodes())
    if (node->op().decompose != nullptr) {
      const InsertBefore here(node);
      graph->replace(node, node->op().decompose(*node));
    }
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  return graph;
}

// One op of random inputs, whose sizes the graph knows or not.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int64_t number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(number(0, std::ssize(choices) - 1))];
  }
  std::vector<int64_t> numbers(int64_t count, int64_t least, int64_t most) {
    std::vector<int64_t> result(static_cast<size_t>(count));
    std::ranges::generate(result, [&] { return number(least, most); });
    return result;
  }

  // Numbers evenly from low … high, but every eighth one of the special ones.
  void add(std::string_view name, DType dtype, const Extents& extents, double low, double high,
           const std::vector<double>& special = {}) {
    std::uniform_real_distribution<double> even(low, high);
    std::vector<double> values(static_cast<size_t>(element_count(extents)));
    for (double& value : values)
      value = !special.empty() && number(0, 7) == 0 ? one_of(special) : even(random_);
    add(name, tensor(dtype, extents, values));
  }
  void add(std::string_view name, const Tensor& input) {
    std::vector<std::string> sizes;
    for (int64_t extent : input.extents())
      sizes.push_back(number(0, 1) == 0 ? std::to_string(extent) : fmt::format("n{}", symbols_++));
    inputs_.push_back(input);
    operands_.push_back(fmt::format("%{}", name));
    declared_.push_back(fmt::format("%{}: {}[{}]", name, input.dtype(), fmt::join(sizes, ",")));
  }

  void expect_same(std::string_view op, const std::string& attributes, double tolerance) const {
    const std::string text =
        fmt::format("graph({}) {{ %y = {}({}, {}) return %y }}", fmt::join(declared_, ", "), op,
                    fmt::join(operands_, ", "), attributes);
    SCOPED_TRACE(text);
    const Data expected = run_text(text, inputs_), actual = evaluate(*decomposed(text), inputs_);
    if (tolerance == 0)
      expect_tensor(actual[0], expected[0].tensor());
    else
      expect_near(actual[0], expected[0].tensor(), tolerance);
  }

 private:
  std::mt19937_64 random_;
  Data inputs_;
  std::vector<std::string> declared_, operands_;
  int symbols_ = 0;
};

// A sum of a few dozen numbers below 3, each rounded.
double tolerance_of(DType dtype) { return dtype == DType::F64 ? 1e-12 : dtype == DType::F32 ? 2e-5 : 1e-2; }

const std::vector<DType> kDTypes = {DType::F64, DType::F32, DType::F16};

TEST(SampleNodes, GiveWhatGridSampleGives) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    Draw draw(seed);
    const auto dtype = draw.one_of(kDTypes), grid_dtype = draw.one_of(kDTypes);
    const auto rank = draw.number(1, 3);
    const auto mode = draw.one_of<std::string>({"nearest", "linear", "cubic"}),
               outside = draw.one_of<std::string>({"zeros", "border", "reflection"});
    Extents x = {draw.number(1, 2), draw.number(0, 3)}, grid = {x[0]};
    for (int64_t i = 0; i < rank; ++i) {
      x.push_back(draw.number(1, rank == 3 ? 3 : 5));
      grid.push_back(draw.number(rank == 1 ? 0 : 1, 3));
    }
    grid.push_back(rank);
    draw.add("x", dtype, x, -2, 2);
    std::vector<double> special = {-1, 1, 0, kNaN, kInf, -kInf};
    if (outside != "reflection")  // whose remainder needs every bit of the position
      special.push_back(6e4);
    draw.add("grid", grid_dtype, grid, -3, 3, special);
    draw.expect_same("grid_sample",
                     fmt::format("mode=\"{}\", outside=\"{}\", align_corners={}", mode, outside,
                                 draw.one_of<std::string>({"false", "true"})),
                     std::max(tolerance_of(dtype), grid_dtype == DType::F64 ? 0 : tolerance_of(DType::F32)));
  }
}

TEST(SampleNodes, TakeTheNearestOfAnyElements) {
  const std::string text =
      "graph(%x: str[1,1,3], %g: f32[1,4,1]) { %y = grid_sample(%x, %g, mode=\"nearest\") return %y }";
  const Data inputs = {Tensor::strings({"a", "b", "c"}, {1, 1, 3}), f32({1, 4, 1}, {-1, 0, 0.7, 4})};
  expect_tensor(evaluate(*decomposed(text), inputs)[0], Tensor::strings({"a", "b", "c", ""}, {1, 1, 4}));
}

TEST(SampleNodes, LeaveOutInfiniteElementsThatAreFarAway) {
  const std::string text = "graph(%x: f32[1,1,3], %g: f32[1,2,1]) { %y = grid_sample(%x, %g) return %y }";
  const Data inputs = {f32({1, 1, 3}, {kInf, 1, -kInf}), f32({1, 2, 1}, {-3, 3})};
  expect_tensor(evaluate(*decomposed(text), inputs)[0], f32({1, 1, 2}, {0, 0}));
}

TEST(SampleNodes, DoNotBlendIntegers) {
  expect_error<UnsupportedError>(
      [] { decomposed("graph(%x: i32[1,1,3], %g: f32[1,4,1]) { %y = grid_sample(%x, %g) return %y }"); },
      "grid_sample: between integers, the last bit of a weight may make a difference of 1");
}

TEST(SampleNodes, NeedToKnowRanks) {
  expect_error<UnsupportedError>(
      [] { decomposed("graph(%x: f32[*], %g: f32[1,4,1]) { %y = grid_sample(%x, %g) return %y }"); },
      "grid_sample: the rank of an operand is dynamic");
}

TEST(SampleNodes, GiveWhatDeformConvGives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const auto dtype = draw.one_of(kDTypes);
    const auto rank = draw.number(1, 3), groups = draw.number(1, 2), offset_groups = draw.number(1, 2);
    const Extents kernel = draw.numbers(rank, 1, 2), strides = draw.numbers(rank, 1, 2),
                  dilations = draw.numbers(rank, 1, 2), pads = draw.numbers(2 * rank, 0, 2);
    const int64_t channels = 2 * draw.number(1, 2);
    Extents x = {draw.number(1, 2), channels}, w = {groups * draw.number(1, 2), channels / groups},
            offset = {x[0], offset_groups * element_count(kernel) * rank},
            mask = {x[0], offset_groups * element_count(kernel)};
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t size = draw.number(3, 4), padded = size + pads[i] + pads[i + kernel.size()];
      x.push_back(size);
      w.push_back(kernel[i]);
      offset.push_back((padded - (kernel[i] - 1) * dilations[i] - 1) / strides[i] + 1);
      mask.push_back(offset.back());
    }
    draw.add("x", dtype, x, -2, 2);
    draw.add("w", dtype, w, -1, 1);
    draw.add("offset", dtype, offset, -2, 2, {0, 1, -2, kNaN, kInf, -kInf});
    if (draw.number(0, 1) == 0)
      draw.add("mask", dtype, mask, 0, 1);
    draw.expect_same(
        "deform_conv",
        fmt::format("groups={}, offset_groups={}, strides=[{}], dilations=[{}], pads=[{}]", groups,
                    offset_groups, fmt::join(strides, ","), fmt::join(dilations, ","), fmt::join(pads, ",")),
        tolerance_of(dtype));
  }
}

// Regions that begin and end on elements, on halves and in between, inside of images and outside.
Tensor draw_regions(Draw& draw, DType dtype, int64_t count, const std::vector<int64_t>& images) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    if (!images.empty())
      values.push_back(static_cast<double>(images[static_cast<size_t>(i)]));
    for (int corner = 0; corner < 4; ++corner)
      values.push_back(static_cast<double>(draw.number(-24, 72)) / draw.one_of<double>({8, 4, 3}));
  }
  return tensor(dtype, {count, std::ssize(values) / count}, values);
}

TEST(SampleNodes, GiveWhatRoiAlignGives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const auto dtype = draw.one_of(kDTypes);
    const int64_t count = draw.number(1, 3);
    const Extents x = {draw.number(1, 3), draw.number(1, 3), draw.number(1, 7), draw.number(1, 7)};
    draw.add("x", dtype, x, -2, 2);
    draw.add("regions", draw_regions(draw, dtype, count, {}));
    draw.add("images", Tensor::of(draw.numbers(count, 0, x[0] - 1)));
    draw.expect_same(
        "roi_align",
        fmt::format("size=[{}], samples={}, scale={}, mode=\"{}\", half_pixel={}",
                    fmt::join(draw.numbers(2, 1, 3), ","), draw.number(1, 3),
                    draw.one_of<double>({1, 0.5, 0.3}), draw.one_of<std::string>({"mean", "max"}),
                    draw.one_of<std::string>({"false", "true"})),
        tolerance_of(dtype));
  }
}

TEST(SampleNodes, GiveWhatMaxRoiPoolGives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const auto dtype = draw.one_of(kDTypes);
    const int64_t count = draw.number(1, 3);
    const Extents x = {draw.number(1, 3), draw.number(1, 3), draw.number(1, 7), draw.number(1, 7)};
    draw.add("x", dtype, x, -2, 2, {-kInf, kInf, kNaN, 0});
    draw.add("regions", draw_regions(draw, dtype, count, draw.numbers(count, 0, x[0] - 1)));
    draw.expect_same("max_roi_pool",
                     fmt::format("size=[{}], scale={}", fmt::join(draw.numbers(2, 1, 4), ","),
                                 draw.one_of<double>({1, 0.5, 0.3})),
                     0);
  }
}

TEST(SampleNodes, RefuseImagesThatAreNotThere) {
  for (double image : {-1, 2}) {
    EXPECT_THROW(evaluate(*decomposed("graph(%x: f32[2,1,2,2], %r: f32[1,5]) { %y = max_roi_pool(%x, %r, "
                                      "size=[1,1]) return %y }"),
                          {f32({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({1, 5}, {image, 0, 0, 1, 1})}),
                 UserError);
    EXPECT_THROW(
        evaluate(*decomposed("graph(%x: f32[2,1,2,2], %r: f32[1,4], %i: i64[1]) { %y = "
                             "roi_align(%x, %r, %i, size=[1,1], samples=1) return %y }"),
                 {f32({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({1, 4}, {0, 0, 1, 1}), i64({1}, {image})}),
        UserError);
  }
}

}  // namespace
}  // namespace tenon
