// scanner.h — the letters, words and numbers of a text, and where in it an error is.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

class Scanner {
 protected:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string place() const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i)
      text_[i] == '\n' ? (++line, column = 1) : ++column;
    return fmt::format("line {}, column {}", line, column);
  }
  [[noreturn]] void fail(const std::string& message) {
    failed_ = true;
    throw user_error("{}: {}", place(), message);
  }

  // Errors of f that do not say where they are, are about what begins there.
  template <class F>
  auto at_place(size_t begin, F&& f) {
    try {
      return f();
    } catch (const UnsupportedError& error) {
      at_ = begin;
      throw UnsupportedError(fmt::format("{}: {}", place(), error.what()));
    } catch (const UserError& error) {
      if (failed_)
        throw;
      at_ = begin;
      fail(error.what());
    }
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("//"))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
        ++at_;
      else
        return;
    }
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c)
      return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(fmt::format("'{}' was expected", c));
  }
  static bool is_word(char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  }
  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end]))
      ++end;
    return text_.substr(at_, end - at_);
  }
  std::string word() {
    const std::string_view w = peek_word();
    if (w.empty())
      fail("a name was expected");
    at_ += w.size();
    return std::string(w);
  }
  bool accept_word(std::string_view wanted) {
    if (peek_word() != wanted)
      return false;
    at_ += wanted.size();
    return true;
  }
  void expect_word(std::string_view wanted) {
    if (!accept_word(wanted))
      fail(fmt::format("'{}' was expected", wanted));
  }
  std::string quoted() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c == 'x') {
          unsigned code = 0;
          const auto [end, error] =
              std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 2, text_.size()), code, 16);
          if (error != std::errc() || end != text_.data() + at_ + 2)
            fail("\\x takes two hexadecimal digits");
          at_ += 2;
          c = static_cast<char>(code);
        } else if (c != '"' && c != '\\')
          fail("an unknown escape in a text");
      }
      result += c;
    }
    if (at_ == text_.size())
      fail("a text does not end");
    ++at_;
    return result;
  }
  template <class T>
  T integer() {
    skip_space();
    T value{};
    const bool hexadecimal = text_.substr(at_).starts_with("0x");
    const char* begin = text_.data() + at_ + (hexadecimal ? 2 : 0);
    const auto [end, error] =
        std::from_chars(begin, text_.data() + text_.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc())
      fail("an integer was expected");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  double real() {
    const bool negative = accept('-');
    double value = 0;
    if (accept_word("inf")) {
      value = std::numeric_limits<double>::infinity();
    } else if (accept_word("nan")) {
      value = std::nan("");
    } else {
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error == std::errc::invalid_argument)
        fail("a number was expected");
      if (error == std::errc::result_out_of_range)
        fail("this number does not fit 64 bits");
      at_ = static_cast<size_t>(end - text_.data());
    }
    return negative ? -value : value;
  }
  template <class F>
  void list(char open, char close, F&& item) {
    expect(open);
    if (accept(close))
      return;
    do
      item();
    while (accept(','));
    expect(close);
  }

  std::string_view text_;
  size_t at_ = 0;

 private:
  bool failed_ = false;  // an error says already where it is
};

}  // namespace tenon
