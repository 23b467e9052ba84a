#include "frontends/torch/expression.h"

#include <cctype>
#include <charconv>
#include <vector>

#include "base/error.h"

namespace tenon::torch {
namespace {

constexpr int kMaximumDepth = 200;

// Dim needs no power: a small one is a product.
Dim power(const Dim& base, const Dim& exponent) {
  constexpr int64_t largest = 8;
  const auto count = exponent.constant();
  if (!count || *count < 0 || *count > largest)
    return {};
  Dim product = 1;
  for (int64_t i = 0; i < *count; ++i)
    product = product * base;
  return product;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Dim parse() {
    const Dim result = sum();
    if (skip_blanks(); at_ != text_.size())
      fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const { throw user_error("\"{}\" is no size that we can read", text_); }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token))
      fail();
  }

  // Counts how deep expressions are nested.
  template <class F>
  Dim deeper(F&& parse) {
    if (++depth_ > kMaximumDepth)
      fail();
    const Dim result = parse();
    --depth_;
    return result;
  }

  Dim sum() {
    return deeper([&] {
      Dim result = product();
      while (true) {
        if (accept("+"))
          result = result + product();
        else if (accept("-"))
          result = result - product();
        else
          return result;
      }
    });
  }

  Dim product() {
    Dim result = signed_power();
    while (true) {
      if (accept("//"))
        result = floor_div(result, signed_power());
      else if (accept("%"))
        result = mod(result, signed_power());
      else if (accept("/"))
        result = exact_quotient(result, signed_power());
      else if (accept("*"))
        result = result * signed_power();
      else
        return result;
    }
  }

  Dim signed_power() {
    return deeper([&] {
      if (accept("-"))
        return Dim(0) - signed_power();
      const Dim base = atom();
      return accept("**") ? power(base, signed_power()) : base;
    });
  }

  static Dim exact_quotient(const Dim& a, const Dim& b) { return divide_exactly(a, b).value_or(Dim()); }

  Dim atom() {
    if (accept("(")) {
      const Dim inner = sum();
      expect(")");
      return inner;
    }
    skip_blanks();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      return number();
    const std::string_view name = word();
    return accept("(") ? call(name) : Dim::symbol(name);
  }

  Dim number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc())
      fail();
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  // The last part of a dotted name.
  std::string_view word() {
    size_t begin = at_;
    const auto belongs = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    while (at_ < text_.size() && (belongs(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
      if (text_[at_++] == '.')
        begin = at_;
    if (at_ == begin)
      fail();
    return text_.substr(begin, at_ - begin);
  }

  // What follows the name and parenthesis of a function.
  Dim call(std::string_view function) {
    if (function == "Symbol")
      return quoted_symbol();
    std::vector<Dim> arguments;
    if (!accept(")")) {
      do
        arguments.push_back(sum());
      while (accept(","));
      expect(")");
    }
    if (arguments.empty())
      fail();
    return apply(function, arguments);
  }

  // 's0', integer=True, positive=True)
  Dim quoted_symbol() {
    expect("'");
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos || end == at_)
      fail();
    const std::string_view name = text_.substr(at_, end - at_);
    const size_t closing = text_.find(')', end);
    if (closing == std::string_view::npos)
      fail();
    at_ = closing + 1;
    return Dim::symbol(name);
  }

  Dim apply(std::string_view function, const std::vector<Dim>& arguments) const {
    const auto fold = [&](auto&& combine) {
      Dim result = arguments.front();
      for (size_t i = 1; i < arguments.size(); ++i)
        result = combine(result, arguments[i]);
      return result;
    };
    if (function == "Add")
      return fold([](const Dim& a, const Dim& b) { return a + b; });
    if (function == "Mul")
      return fold([](const Dim& a, const Dim& b) { return a * b; });
    if (function == "Max")
      return fold([](const Dim& a, const Dim& b) { return max(a, b); });
    if (function == "Min")
      return fold([](const Dim& a, const Dim& b) { return min(a, b); });
    if (arguments.size() == 1) {
      const bool keeps = function == "Integer" || function == "ToFloat" || function == "TruncToInt";
      return keeps ? arguments[0] : Dim();
    }
    if (arguments.size() != 2)
      return {};
    if (function == "FloorDiv")
      return floor_div(arguments[0], arguments[1]);
    if (function == "CeilDiv")
      return ceil_div(arguments[0], arguments[1]);
    if (function == "CleanDiv")
      return floor_div(arguments[0], arguments[1]);
    if (function == "Mod" || function == "PythonMod")
      return mod(arguments[0], arguments[1]);
    if (function == "Pow" || function == "PowByNatural")
      return power(arguments[0], arguments[1]);
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim parse_expression(std::string_view text) { return Parser(text).parse(); }

}  // namespace tenon::torch
