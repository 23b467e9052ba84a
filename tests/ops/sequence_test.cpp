#include "ir/graph_text.h"

namespace tenon {
namespace {

Data sequence(std::vector<Tensor> tensors) {
  Sequence result;
  for (Tensor& tensor : tensors)
    result.elements.emplace_back(std::move(tensor));
  return {std::move(result)};
}

void expect_sequence(const Datum& actual, const std::vector<Tensor>& expected) {
  ASSERT_TRUE(std::holds_alternative<Sequence>(actual));
  ASSERT_EQ(actual.sequence().elements.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expect_tensor(actual.sequence().elements[i], expected[i]);
}

const Tensor kOne = f32({1}, {1}), kTwo = f32({2}, {2, 2}), kThree = f32({}, {3});

TEST(Sequence, IsMadeAndTakenApart) {
  const Data results = run_text(R"(
    graph(%x: f32[2], %y: f32[n]) {
      %s = sequence_construct([%x, %y, %x])
      %p = constant(value=i32[1] {-2})
      %at = sequence_at(%s, %p)
      %length = sequence_length(%s)
      return %s, %at, %length
    })",
                                {kTwo, kOne});
  expect_sequence(results[0], {kTwo, kOne, kTwo});
  expect_tensor(results[1], kOne);
  expect_tensor(results[2], i64({}, {3}));
}

// The graph applies `call` to a sequence %s and a position %p.
Data apply(std::string_view call, std::vector<Tensor> tensors, double position) {
  return run_text(fmt::format("graph(%s: seq<f32[*]>, %p: i64[], %x: f32[]) {{ %y = {} return %y }}", call),
                  {sequence(std::move(tensors))[0], i64({}, {position}), kThree});
}

TEST(Sequence, InsertsBeforeAPosition) {
  const std::string insert = "sequence_insert(%s, %x, %p)";
  expect_sequence(apply(insert, {kOne, kTwo}, 0)[0], {kThree, kOne, kTwo});
  expect_sequence(apply(insert, {kOne, kTwo}, -1)[0], {kOne, kThree, kTwo});
  expect_sequence(apply(insert, {kOne, kTwo}, 2)[0], {kOne, kTwo, kThree});
  expect_sequence(apply("sequence_insert(%s, %x)", {kOne, kTwo}, 0)[0], {kOne, kTwo, kThree});
  expect_sequence(apply(insert, {}, 0)[0], {kThree});
}

TEST(Sequence, ErasesAPosition) {
  expect_sequence(apply("sequence_erase(%s, %p)", {kOne, kTwo}, 0)[0], {kTwo});
  expect_sequence(apply("sequence_erase(%s)", {kOne, kTwo}, 0)[0], {kOne});
}

TEST(Sequence, RefusesPositionsOutside) {
  const auto refuse = [](std::string_view call, double position, const std::string& message) {
    expect_error<UserError>([&] { apply(call, {kOne, kTwo}, position); }, "node %y: " + message);
  };
  refuse("sequence_at(%s, %p)", 2, "sequence_at: position 2 is out of range for a sequence of length 2");
  refuse("sequence_at(%s, %p)", -3, "sequence_at: position -3 is out of range for a sequence of length 2");
  refuse("sequence_erase(%s, %p)", 2,
         "sequence_erase: position 2 is out of range for a sequence of length 2");
  refuse("sequence_insert(%s, %x, %p)", 3,
         "sequence_insert: position 3 is out of range for a sequence of length 2");
  expect_error<UserError>([] { apply("sequence_erase(%s)", {}, 0); },
                          "node %y: sequence_erase: position -1 is out of range for a sequence of length 0");
}

TEST(Sequence, KnowsWhatItsElementsHaveInCommon) {
  const auto constructed = [](std::string_view a, std::string_view b) {
    return output_type(
        fmt::format("graph(%a: {}, %b: {}) {{ %s = sequence_construct([%a, %b]) return %s }}", a, b));
  };
  EXPECT_EQ(constructed("f32[n,2]", "f32[n,2]"), "seq<f32[n,2]>");
  EXPECT_EQ(constructed("f32[n,2]", "f32[m,2]"), "seq<f32[?,2]>");
  EXPECT_EQ(constructed("f32[n,2]", "f32[2]"), "seq<f32[*]>");
  // Two elements of a sequence need not have the same size.
  const auto graph = parse_graph(R"(
    graph(%s: seq<f32[?,2]>, %p: i64[]) { %a = sequence_at(%s, %p) %b = sequence_at(%s, %p) return %a, %b })");
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[d0,2]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "f32[d1,2]");
  EXPECT_EQ(
      output_type(
          "graph(%x: f32[3]) { %e = sequence_empty(element=f32[*]) %s = sequence_insert(%e, %x) return %s }"),
      "seq<f32[3]>");
}

TEST(Sequence, RefusesElementsOfAnotherType) {
  const auto refuse = [](std::string_view text, const std::string& message) {
    expect_error<UserError>(
        [&] {
          register_ops();
          parse(text);
        },
        message);
  };
  refuse("graph(%a: f32[2], %b: i64[2]) { %s = sequence_construct([%a, %b]) return %s }",
         "line 1, column 38: sequence_construct: the elements of a sequence must have one dtype\n"
         "  elements  %a: f32[2]\n  elements  %b: i64[2]");
  refuse("graph(%s: seq<f32[2]>, %x: i64[2]) { %t = sequence_insert(%s, %x) return %t }",
         "line 1, column 43: sequence_insert: element is not of the sequence's type\n"
         "  sequence  %s: seq<f32[2]>\n  element  %x: i64[2]");
  refuse("graph(%s: seq<f32[2]>, %p: i64[2]) { %t = sequence_at(%s, %p) return %t }",
         "line 1, column 43: sequence_at: position must be one number\n"
         "  sequence  %s: seq<f32[2]>\n  position  %p: i64[2]");
  refuse("graph(%x: f32[n]) { %n = constant(value=i64[2] {-3,-3}) %s = sequence_split(%x, %n) return %s }",
         "line 1, column 62: sequence_split: split[0] is -3\n  x  %x: f32[n]\n  split  %n: i64[2]");
  refuse("graph(%s: f32[2]) { %t = sequence_length(%s) return %t }",
         "line 1, column 26: sequence_length: sequence must be a sequence, but is f32[2]");
}

TEST(Sequence, SplitsATensor) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto split = [&](std::string_view arguments, const Tensor& sizes) {
    return run_text(fmt::format("graph(%x: f32[2,3], %k: {}) {{ %s = sequence_split(%x{}) return %s }}",
                                type_of(sizes), arguments),
                    {x, sizes});
  };
  const std::vector<Tensor> columns = {f32({2, 2}, {1, 2, 4, 5}), f32({2, 1}, {3, 6})};
  expect_sequence(split(", %k, axis=1", i64({}, {2}))[0], columns);
  expect_sequence(split(", %k, axis=-1", tensor(DType::I32, {2}, {2, 1}))[0], columns);
  expect_sequence(split(", %k, axis=1", i64({3}, {0, 2, 1}))[0], {f32({2, 0}, {}), columns[0], columns[1]});
  expect_sequence(split(", keep_dims=false", i64({}, {0}))[0], {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})});
  expect_sequence(split("", i64({}, {0}))[0], {f32({1, 3}, {1, 2, 3}), f32({1, 3}, {4, 5, 6})});
  const auto refuse = [&](const Tensor& sizes, const std::string& message) {
    expect_error<UserError>([&] { split(", %k, axis=1", sizes); }, "node %s: sequence_split: " + message);
  };
  refuse(i64({}, {0}), "split is 0, but must be at least 1");
  refuse(i64({2}, {2, 2}), "3 elements do not split into [2,2]");
  refuse(i64({2}, {1, 1}), "3 elements do not split into [1,1]");
  refuse(i64({2}, {4, -1}), "3 elements do not split into [4,-1]");
}

