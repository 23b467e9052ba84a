#include "base/error.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace tenon {
namespace {

TEST(Error, FormatsItsMessage) {
  expect_error<UserError>([] { throw user_error("softmax: axis {} of {}", 3, "x"); }, "softmax: axis 3 of x");
  expect_error<UnsupportedError>([] { throw unsupported("no {}", "loops"); }, "no loops");
}

TEST(Error, ContextIsAddedFromTheInsideOutAndKeepsTheKind) {
  const auto nested = [](auto throw_it) {
    with_context([] { return "file"; }, [&] { with_context([] { return "node"; }, throw_it); });
  };
  expect_error<UserError>([&] { nested([] { throw user_error("bad"); }); }, "file: node: bad");
  expect_error<UnsupportedError>([&] { nested([] { throw unsupported("bad"); }); }, "file: node: bad");
  expect_error<InternalError>([&] { nested([] { throw InternalError("bad"); }); }, "file: node: bad");
}

TEST(Error, ContextIsNotAskedForWithoutAnError) {
  bool asked = false;
  const auto context = [&] {
    asked = true;
    return "file";
  };
  EXPECT_EQ(with_context(context, [] { return 7; }), 7);
  EXPECT_FALSE(asked);
}

TEST(Error, OtherExceptionsPassThroughContextUntouched) {
  const auto work = [] { with_context([] { return "file"; }, [] { throw std::length_error("too long"); }); };
  EXPECT_THROW(work(), std::length_error);
}

TEST(Check, SaysWhereWhatAndWhy) {
  const int line = __LINE__ + 1;
  const auto work = [] { CHECK(1 + 1 == 3, "got {}", 2); };
  expect_error<InternalError>(work, fmt::format("{}:{}: CHECK(1 + 1 == 3) failed: got 2", __FILE__, line));
}

TEST(Check, DoesNotFormatWhenItHolds) {
  int formatted = 0;
  CHECK(true, "{}", ++formatted);
  EXPECT_EQ(formatted, 0);
}

}  // namespace
}  // namespace tenon
