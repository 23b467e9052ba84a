#include <fstream>
#include <random>
#include <set>

#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/graph_text.h"
#include "source_tree.h"

namespace tenon {

using compiler::compile;
using runtime::Executor;
using runtime::HostStep;
using runtime::Step;

namespace {

// A graph over elements of T, and of n of them along a dimension.
struct Case {
  std::string graph;
  std::string dtypes = "f32 f16 i8";
  std::vector<int64_t> sizes = {4, 1, 0};  // what n stands for
  int64_t below = 3;                       // integers that are not T are drawn from -below to below - 1
  NumericsBudget numerics = NumericsBudget::Default;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string with_dtype(std::string text, const std::string& dtype) {
  for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
    text.replace(at, 1, dtype);
  return text;
}

class Inputs {
 public:
  Inputs(std::string dtype, int64_t below) : dtype_(std::move(dtype)), below_(below) {}

  Data operator()(const Graph& graph, int64_t size) {
    Data inputs;
    for (Value input : graph.inputs()) {
      Extents extents;
      for (const Dim& dim : input.shape().dims())
        extents.push_back(*dim.evaluate({{"n", size}}));
      inputs.emplace_back(draw(input.dtype(), extents));
    }
    return inputs;
  }

 private:
  Tensor draw(DType dtype, const Extents& extents) {
    std::vector<double> values(static_cast<size_t>(element_count(extents)));
    for (double& value : values)
      value = is_float(dtype) ? draw_float() : draw_integer(dtype);
    return tensor(dtype, extents, values);
  }
  double draw_float() {
    constexpr double special[] = {NAN, kInfinity, -kInfinity, -0.0};
    return random_() % 16 == 0 ? special[random_() % 4] : std::normal_distribution<double>(0, 2)(random_);
  }
  double draw_integer(DType dtype) {
    if (dtype == DType::Bool)
      return static_cast<double>(random_() % 2);
    const int64_t most = name(dtype) == dtype_ ? 200 : below_;
    return static_cast<double>(std::uniform_int_distribution<int64_t>(-most, most - 1)(random_));
  }

