#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace tenon {
namespace {

TEST(Utf8, EveryCodePointComesBack) {
  for (uint32_t point = 0; point <= 0x10ffff; ++point) {
    if (!is_code_point(point))
      continue;
    std::string text;
    append_utf8(text, point);
    ASSERT_EQ(text.size(), point < 0x80 ? 1u : point < 0x800 ? 2u : point < 0x10000 ? 3u : 4u);
    std::string_view rest = text;
    ASSERT_EQ(take_utf8(rest), point);
    ASSERT_TRUE(rest.empty());
  }
}

TEST(Utf8, TakesOneCharacterAtATime) {
  std::string_view text = "a\xc3\xbc\xe2\x88\x80";
  EXPECT_EQ(take_utf8(text), 'a');
  EXPECT_EQ(take_utf8(text), 0xfcu);
  EXPECT_EQ(take_utf8(text), 0x2200u);
  EXPECT_TRUE(text.empty());
}

TEST(Utf8, SurrogatesAndWhatIsBeyondUnicodeAreNoCodePoints) {
  for (const uint32_t number : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    EXPECT_FALSE(is_code_point(number)) << number;
    std::string text;
    EXPECT_THROW(append_utf8(text, number), InternalError) << number;
  }
  for (const uint32_t number : {0u, 0xd7ffu, 0xe000u, 0x10ffffu})
    EXPECT_TRUE(is_code_point(number)) << number;
}

TEST(Utf8, TakesNothingOfBytesThatAreNoUtf8) {
  for (const std::string_view bad : {
           "\x80",              // a tail without its lead
           "\xc3",              // cut short
           "\xe2\x88",          //
           "\xc3(",             // no tail
           "\xc0\x80",          // overlong
           "\xc1\xbf",          //
           "\xe0\x9f\xbf",      //
           "\xf0\x8f\xbf\xbf",  //
           "\xed\xa0\x80",      // a surrogate
           "\xf4\x90\x80\x80",  // beyond U+10FFFF
           "\xf8\x88\x80\x80\x80",
           "\xff",
       }) {
    std::string_view text = bad;
    EXPECT_EQ(take_utf8(text), std::nullopt) << bad;
    EXPECT_EQ(text, bad);
  }
}

TEST(Utf8, CutsBetweenCharacters) {
  const std::string_view text = "a\xc3\xbc\xe2\x88\x80z";
  EXPECT_EQ(count_characters(text), 4u);
  EXPECT_EQ(first_characters(text, 2), "a\xc3\xbc");
  EXPECT_EQ(last_characters(text, 2), "\xe2\x88\x80z");
  for (const size_t all : {4, 5}) {
    EXPECT_EQ(first_characters(text, all), text);
    EXPECT_EQ(last_characters(text, all), text);
  }
  EXPECT_EQ(first_characters(text, 0), "");
  EXPECT_EQ(last_characters(text, 0), "");
}

TEST(Utf8, BytesThatAreNoUtf8AreCharacters) {
  const std::string_view text = "\xc3(\x80\xe2\x88";
  EXPECT_EQ(count_characters(text), 5u);
  EXPECT_EQ(first_characters(text, 1), "\xc3");
  EXPECT_EQ(last_characters(text, 3), "\x80\xe2\x88");
}

}  // namespace
}  // namespace tenon
