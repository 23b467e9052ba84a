#include "base/mistaken_file.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

std::string_view hint(std::string_view content) { return hint_at_content(std::as_bytes(std::span(content))); }
bool is_text(std::string_view content) { return looks_like_text(std::as_bytes(std::span(content))); }

TEST(MistakenFile, TellsWhatAFileIs) {
  EXPECT_EQ(hint(""), "\n  hint: the file is empty");
  EXPECT_EQ(hint("version https://git-lfs.github.com/spec/v1\n"),
            "\n  hint: this is a Git LFS pointer, not the file itself; run `git lfs pull`");
  for (const char* page : {"<html>", "\n<!DOCTYPE html>", "<!doctype html>"})
    EXPECT_EQ(hint(page),
              "\n  hint: this is a web page, perhaps one that says why there was nothing to download");
  EXPECT_EQ(hint(" {\"a\": 1}"), "\n  hint: this is JSON");
}

TEST(MistakenFile, SaysNothingOfOthers) {
  for (const char* content : {"graph main() {}", "   ", "version 2", "{\x01", "PK\x03\x04"})
    EXPECT_EQ(hint(content), "") << content;
}

TEST(MistakenFile, KnowsText) {
  EXPECT_TRUE(is_text("one\ttwo\r\n"));
  EXPECT_TRUE(is_text("größer"));
  EXPECT_FALSE(is_text(""));
  EXPECT_FALSE(is_text("\x08\x01"));
}

}  // namespace
}  // namespace tenon