  std::string dtype_;
  int64_t below_;
  std::mt19937_64 random_{1};
};

double tolerance_of(DType dtype) {
  return dtype == DType::F64 ? 1e-12 : dtype == DType::F32 ? 1e-5 : dtype == DType::F16 ? 1e-3 : 8e-3;
}

// All but floats are exact; NaN and infinities stand where they should.
void expect_agreement(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(to_string(type_of(actual)), to_string(type_of(expected)));
  const std::vector<double> a = widen<double>(actual), b = widen<double>(expected);
  double scale = 0;
  for (double value : b)
    scale = std::isfinite(value) ? std::max(scale, std::abs(value)) : scale;
  const double allowed = is_float(actual.dtype()) ? scale * tolerance_of(actual.dtype()) : 0;
  for (size_t i = 0; i < b.size(); ++i)
    EXPECT_TRUE((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] || std::abs(a[i] - b[i]) <= allowed)
        << "element " << i << " is " << a[i] << ", expected " << b[i];
}

std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// What is refused by the one is refused by the other.
void expect_same(const Executor& program, const Graph& graph, const Data& inputs) {
  Data expected, actual;
  const std::string refusal = refusal_of([&] { expected = evaluate(graph, inputs); });
  const std::string other = refusal_of([&] { actual = program.run(inputs, {.threads = 2}); });
  EXPECT_EQ(refusal.empty(), other.empty()) << "reference: " << refusal << "\ncompiled: " << other;
  if (!refusal.empty() || !other.empty())
    return;
  for (size_t i = 0; i < expected.size(); ++i)
    expect_agreement(actual[i].tensor(), expected[i].tensor());
}

void expect_compiled(const Case& c) {
  std::istringstream dtypes(c.dtypes);
  for (std::string dtype; dtypes >> dtype;) {
    const std::string text = with_dtype(c.graph, dtype);
    SCOPED_TRACE(text);
    const std::unique_ptr<Graph> graph = parse_graph(text);
    const std::unique_ptr<Executor> program = compile(
        *graph, {.target = this_machine(), .numerics = c.numerics, .cache = codegen::default_cache()});
    for (const Step& step : program->program().steps)
      if (const auto* host = std::get_if<HostStep>(&step))
        ADD_FAILURE() << host->op << " is left to the reference evaluator";
    Inputs inputs(dtype, c.below);
    for (int64_t size : c.sizes) {
      SCOPED_TRACE(fmt::format("n = {}", size));
      for (int round = 0; round < 3; ++round)
        expect_same(*program, *graph, inputs(*graph, size));
    }
  }
}

// The ops in braces are for what stands before them.
std::string ints(std::string_view name, const std::string& values) {
  const auto count = std::ranges::count(values, ',') + 1;
  return fmt::format("%{} = constant(value=i64[{}] {{{}}})\n", name, count, values);
}
std::string number(std::string_view name, int64_t value) {
  return fmt::format("%{} = constant(value=i64[] {{{}}})\n", name, value);
}
std::string body(const std::string& inputs, const std::string& nodes) {
  return fmt::format("graph({}) {{ {} return %y }}", inputs, nodes);
}

TEST(Lower, Pad) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    for (const char* pads : {"1,2", "0,5", "-1,2", "3,-1", "-2,-1"}) {
      const std::string pad = fmt::format("%y = pad(%x, %p, axes=[1], mode=\"{}\")", mode);
      expect_compiled({body("%x: T[2,n]", ints("p", pads) + pad), "f32 bool"});
      expect_compiled({body("%x: T[n,5]", ints("p", pads) + pad), "i16 bf16"});
    }
  // Nothing is left that could be added.
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    expect_compiled(
        {body("%x: T[n,1]", ints("p", "-1,2") + fmt::format("%y = pad(%x, %p, axes=[1], mode=\"{}\")", mode)),
         "f32",
         {4, 1}});
  expect_compiled(
      {body("%x: T[n,3], %v: T[1]", ints("p", "1,0,2,1") + "%y = pad(%x, %p, %v, axes=[-1, 0])")});
}

TEST(Lower, TileAndReverse) {
  expect_compiled({body("%x: T[n,3]", ints("r", "2,3") + "%y = tile(%x, %r)"), "f32 bool i4"});
  expect_compiled({body("%x: T[2,n]", ints("r", "0,1") + "%y = tile(%x, %r)")});
  expect_compiled(
      {body("%x: T[n,3,2], %l: i64[3]", "%y = reverse_sequence(%x, %l, time_axis=0, batch_axis=1)"),
       "f32 i8",
       {5, 2},
       3});
}

TEST(Lower, OneHot) {
  for (int axis : {-1, 0, 1})
    expect_compiled({body("%i: T[n,2], %v: f16[2]",
                          number("d", 3) + fmt::format("%y = one_hot(%i, %d, %v, axis={})", axis)),
                     "i64 u8 f32 i32"});
}

TEST(Lower, Generators) {
  expect_compiled({body("%x: T[n]", R"(%s = constant(value=f32[] {0.5}) %l = constant(value=f32[] {4.0})
      %d = constant(value=f32[] {0.3}) %r = range(%s, %l, %d) %y = cast(%r, to=f64))")});
  expect_compiled(
      {body("%x: f32[n,7]", number("zero", 0) + number("two", 2) + number("i", 0) +
                                "%s = shape(%x) %l = gather(%s, %i) %y = range(%zero, %l, %two)")});
  for (int64_t diagonal : {int64_t{0}, int64_t{2}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    expect_compiled(
        {body("%x: f32[n,3]", fmt::format("%s = shape(%x) %y = eye(%s, dtype=f16, diagonal={})", diagonal))});
    for (bool upper : {false, true})
      expect_compiled(
          {body("%x: T[2,n,3]", fmt::format("%y = triangle(%x, upper={}, diagonal={})", upper, diagonal)),
           "f32 bool i64"});
  }
  for (bool periodic : {false, true})
    for (int size : {0, 1, 7})
      expect_compiled({body("%x: f32[n]",
                            number("s", size) + fmt::format("%y = cosine_window(%s, coefficients=[0.42, 0.5, "
                                                            "0.08], periodic={}, dtype=f64)",
                                                            periodic))});
}

TEST(Lower, Cumulative) {
  for (const char* op : {"cumulative_sum", "cumulative_prod"})
    for (const char* attributes :
         {"", ", exclusive=true", ", reverse=true", ", exclusive=true, reverse=true"})
      for (int axis : {0, 1})
        expect_compiled({body("%x: T[n,3]", fmt::format("%y = {}(%x, axis={}{})", op, axis, attributes)),
                         "f32 f16 i8 u32"});
}

TEST(Lower, RunningExtremes) {
  for (const char* op : {"cumulative_max", "cumulative_min"})
    for (int axis : {0, 1})
      expect_compiled(
          {body("%x: T[n,3]", fmt::format("%y, %i = {}(%x, axis={})", op, axis)), "f32 f16 i8 u32"});
  for (const char* attributes : {"", ", reverse=true"})
    for (int axis : {0, 1})
      expect_compiled(
          {body("%x: T[n,3]", fmt::format("%y = cumulative_log_sum_exp(%x, axis={}{})", axis, attributes)),
           "f64 f32 f16"});
}

TEST(Lower, SpecialFunctions) {
  for (const char* op :
       {"bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "digamma", "erfcx", "erfinv", "lgamma"})
    for (const char* factor : {"0.875", "9.0", "19.5"})
      expect_compiled(
          {body("%x: T[n]",
                fmt::format("%f = constant(value=T[] {{{}}}) %z = mul(%x, %f) %y = {}(%z)", factor, op)),
           "f64 f32 f16"});
}

// The sum may be more than the dtype holds.
TEST(Lower, MeanOfIntegers) {
  expect_compiled({body("%x: T[n,9]", "%y = reduce_mean(%x, axes=[0, 1])"), "u2 i8 u16 f16"});
}

TEST(Lower, Scatter) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    expect_compiled(
        {body("%x: T[n,3], %i: i64[n,2], %u: T[n,2]",
              fmt::format("%y = scatter_elements(%x, %i, %u, axis=1, reduction=\"{}\")", reduction)),
         "f32 f16 i8 bool"});
    expect_compiled(
        {body("%x: T[3,2], %i: i32[n,2], %u: T[n,2]",
              fmt::format("%y = scatter_elements(%x, %i, %u, axis=0, reduction=\"{}\")", reduction)),
         "f32 i8",
         {8, 1, 0},
         3});
    expect_compiled({body("%x: T[3,3,2], %i: i64[n,2], %u: T[n,2]",
                          fmt::format("%y = scatter_nd(%x, %i, %u, reduction=\"{}\")", reduction)),
                     "f32 bf16 u8 bool",
                     {8, 1, 0},
                     3});
  }
  expect_compiled(
      {body("%x: T[4], %i: i64[n], %u: T[n]", "%y = scatter_elements(%x, %i, %u)"), "f32 i8", {5, 1, 0}, 5});
  expect_compiled(
      {body("%x: T[n], %i: i64[2,1], %u: T[2]", "%y = scatter_nd(%x, %i, %u)"), "f32", {5, 1, 0}, 6});
}

TEST(Lower, WriteAlong) {
  for (bool circular : {false, true}) {
    const std::string write = fmt::format("%y = write_along(%x, %u, %s, axis=1, circular={})", circular);
    expect_compiled({body("%x: T[2,5,3], %u: T[2,n,3], %s: i64[2]", write), "f32 f16 i8", {2, 1, 0, 6}, 4});
    expect_compiled({body("%x: T[n,4], %u: T[n,4], %s: i64[n]", write), "f32", {3, 1, 0}, 2});
  }
  expect_compiled(
      {body("%x: T[2,5,3], %u: T[2,n,3]", "%y = write_along(%x, %u, axis=1)"), "f32 i8", {2, 5, 0, 6}});
}

TEST(Lower, ResizeMovesElements) {
  for (const char* positions : {"half_pixel", "half_pixel_or_first", "half_pixel_symmetric", "shifted",
                                "asymmetric", "align_corners"})
    for (const char* round : {"half_down", "half_up", "down", "up"}) {
      const std::string attributes =
          fmt::format("axes=[1,2], positions=\"{}\", round=\"{}\"", positions, round);
      expect_compiled(
          {body("%x: T[n,5,3]", ints("s", "7,2") + fmt::format("%y = resize(%x, sizes=%s, {})", attributes)),
           "f32 bool"});
      expect_compiled({body("%x: T[2,5,n]", "%s = constant(value=f32[2] {0.6,2.5})" +
                                                fmt::format("%y = resize(%x, scales=%s, {})", attributes)),
                       "i8"});
    }
}

TEST(Lower, ResizeBlendsElements) {
  for (const char* mode : {"linear", "cubic"})
    for (const char* attributes : {"", ", antialias=true", ", exclude_outside=true",
                                   ", positions=\"align_corners\"", ", positions=\"shifted\""}) {
      const std::string resize =
          fmt::format("%y = resize(%x, sizes=%s, axes=[1,2], mode=\"{}\"{})", mode, attributes);
      expect_compiled({body("%x: T[n,5,3]", ints("s", "7,2") + resize), "f32 f64"});
      expect_compiled({body("%x: T[n,5,3]", ints("s", "5,4") + resize), "f16"});
    }
  // Only running tells whether anything is resized at all.
  expect_compiled({body("%x: T[n]", ints("s", "4") + "%y = resize(%x, sizes=%s, axes=[0], mode=\"linear\")"),
                   "f32",
                   {4, 1, 3, 0}});
}

TEST(Lower, ResizeCropsAndKeepsTheAspect) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    expect_compiled({body("%x: T[n,4,3]", ints("s", "5,5") + fmt::format(R"(
        %r = constant(value=f32[4] {{-0.3,0.2,0.7,1.4}})
        %y = resize(%x, sizes=%s, region=%r, axes=[1,2], mode="{}", positions="crop", outside_value=7.0))",
                                                                         mode)),
                     "f32"});
    for (const char* aspect : {"not_larger", "not_smaller"})
      expect_compiled(
          {body("%x: T[n,4,3]",
                ints("s", "7,9") +
                    fmt::format("%y = resize(%x, sizes=%s, axes=[1,2], mode=\"{}\", aspect=\"{}\")", mode,
                                aspect)),
           "f32"});
  }
}

TEST(Lower, Quantize) {
  for (const char* to : {"i8", "u8", "i4", "i16", "i32"}) {
    expect_compiled(
        {body("%x: T[n,3], %s: f32[3]", fmt::format("%y = quantize(%x, %s, to={})", to)), "f32 f16 i32"});
    expect_compiled({body(fmt::format("%x: T[n,3], %s: f16[1], %z: {}[1]", to),
                          fmt::format("%y = quantize(%x, %s, %z, to={})", to)),
                     "f32 f64"});
    expect_compiled({body(fmt::format("%x: T[n,5], %s: f32[n,3], %z: {}[n,3]", to),
                          fmt::format("%y = quantize(%x, %s, %z, to={}, block_size=2)", to)),
                     "f32"});
  }
  expect_compiled(
      {body("%x: T[n,3], %s: f32[3], %z: T[3]", "%y = dequantize(%x, %s, %z, to=f32)"), "i8 u8 i32"});
  expect_compiled(
      {body("%x: T[n,5], %s: f32[n,3], %z: T[n,3]", "%y = dequantize(%x, %s, %z, to=f32, block_size=2)"),
       "i8 u8 i32"});
  // The result alone is narrow.
  expect_compiled({body("%x: T[n,3], %s: f32[3]", "%y = dequantize(%x, %s, to=bf16)"), "i8 i32 f32 bf16"});
}

// Others than strict ones may make NaN of infinite weights (compiler/conv_transpose_to_conv.h).
TEST(Lower, ConvTranspose) {
  expect_compiled({.graph = body("%x: T[n,4,5], %w: T[4,3,2]",
                                 "%y = conv_transpose(%x, %w, strides=[2], dilations=[1], "
                                 "pads=[1,0], output_padding=[1])"),
                   .dtypes = "f32 i8",
                   .numerics = NumericsBudget::Strict});
  expect_compiled(
      {.graph = body("%x: T[1,4,n,3], %w: T[4,2,2,3]",
                     "%y = conv_transpose(%x, %w, groups=2, strides=[1,3], dilations=[2,1], pads=[0,1,1,2], "
                     "output_padding=[0,0])"),
       .dtypes = "f32 f16",
       .numerics = NumericsBudget::Strict});
}

TEST(Lower, Einsum) {
  for (const char* equation : {"ij,jk->ik", "ij,ik->jk", "ij,kj->", "...j,...j->...", "ij,ij->ij"})
    expect_compiled(
        {body("%a: T[n,3], %b: T[n,3]", fmt::format("%y = einsum([%a, %b], equation=\"{}\")", equation)),
         "f32 i8",
         {3, 3}});
  expect_compiled(
      {body("%a: T[n,3], %b: T[3,4], %c: T[1,4]", "%y = einsum([%a, %b, %c], equation=\"ij,jk,lk->li\")")});
  expect_compiled({body("%a: T[3,3,n]", "%y = einsum([%a], equation=\"iij->ji\")")});
  expect_compiled({body("%a: T[3,3,n]", "%y = einsum([%a], equation=\"iij\")")});
}

TEST(Lower, ChoicesAlongAnAxis) {
  for (int axis : {0, 1})
    expect_compiled({body("%x: T[n,3]", fmt::format("%y = hardmax(%x, axis={})", axis)), "f32 f16"});
  expect_compiled({R"(graph(%x: T[3,n]) { %a = arg_max(%x, axis=0) %b = arg_min(%x, axis=0)
      %c = arg_max(%x, axis=0, last=true) return %a, %b, %c })"});
  expect_compiled({body("%x: T[2,n]", "%y = arg_min(%x, axis=1, keep_dims=true)"), "f32 bool i8", {9, 1, 0}});
}

TEST(Lower, Frames) {
  expect_compiled({body("%x: T[2,n,3]", number("l", 3) + number("s", 2) + "%y = frames(%x, %l, %s, axis=1)"),
                   "f32 bool",
                   {8, 3, 2, 0}});
}

TEST(Lower, Images) {
  for (bool align_corners : {false, true}) {
    expect_compiled(
        {body("%t: T[2,2,3]", ints("s", "2,1,3,1") +
                                  fmt::format("%y = affine_grid(%t, %s, align_corners={})", align_corners)),
         "f32 f64"});
    expect_compiled(
        {body("%t: T[1,3,4]", ints("s", "1,1,3,2,2") +
                                  fmt::format("%y = affine_grid(%t, %s, align_corners={})", align_corners)),
         "f32"});
  }
  expect_compiled(
      {body("%x: T[n,12,6]", ints("i", "5,4") + ints("b", "2,3") +
                                 "%y = col2im(%x, %i, %b, strides=[2,1], dilations=[1,1], pads=[0,1,0,0])"),
       "f32 f16 i8"});
  for (const char* counted : {"false", "true"})
    expect_compiled(
        {fmt::format(R"(graph(%x: T[n,2,5,6,4]) {{ %y = average_pool(%x, kernel=[2,3,2], strides=[1,2,1],
          dilations=[1,1,1], pads=[1,1,1,0,1,1], count_padding={}) return %y }})",
                     counted),
         "f32 f64"});
  expect_compiled({body("%x: T[n,1,2], %i: i64[n,1,2]", ints("s", "1,1,8") + "%y = max_unpool(%x, %i, %s)"),
                   "f32 i8",
                   {2, 1, 0},
                   9});
}

