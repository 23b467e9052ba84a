#include <cmath>
#include <limits>
#include <random>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

void refuse(std::string_view signature, std::string_view call, const std::string& message) {
  expect_error<UserError>([&] { parse_graph(fmt::format("graph({})\n{{ {} return %x }}", signature, call)); },
                          message);
}

Data top_k(const Tensor& x, double k, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}, %k: i64[1]) {{ %v, %i = top_k(%x, %k{}) return %v, %i }}",
                              type_of(x), attributes),
                  {x, i64({1}, {k})});
}

TEST(TopK, OrdersAndBreaksTiesByPosition) {
  const Tensor x = f32({2, 4}, {1, 3, 3, -kInf, kNaN, -0.0, 0, kInf});
  const Data greatest = top_k(x, 3);
  expect_tensor(greatest[0], f32({2, 3}, {3, 3, 1, kNaN, kInf, -0.0}));
  expect_tensor(greatest[1], i64({2, 3}, {1, 2, 0, 0, 3, 1}));
  const Data least = top_k(x, 2, ", largest=false");
  expect_tensor(least[0], f32({2, 2}, {-kInf, 1, -0.0, 0}));
  expect_tensor(least[1], i64({2, 2}, {3, 0, 1, 2}));
}

TEST(TopK, WorksAlongAnyAxis) {
  const Data result = top_k(f32({2, 1, 2}, {1, 4, 3, 2}), 1, ", axis=0");
  expect_tensor(result[0], f32({1, 1, 2}, {3, 4}));
  expect_tensor(result[1], i64({1, 1, 2}, {1, 0}));
}

// Few of them by a heap, with blocks of which none is among them; more by a partition.
TEST(TopK, SelectsFewAndManyAlike) {
  constexpr int64_t size = 1003;
  std::mt19937_64 random(1);
  for (const std::string_view attributes : {"", ", largest=false"})
    for (const std::string_view order : {"random", "ascending", "descending", "nan"}) {
      std::vector<double> values;
      for (int64_t i = 0; i < size; ++i)
        values.push_back(order == "ascending"    ? static_cast<double>(i / 2)
                         : order == "descending" ? static_cast<double>(-i / 2)
                         : order == "nan"        ? (i % 3 == 0 ? kNaN : static_cast<double>(i % 7))
                                                 : static_cast<double>(random() % 400) - 200);
      for (const DType dtype : {DType::F32, DType::F64, DType::I64}) {
        if (dtype == DType::I64 && order == "nan")
          continue;
        const Tensor row = tensor(dtype, {1, size}, values), column = tensor(dtype, {size, 1}, values);
        const std::vector<int64_t> all = as_ints(std::get<Tensor>(top_k(row, size, attributes)[1]));
        for (const int64_t k : {1, 2, 100, 125, 126, 900, 1002}) {
          const std::vector<int64_t> first(all.begin(), all.begin() + k);
          SCOPED_TRACE(fmt::format("{}{} of {}", k, attributes, order));
          EXPECT_EQ(as_ints(std::get<Tensor>(top_k(row, k, attributes)[1])), first);
          EXPECT_EQ(as_ints(std::get<Tensor>(top_k(column, k, fmt::format("{}, axis=0", attributes))[1])),
                    first);
        }
      }
    }
}

TEST(TopK, MayBeAskedForNothing) {
  expect_tensor(top_k(f32({2}, {1, 2}), 0)[0], f32({0}, {}));
  expect_tensor(top_k(f32({0, 2}, {}), 1)[1], i64({0, 1}, {}));
}

TEST(TopK, ComparesBigIntegersExactly) {
  const uint64_t greatest = std::numeric_limits<uint64_t>::max();
  expect_tensor(top_k(Tensor::of(std::vector<uint64_t>{greatest - 1, greatest}), 1)[1], i64({1}, {1}));
}

TEST(TopK, TakesTheSizeFromK) {
  const auto type = [](std::string_view k) {
    return output_type(
        fmt::format("graph(%x: f32[n,8], %s: f32[m]) {{ {} %v, %i = top_k(%x, %k) return %i }}", k));
  };
  EXPECT_EQ(type("%k = constant(value=i64[] {3})"), "i64[n,3]");
  EXPECT_EQ(type("%k = shape(%s)"), "i64[n,m]");
}

TEST(TopK, RefusesMoreThanThereAre) {
  refuse("%x: f32[2,3]", "%k = constant(value=i64[1] {4}) %v, %i = top_k(%x, %k)",
         "line 2, column 44: top_k: k is 4, but axis 1 has 3 elements\n  x  %x: f32[2,3]\n  k  %k: i64[1]");
  refuse("%x: f32[2,3], %k: i64[2]", "%v, %i = top_k(%x, %k)",
         "line 2, column 12: top_k: k must be one number\n  x  %x: f32[2,3]\n  k  %k: i64[2]");
  expect_error<UserError>(
      [] {
        top_k(f32({2}, {1, 2}), 3);
      },
      "node %v: top_k: k is 3, but axis 0 has 2 elements");
  expect_error<UserError>(
      [] {
        top_k(f32({2}, {1, 2}), -1);
      },
      "node %v: top_k: k is -1, but axis 0 has 2 elements");
}

