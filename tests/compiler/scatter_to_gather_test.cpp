#include "passes/target/scatter_to_gather.h"

#include "base/expect_error.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;
using compiler::fusion_of;
using compiler::FusionReport;
using runtime::ElementError;
using runtime::Executor;

namespace {

int64_t count_of(const Graph& graph, std::string_view op) {
  int64_t count = 0;
  for (const Node* node : graph.nodes())
    count += node->is(op);
  return count;
}

bool fetches_rows(std::string_view text) {
  const std::unique_ptr<Graph> graph = read(text);
  Journal journal;
  scatter_to_gather(*graph, journal);
  return count_of(*graph, "overlay") > 0;
}

// Rows of updates at one index each, as exporters write it: indices are repeated for all elements of a row.
std::string rows(std::string_view x, std::string_view index, std::string_view updates, std::string_view shape,
                 std::string_view attributes = "") {
  return fmt::format(
      "graph g(%x: {}, %i: i64{}, %u: {}) {{ %s = constant(value=i64{}) %j = broadcast(%i, %s) "
      "%y = scatter_elements(%x, %j, %u{}) return %y }}",
      x, index, updates, shape, attributes);
}

Tensor indices(const Extents& extents, const std::vector<int64_t>& values) {
  return Tensor::of(std::span<const int64_t>(values), extents);
}

void expect_same(const Graph& graph, const Data& inputs) {
  const Data wanted = evaluate(graph, inputs);
  const std::unique_ptr<Executor> program = compile(graph, without_cache());
  for (const int threads : {1, 3}) {
    const Data got = program->run(inputs, {.seed = 0, .threads = threads});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(identical(got[i].tensor(), wanted[i].tensor())) << "output " << i;
  }
}

// Also where indices are negative, or name a place twice: the last update stays. And where there are none.
TEST(PlaceRows, GivesWhatScatteringElementsGives) {
  for (const std::string& text :
       {rows("f32[n,4,5]", "[k,1,1]", "f32[k,4,5]", "[3] {1, 4, 5}"),
        rows("f32[n,4,5]", "[k,1,1]", "f32[k,4,5]", "[3] {1, 4, 5}", ", axis=-3")}) {
    EXPECT_TRUE(fetches_rows(text)) << text;
    for (const std::vector<int64_t>& at :
         std::vector<std::vector<int64_t>>{{3, 0}, {-1, 2, -2}, {1, 2, 1, -3}, {}}) {
      const auto count = std::ssize(at);
      expect_same(*read(text), {numbers(DType::F32, {4, 4, 5}, 1), indices({count, 1, 1}, at),
                                numbers(DType::F32, {count, 4, 5}, 2)});
    }
  }
  const std::string along_columns = rows("i8[4,n,5]", "[k,1]", "i8[4,k,5]", "[3] {4, 1, 5}", ", axis=1");
  EXPECT_TRUE(fetches_rows(along_columns));
  expect_same(*read(along_columns), {numbers(DType::I8, {4, 3, 5}, 1), indices({3, 1}, {2, 0, 2}),
                                     numbers(DType::I8, {4, 3, 5}, 2)});
}

TEST(PlaceRows, GivesWhatScatteringTuplesGives) {
  const std::string one =
                        "graph g(%x: f16[n,9], %i: i64[k,1], %u: f16[k,9]) "
                        "{ %y = scatter_nd(%x, %i, %u) return %y }",
                    two =
                        "graph g(%x: f32[2,n,3,3], %i: i32[k,2], %u: f32[k,3,3]) "
                        "{ %y = scatter_nd(%x, %i, %u) return %y }";
  EXPECT_TRUE(fetches_rows(one) && fetches_rows(two));
  expect_same(*read(one),
              {numbers(DType::F16, {3, 9}, 1), indices({3, 1}, {1, -1, 1}), numbers(DType::F16, {3, 9}, 2)});
  expect_same(*read(one),
              {numbers(DType::F16, {3, 9}, 1), indices({0, 1}, {}), numbers(DType::F16, {0, 9}, 2)});
  expect_same(*read(two),
              {numbers(DType::F32, {2, 4, 3, 3}, 1),
               Tensor::of(std::span<const int32_t>(std::vector<int32_t>{1, 3, 0, -2, 1, -1}), {3, 2}),
               numbers(DType::F32, {3, 3, 3}, 2)});
}

// What x is made of, and updates before others, need no memory in between.
TEST(PlaceRows, ComputesAChainAtOnce) {
  const std::unique_ptr<Graph> graph = read(R"(
    graph g(%n: f32[n,9], %i: i64[k,1], %u: f32[k,9], %j: i64[m,1], %v: f32[m,9]) {
      %zero = constant(value=f32[] {0})
      %shape = shape(%n)
      %x = broadcast(%zero, %shape)
      %a = scatter_nd(%x, %i, %u)
      %y = scatter_nd(%a, %j, %v)
      return %y
    })");
  const FusionReport report = fusion_of(*graph, without_cache());
  EXPECT_EQ(report.after.back().sources, (std::vector<std::string>{"%y", "%a", "%x"}));
  expect_same(*graph,
              {numbers(DType::F32, {5, 9}, 3), indices({3, 1}, {0, 3, 1}), numbers(DType::F32, {3, 9}, 1),
               indices({2, 1}, {-1, 3}), numbers(DType::F32, {2, 9}, 2)});
}

TEST(PlaceRows, LeavesUpdatesThatAreCombinedWithWhatStandsThere) {
  for (const char* reduction : {"add", "mul", "max", "min"}) {
    const std::string attribute = fmt::format(", reduction=\"{}\"", reduction);
    EXPECT_FALSE(fetches_rows(rows("f32[n,4,5]", "[k,1,1]", "f32[k,4,5]", "[3] {1, 4, 5}", attribute)));
    EXPECT_FALSE(
        fetches_rows(fmt::format("graph g(%x: f32[n,9], %i: i64[k,1], %u: f32[k,9]) "
                                 "{{ %y = scatter_nd(%x, %i, %u{}) return %y }}",
                                 attribute)));
  }
}

TEST(PlaceRows, LeavesWhatIsNoRow) {
  // An index for each element, …
  EXPECT_FALSE(
      fetches_rows("graph g(%x: f32[n,9], %i: i64[k,9], %u: f32[k,9]) "
                   "{ %y = scatter_elements(%x, %i, %u) return %y }"));
  // … indices that differ along another axis, …
  EXPECT_FALSE(fetches_rows(rows("f32[n,4,5]", "[k,4,1]", "f32[k,4,5]", "[3] {1, 1, 5}")));
  // … one index for all updates, …
  EXPECT_FALSE(fetches_rows(rows("f32[n,9]", "[9]", "f32[2,9]", "[2] {2, 1}")));
  EXPECT_FALSE(fetches_rows(rows("f32[n,9]", "[1,1]", "f32[2,9]", "[2] {2, 9}")));
  // … updates of a part of a row, and rows of few elements.
  EXPECT_FALSE(fetches_rows(rows("f32[n,20]", "[k,1]", "f32[k,9]", "[2] {1, 9}")));
  EXPECT_FALSE(fetches_rows(rows("f32[n,4]", "[k,1]", "f32[k,4]", "[2] {1, 4}")));
  EXPECT_FALSE(
      fetches_rows("graph g(%x: f32[n], %i: i64[k,1], %u: f32[k]) "
                   "{ %y = scatter_nd(%x, %i, %u) return %y }"));
  EXPECT_FALSE(fetches_rows(rows("str[n,9]", "[k,1]", "str[k,9]", "[2] {1, 9}")));
}

TEST(PlaceRows, RefusesAnIndexThatIsOutOfRange) {
  const std::unique_ptr<Graph> graph = read(rows("f32[n,9]", "[k,1]", "f32[k,9]", "[2] {1, 9}"));
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (const int64_t index : {4, -5})
    EXPECT_THROW(program->run({numbers(DType::F32, {4, 9}, 1), indices({1, 1}, {index}),
                               numbers(DType::F32, {1, 9}, 2)}),
                 ElementError);
}

}  // namespace
}  // namespace tenon