TEST(Lower, MaxPoolWithIndices) {
  for (bool column_major : {false, true})
    expect_compiled(
        {fmt::format(R"(graph(%x: T[n,2,5,4]) {{ %y, %i = max_pool(%x, kernel=[2,3], strides=[2,1],
        dilations=[1,1], pads=[1,1,1,0], column_major={}) return %y, %i }})",
                     column_major),
         "f32 f16 i8 u64 bool"});
  // Where n is 1, a window sees only padding.
  expect_compiled(
      {R"(graph(%x: T[2,1,n]) { %y, %i = max_pool(%x, kernel=[2], strides=[2], dilations=[2], pads=[1,1],
       round_up=true) return %y, %i })",
       "f32 i8",
       {6, 1}});
}

TEST(Lower, MapLabels) {
  expect_compiled(
      {body("%x: T[n]",
            "%y = map_labels(%x, keys=T[3] {1,2,1}, values=f32[3] {0.5,1.5,2.5}, otherwise=f32[] {-1.0})"),
       "i8 i64"});
  expect_compiled(
      {body("%x: f32[n]",
            "%y = map_labels(%x, keys=f32[3] {nan,0.0,inf}, values=i64[3] {1,2,3}, otherwise=i64[] {4})"),
       "f32",
       {64}});
}

