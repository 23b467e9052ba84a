#include "ops/external.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr std::string_view kGraph = R"(
  graph(%x: f32[n,2], %y: f32[3]) {{
    %s = shape(%x)
    %a, %b = external([%x, %y], %s, name="twice", function={}, dtypes=["f32","i64"], ranks=[2,0])
    return %a, %b
  }})";

TEST(External, CallsAFunctionOfTheProgram) {
  register_ops();
  const ExternalHandle handle([](std::span<const Datum> operands) -> Data {
    EXPECT_EQ(operands.size(), 2);
    return {operands[0], Tensor::scalar(operands[1].tensor().count())};
  });
  const std::string text = fmt::format(kGraph, handle.number());
  const Data results = run_text(text, {f32({1, 2}, {1, 2}), f32({3}, {4, 5, 6})});
  expect_tensor(results[0], f32({1, 2}, {1, 2}));
  EXPECT_EQ(results[1].tensor().data<int64_t>()[0], 3);
}

TEST(External, HasTheSizesThatItIsGiven) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(fmt::format(kGraph, 0));
  EXPECT_EQ(fmt::format("{}", graph->outputs()[0].type()), "f32[n,2]");
  EXPECT_EQ(fmt::format("{}", graph->bind({{"n", 4}})->outputs()[0].type()), "f32[4,2]");
}

TEST(External, SaysWhatIsWrong) {
  register_ops();
  std::string text;
  {
    const ExternalHandle handle([](std::span<const Datum>) -> Data { return {Tensor::scalar(1.0f)}; });
    text = fmt::format(kGraph, handle.number());
    expect_error<UserError>(
        [&] {
          run_text(text, {f32({1, 2}, {1, 2}), f32({3}, {4, 5, 6})});
        },
        "node %a: external: twice gave 1 results, but 2 were expected");
  }
  expect_error<UserError>(
      [&] {
        run_text(text, {f32({1, 2}, {1, 2}), f32({3}, {4, 5, 6})});
      },
      "node %a: external: the function behind twice is gone");
  expect_error<UserError>(
      [] {
        parse(
            R"(graph(%x: f32[2]) { %s = shape(%x) %y = external([%x], %s, name="f", function=0, dtypes=["f31"], ranks=[1]) return %y })");
      },
      "line 1, column 41: external: f31 is no dtype");
}

}  // namespace
}  // namespace tenon
