#include <cmath>

#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::CompileContext;

namespace {

std::unique_ptr<Graph> transform(std::string_view type, std::string_view attributes,
                                 std::string_view length = "0") {
  return read(
      fmt::format("graph g(%x: {}) {{ %l = constant(value=i64[] {{{}}}) %y = dft(%x, {}{}) return %y }}",
                  type, length, length == "0" ? "" : "%l, ", attributes));
}

bool runs_by_reference(const Graph& graph, NumericsBudget numerics = NumericsBudget::Default) {
  CompileContext options = without_cache();
  options.numerics = numerics;
  return has_host_steps(compile(graph, options)->program());
}

TEST(MultiplySignals, GivesWhatTheReferenceGives) {
  for (const char* dtype : {"f32", "f64"})
    for (const auto& [shape, attributes, length] :
         {std::tuple{"[n,20,1]", "axis=1, onesided=true", "0"},
          {"[n,7,2]", "axis=-2, inverse=true", "0"},
          {"[5,n,2]", "axis=0", "8"},
          {"[2,6,2,n,2]", "axis=1", "4"},
          {"[n,11,2]", "axis=1, onesided=true, inverse=true", "0"},
          {"[n,11,2]", "axis=1, onesided=true, inverse=true", "19"}}) {
      const std::unique_ptr<Graph> graph = transform(std::string(dtype) + shape, attributes, length);
      SCOPED_TRACE(attributes);
      EXPECT_FALSE(runs_by_reference(*graph));
      for (const int64_t n : {1, 4})
        expect_as_evaluated(*graph, {{"n", n}});
    }
}

// What a transform does not look at may be anything.
TEST(MultiplySignals, LeavesOutWhatIsCutOff) {
  const std::unique_ptr<Graph> graph = transform("f32[1,3,1]", "axis=1", "2");
  Tensor x(DType::F32, {1, 3, 1});
  const std::span<float> elements = x.mutable_data<float>();
  elements[0] = 1;
  elements[1] = 2;
  elements[2] = INFINITY;
  const Tensor y = std::get<Tensor>(compile(*graph, without_cache())->run({x}).front());
  EXPECT_EQ(widen<double>(y), (std::vector<double>{3, 0, -1, 0}));
}

// Lengths with one factor to split off, with several, and with large prime factors.
TEST(MultiplySignals, FactorsLongOnes) {
  for (const auto& [shape, attributes, length] :
       {std::tuple{"[n,516,1]", "axis=1", "0"},
        {"[n,1024,1]", "axis=1, onesided=true", "0"},
        {"[2,700,n,2]", "axis=1, inverse=true", "0"},
        {"[700,2]", "axis=0", "640"},
        {"[n,700,1]", "axis=1, onesided=true", "1025"},
        {"[n,321,2]", "axis=1, onesided=true, inverse=true", "0"},
        {"[n,301,2]", "axis=1, onesided=true, inverse=true", "801"},
        {"[2,6000,2]", "axis=1", "0"},
        {"[n,521,1]", "axis=1, onesided=true", "0"},
        {"[n,1031,2]", "axis=1, inverse=true", "0"},
        {"[n,522,2]", "axis=1, onesided=true, inverse=true", "1042"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", shape, attributes, length));
    const std::unique_ptr<Graph> graph = transform(std::string("f32") + shape, attributes, length);
    EXPECT_FALSE(runs_by_reference(*graph));
    expect_as_evaluated(*graph, {{"n", 3}});
  }
  expect_as_evaluated(*transform("f64[n,1042,1]", "axis=1"), {{"n", 1}});
}

// The imaginary parts of what mirrors itself, and what is beyond half a spectrum.
TEST(MultiplySignals, LeavesOutWhatAFactoredOneDoesNotLookAt) {
  const std::unique_ptr<Graph> graph =
      transform("f32[1,400,2]", "axis=1, onesided=true, inverse=true", "640");
  Tensor x = numbers(DType::F32, {1, 400, 2}, 1);
  const Tensor wanted = std::get<Tensor>(compile(*graph, without_cache())->run({x}).front());
  const std::span<float> elements = x.mutable_data<float>();
  elements[1] = elements[641] = elements[642] = elements[799] = INFINITY;
  const Tensor y = std::get<Tensor>(compile(*graph, without_cache())->run({x}).front());
  EXPECT_EQ(widen<double>(y), widen<double>(wanted));
}

TEST(MultiplySignals, LeavesDynamicLengthsAndStrictNumericsAlone) {
  EXPECT_TRUE(runs_by_reference(*transform("f32[1,1048577,1]", "axis=1")));
  EXPECT_TRUE(runs_by_reference(*transform("f32[2,n,1]", "axis=1")));
  EXPECT_TRUE(runs_by_reference(*transform("f32[2,20,1]", "axis=1"), NumericsBudget::Strict));
}

}  // namespace
}  // namespace tenon