TEST(Lower, Copies) {
  expect_compiled({body("%x: T[n]", "%a = copy(%x) %y = to_device(%a, device=\"cpu\")"), "f32 bool"});
}

TEST(Lower, TellsSizesFromLoopVariables) {
  const auto graph = parse_graph(R"(graph(%x: f32[i1,i0], %z: f32[r0,r0_]) {
      %a = cumulative_sum(%x, axis=1, reverse=true) %p = constant(value=i64[2] {1,2})
      %b = pad(%z, %p, axes=[1], mode="wrap") return %a, %b })");
  const Data inputs = {f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({1, 2}, {1, 2})};
  const Data y = compile(*graph, here())->run(inputs);
  expect_tensor(y[0], f32({2, 3}, {6, 5, 3, 15, 11, 6}));
  expect_tensor(y[1], f32({1, 5}, {2, 1, 2, 1, 2}));
}

// The first column of the table in docs/compiler.md.
std::set<std::string> documented_ops() {
  std::ifstream file(source_tree() / "docs/compiler.md");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `"))
      for (size_t open = line.find('`'), end = line.find('|', 1); open < end; open = line.find('`', open)) {
        const size_t close = line.find('`', open + 1);
        names.insert(line.substr(open + 1, close - open - 1));
        open = close + 1;
      }
  return names;
}

TEST(Lower, LeavesToTheReferenceWhatIsDocumented) {
  register_ops();
  std::set<std::string> left;
  for (const OpDef* op : registered_ops())
    if (op->lower == nullptr && op->decompose == nullptr && !op->traits.reshapes && op->name != "constant" &&
        op->name != "parameter")
      left.emplace(op->name);
  EXPECT_EQ(documented_ops(), left);
}

}  // namespace
}  // namespace tenon