Data unique(const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y, %f, %i, %c = unique(%x, {}) return %y, %f, %i, %c }}",
                              type_of(x), attributes),
                  {x});
}

TEST(Unique, SortsOrKeepsTheOrder) {
  const Tensor x = f32({5}, {2, kNaN, 1, kNaN, 2});
  const Data sorted = unique(x, "axis=0");
  expect_tensor(sorted[0], f32({3}, {1, 2, kNaN}));
  expect_tensor(sorted[1], i64({3}, {2, 0, 1}));
  expect_tensor(sorted[2], i64({5}, {1, 2, 0, 2, 1}));
  expect_tensor(sorted[3], i64({3}, {1, 2, 2}));
  const Data kept = unique(x, "axis=0, sorted=false");
  expect_tensor(kept[0], f32({3}, {2, kNaN, 1}));
  expect_tensor(kept[1], i64({3}, {0, 1, 2}));
  expect_tensor(kept[2], i64({5}, {0, 1, 2, 1, 0}));
  expect_tensor(kept[3], i64({3}, {2, 2, 1}));
}

TEST(Unique, ComparesWholeSlices) {
  const Data columns = unique(f32({2, 3}, {1, 0, 1, 2, 2, 2}), "axis=-1");
  expect_tensor(columns[0], f32({2, 2}, {0, 1, 2, 2}));
  expect_tensor(columns[2], i64({3}, {1, 0, 1}));
  // Slices of nothing are all the same.
  expect_tensor(unique(f32({3, 0}, {}), "axis=0")[0], f32({1, 0}, {}));
  expect_tensor(unique(f32({0, 3}, {}), "axis=0")[0], f32({0, 3}, {}));
}

TEST(Unique, TakesStrings) {
  expect_tensor(unique(Tensor::strings({"b", "a", "b"}, {3}), "axis=0")[0], Tensor::strings({"a", "b"}, {2}));
}

TEST(Unique, KnowsOnlyTheSizeOfTheInverse) {
  const auto graph = parse_graph("graph(%x: f32[n,m]) { %y, %f, %i, %c = unique(%x, axis=1) return %y, %i }");
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[n,d0]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "i64[m]");
}

Data nonzero(const Tensor& x) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = nonzero(%x) return %y }}", type_of(x)), {x});
}

TEST(Nonzero, GivesAColumnForEach) {
  expect_tensor(nonzero(f32({2, 3}, {-0.0, kNaN, 0, 1, 0, 2}))[0], i64({2, 3}, {0, 1, 1, 1, 0, 2}));
  expect_tensor(nonzero(Tensor::strings({"", "a"}, {2}))[0], i64({1, 1}, {1}));
  expect_tensor(nonzero(f32({}, {5}))[0], i64({0, 1}, {}));
  expect_tensor(nonzero(f32({}, {0}))[0], i64({0, 0}, {}));
  expect_tensor(nonzero(f32({2, 0}, {}))[0], i64({2, 0}, {}));
  EXPECT_EQ(output_type("graph(%x: f32[n,m,4]) { %y = nonzero(%x) return %y }"), "i64[3,d0]");
  EXPECT_EQ(output_type("graph(%x: f32[*]) { %y = nonzero(%x) return %y }"), "i64[d0,d1]");
}

Data one_hot(const Tensor& indices, double depth, const Tensor& values, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%i: {}, %d: f32[], %v: {}) {{ %y = one_hot(%i, %d, %v{}) return %y }}",
                              type_of(indices), type_of(values), attributes),
                  {indices, f32({}, {depth}), values});
}

TEST(OneHot, IsOnAtTheIndexOnly) {
  const Tensor values = f32({2}, {5, 9});
  expect_tensor(one_hot(i64({4}, {1, -1, 2, -3}), 2, values)[0], f32({4, 2}, {5, 9, 5, 9, 5, 5, 5, 5}));
  expect_tensor(one_hot(f32({2}, {0.9, 1}), 2, values, ", axis=0")[0], f32({2, 2}, {9, 5, 5, 9}));
  expect_tensor(one_hot(i64({}, {0}), 2, Tensor::strings({"off", "on"}, {2}))[0],
                Tensor::strings({"on", "off"}, {2}));
  expect_tensor(one_hot(i64({2}, {0, 0}), 0, values)[0], f32({2, 0}, {}));
  // 2^64 - 1 is not -1.
  expect_tensor(
      one_hot(Tensor::of(std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()}), 2, values)[0],
      f32({1, 2}, {5, 5}));
}