TEST(Sequence, KnowsTheSizesOfParts) {
  const auto parts = [](std::string_view x, std::string_view split, std::string_view attributes) {
    return output_type(
        fmt::format("graph(%x: {}) {{ %k = constant(value={}) %s = sequence_split(%x, %k{}) return %s }}", x,
                    split, attributes));
  };
  EXPECT_EQ(parts("f32[6,n]", "i64[] {2}", ""), "seq<f32[2,n]>");
  EXPECT_EQ(parts("f32[5,n]", "i64[] {2}", ""), "seq<f32[?,n]>");
  EXPECT_EQ(parts("f32[5,4*n]", "i64[] {2}", ", axis=1"), "seq<f32[5,2]>");
  EXPECT_EQ(parts("f32[m]", "i64[2] {2, 2}", ""), "seq<f32[2]>");
  EXPECT_EQ(parts("f32[m]", "i64[2] {2, 3}", ""), "seq<f32[?]>");
}

TEST(Sequence, JoinsIntoATensor) {
  const auto joined = [](std::string_view attributes, const std::vector<Tensor>& parts) {
    return run_text(
        fmt::format("graph(%s: seq<f32[*]>) {{ %y = sequence_concat(%s, {}) return %y }}", attributes),
        sequence(parts))[0];
  };
  expect_tensor(joined("axis=0", {kOne, kTwo}), f32({3}, {1, 2, 2}));
  expect_tensor(joined("axis=-1, new_axis=true", {f32({2}, {1, 2}), f32({2}, {3, 4})}),
                f32({2, 2}, {1, 3, 2, 4}));
  expect_tensor(joined("axis=0, new_axis=true", {kThree, kThree}), f32({2}, {3, 3}));
  const auto refuse = [&](std::string_view attributes, const std::vector<Tensor>& parts,
                          const std::string& message) {
    expect_error<UserError>([&] { joined(attributes, parts); }, "node %y: sequence_concat: " + message);
  };
  refuse("axis=0", {}, "the sequence is empty");
  refuse("axis=0", {kThree}, "axis 0 is out of range for a tensor of rank 0");
  refuse("axis=0", {kOne, kThree}, "f32[1] and f32[] cannot be joined along axis 0");
  refuse("axis=0, new_axis=true", {kOne, kTwo}, "f32[1] and f32[2] cannot be stacked");
}

TEST(Optional, HoldsSomethingOrNothing) {
  const std::string text = R"(
    graph(%o: opt<f32[n]>) {
      %has = optional_has(%o)
      %none = optional_empty(element=seq<i64[?]>)
      %no = optional_has(%none)
      return %has, %no
    })";
  Data results = run_text(text, {Optional{std::make_shared<const Datum>(kOne)}});
  expect_tensor(results[0], tensor(DType::Bool, {}, {1}));
  expect_tensor(results[1], tensor(DType::Bool, {}, {0}));
  expect_tensor(run_text(text, {Optional()})[0], tensor(DType::Bool, {}, {0}));
  EXPECT_EQ(output_type("graph(%x: f32[n]) { %o = optional(%x) %y = optional_get(%o) return %y }"), "f32[n]");
  expect_error<UserError>(
      [] { run_text("graph(%o: opt<f32[n]>) { %y = optional_get(%o) return %y }", {Optional()}); },
      "node %y: optional_get: the optional is empty");
}

}  // namespace
}  // namespace tenon
