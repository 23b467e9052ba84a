#include "ir/graph_text.h"

namespace tenon {
namespace {

Tensor lay(const Tensor& x, const Tensor& updates, const Tensor& sources, int64_t axis = 0) {
  return run_text(
             fmt::format("graph(%x: {}, %u: {}, %s: {}) {{ %y = overlay(%x, %u, %s, axis={}) return %y }}",
                         type_of(x), type_of(updates), type_of(sources), axis),
             {x, updates, sources})[0]
      .tensor();
}

TEST(Overlay, TakesWhatSourcesNameAndLeavesTheRest) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_tensor(lay(x, f32({2, 2}, {10, 20, 30, 40}), i64({3}, {1, -1, 1})),
                f32({3, 2}, {30, 40, 3, 4, 30, 40}));
  expect_tensor(lay(x, f32({3, 1}, {10, 20, 30}), i64({2}, {-7, 0}), 1), f32({3, 2}, {1, 10, 3, 20, 5, 30}));
  expect_tensor(lay(x, f32({0, 2}, {}), i64({3}, {-1, -1, -1})), x);
}

TEST(Overlay, TakesSourcesOfSeveralAxes) {
  expect_tensor(lay(f32({2, 2, 1}, {1, 2, 3, 4}), f32({2, 1}, {10, 20}), i64({2, 2}, {-1, 1, 0, -1})),
                f32({2, 2, 1}, {1, 20, 10, 4}));
}

TEST(Overlay, RefusesWhatDoesNotFit) {
  const auto refuse = [](std::string_view signature, const std::string& message) {
    expect_error<UserError>(
        [&] { parse_graph(fmt::format("graph({})\n{{ %y = overlay(%x, %u, %s) return %y }}", signature)); },
        "line 2, column 8: overlay: " + message);
  };
  refuse("%x: f32[3,2], %u: f32[n,2], %s: i64[2]",
         "sources must have the sizes of x from axis 0 on\n"
         "  x  %x: f32[3,2]\n  updates  %u: f32[n,2]\n  sources  %s: i64[2]");
  refuse("%x: f32[3,2], %u: f32[n,2], %s: i64[]",
         "sources must have the sizes of x from axis 0 on\n"
         "  x  %x: f32[3,2]\n  updates  %u: f32[n,2]\n  sources  %s: i64[]");
  refuse("%x: f32[3,2], %u: f32[n,1], %s: i64[3]",
         "updates must have the sizes of x, but one for those of sources\n"
         "  x  %x: f32[3,2]\n  updates  %u: f32[n,1]\n  sources  %s: i64[3]");
  refuse("%x: f32[3,2], %u: f32[n], %s: i64[3]",
         "updates must have the sizes of x, but one for those of sources\n"
         "  x  %x: f32[3,2]\n  updates  %u: f32[n]\n  sources  %s: i64[3]");
}

TEST(Overlay, ChecksAgainWhenItRuns) {
  expect_error<UserError>(
      [] {
        lay(f32({2, 1}, {1, 2}), f32({1, 1}, {3}), i64({2}, {0, 1}));
      },
      "node %y: overlay: there is no update 1 among 1");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[n,1], %u: f32[m,1], %s: i64[k]) { %y = overlay(%x, %u, %s) return %y }",
                 {f32({2, 1}, {1, 2}), f32({1, 1}, {3}), i64({1}, {0})});
      },
      "node %y: overlay: updates of shape [1,1] and sources of shape [1] do not fit x of shape [2,1]");
}

}  // namespace
}  // namespace tenon