TEST(OneHot, InfersItsDepth) {
  const auto type = [](std::string_view depth) {
    return output_type(fmt::format(
        "graph(%i: i64[n], %v: f32[2], %s: f32[m]) {{ {} %y = one_hot(%i, %d, %v, axis=0) return %y }}",
        depth));
  };
  EXPECT_EQ(type("%d = constant(value=f32[1] {7})"), "f32[7,n]");
  EXPECT_EQ(type("%d = shape(%s)"), "f32[m,n]");
}

TEST(OneHot, RefusesWhatDoesNotFit) {
  refuse("%x: i64[n], %d: i64[], %v: f32[3]", "%y = one_hot(%x, %d, %v)",
         "line 2, column 8: one_hot: values must be two: one for off, one for on\n"
         "  indices  %x: i64[n]\n  depth  %d: i64[]\n  values  %v: f32[3]");
  expect_error<UserError>(
      [] {
        one_hot(i64({1}, {0}), -2, f32({2}, {0, 1}));
      },
      "node %y: one_hot: depth is -2, but must be at least 0");
}

Data suppress(const Tensor& boxes, const Tensor& scores, double limit, double overlap, double score) {
  return run_text(fmt::format(R"(
    graph(%b: {}, %s: {}, %n: i64[], %o: f32[], %t: f32[]) {{
      %y = non_max_suppression(%b, %s, %n, %o, %t)
      return %y
    }})",
                              type_of(boxes), type_of(scores)),
                  {boxes, scores, i64({}, {limit}), f32({}, {overlap}), f32({}, {score})});
}

TEST(NonMaxSuppression, KeepsTheBestOfThoseThatOverlap) {
  // The first two overlap by a third; the third, given by its other corners, stands alone.
  const Tensor boxes = f32({1, 3, 4}, {0, 0, 1, 2, 0, 1, 1, 3, 9, 9, 8, 8});
  const Tensor scores = f32({1, 1, 3}, {0.5, 0.9, 0.5});
  expect_tensor(suppress(boxes, scores, 9, 0.3, 0)[0], i64({2, 3}, {0, 0, 1, 0, 0, 2}));
  expect_tensor(suppress(boxes, scores, 9, 0.4, 0)[0], i64({3, 3}, {0, 0, 1, 0, 0, 0, 0, 0, 2}));
  expect_tensor(suppress(boxes, scores, 1, 0.4, 0)[0], i64({1, 3}, {0, 0, 1}));
  expect_tensor(suppress(boxes, scores, 9, 0.4, 0.5)[0], i64({1, 3}, {0, 0, 1}));
  expect_tensor(suppress(boxes, scores, -1, 0.4, 0)[0], i64({0, 3}, {}));
  expect_tensor(suppress(f32({1, 0, 4}, {}), f32({1, 2, 0}, {}), 9, 0, 0)[0], i64({0, 3}, {}));
}

TEST(NonMaxSuppression, SelectsNothingUnlessToldHowMany) {
  expect_tensor(
      run_text("graph(%b: f32[1,1,4], %s: f32[1,1,1]) { %y = non_max_suppression(%b, %s) return %y }",
               {f32({1, 1, 4}, {0, 0, 1, 1}), f32({1, 1, 1}, {1})})[0],
      i64({0, 3}, {}));
}

TEST(NonMaxSuppression, RefusesWhatDoesNotFit) {
  refuse("%x: f32[1,5,4], %s: f32[1,2,6]", "%y = non_max_suppression(%x, %s)",
         "line 2, column 8: non_max_suppression: scores must be of shape [batch,classes,boxes]\n"
         "  boxes  %x: f32[1,5,4]\n  scores  %s: f32[1,2,6]");
  const auto with_numbers = [](const Tensor& limit, const Tensor& overlap) {
    run_text(R"(
      graph(%b: f32[1,1,4], %s: f32[1,1,1], %n: i64[k], %o: f32[m]) {
        %y = non_max_suppression(%b, %s, %n, %o)
        return %y
      })",
             {f32({1, 1, 4}, {0, 0, 1, 1}), f32({1, 1, 1}, {1}), limit, overlap});
  };
  expect_error<UserError>(
      [&] {
        with_numbers(i64({2}, {1, 2}), f32({1}, {0}));
      },
      "node %y: non_max_suppression: max_per_class must be one number, but is i64[2]");
  expect_error<UserError>(
      [&] { with_numbers(i64({1}, {1}), f32({0}, {})); },
      "node %y: non_max_suppression: overlap_threshold must be one number, but is f32[0]");
}

}  // namespace
}  // namespace tenon
