// dim_text.cpp — prints dims and reads them back.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon {
namespace {

// In the order of DimFunction.
constexpr std::array<std::string_view, 5> function_names = {"", "floor", "mod", "max", "min"};

// Not the functions of <cctype>, which ask the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c) || c == '.'; }

std::string print_name(const std::string& name) {
  if (starts_name(name[0]) && std::all_of(name.begin(), name.end(), continues_name))
    return name;
  std::string quoted = "`";
  for (const char c : name)
    quoted += c == '`' ? "``" : std::string(1, c);
  return quoted + "`";
}

std::string parenthesise(const Dim& dim) { return fmt::format("({})", dim); }

std::string print_atom(const DimAtom& atom) {
  if (atom.function == DimFunction::Symbol)
    return print_name(atom.name);
  if (atom.function == DimFunction::FloorDiv) {
    const Dim& numerator = atom.operands[0];
    const Dim& divisor = atom.operands[1];
    return fmt::format(
        "floor({}/{})", terms_of(numerator).size() > 1 ? parenthesise(numerator) : numerator.to_string(),
        divisor.is_constant() || get_atom(divisor) ? divisor.to_string() : parenthesise(divisor));
  }
  return fmt::format("{}({})", function_names[static_cast<size_t>(atom.function)],
                     fmt::join(atom.operands, ","));
}

// Reads one dim. The grammar is what to_string prints, and a little more:
//     sum      = ["-"] product { ("+" | "-") product }
//     product  = factor { "*" factor }
//     factor   = number | symbol | "?" | "(" sum ")" | function
//     function = ("floor" | "ceil") "(" ["-"] product "/" factor ")"
//              | ("mod" | "max" | "min") "(" sum { "," sum } ")"
class DimReader {
 public:
  explicit DimReader(std::string_view text) : text_(text), rest_(text) {}

  Dim read_all() {
    const Dim result = read_sum();
    skip_blanks();
    if (!rest_.empty())
      fail("an operator");
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw user_error("dimension \"{}\": wanted {} {}", text_, wanted,
                     rest_.empty() ? "at the end" : fmt::format("before \"{}\"", rest_));
  }

  void skip_blanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }

  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_[0] != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c))
      fail(fmt::format("'{}'", c));
  }

  // A result is unknown because the text says so, or because arithmetic gave up.
  Dim require_known(const Dim& result) const {
    if (result.is_unknown() && !has_unknown_)
      fail_as_too_large();
    return result;
  }

  [[noreturn]] void fail_as_too_large() const {
    throw user_error(
        "dimension \"{}\": is too large: wanted numbers below 2^63 and at most {} terms and factors", text_,
        maximum_dim_size);
  }

  Dim read_sum() {
    Dim sum = read_product(take('-'));
    for (;;) {
      if (take('+'))
        sum = require_known(sum + read_product(false));
      else if (take('-'))
        sum = require_known(sum + read_product(true));
      else
        return sum;
    }
  }

  Dim read_product(bool is_negative) {
    Dim product = read_factor(is_negative);
    while (take('*'))
      product = require_known(product * read_factor(false));
    return product;
  }

  // The sign is read along with a number, since -2^63 is one but 2^63 is not.
  Dim read_factor(bool is_negative) {
    skip_blanks();
    if (!rest_.empty() && is_digit(rest_[0]))
      return read_number(is_negative);
    const Dim factor = read_unsigned_factor();
    return is_negative ? require_known(0 - factor) : factor;
  }

  Dim read_number(bool is_negative) {
    size_t length = 0;
    while (length < rest_.size() && is_digit(rest_[length]))
      ++length;
    const std::string digits = (is_negative ? "-" : "") + std::string(rest_.substr(0, length));
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc())
      fail_as_too_large();
    rest_.remove_prefix(length);
    return value;
  }

  Dim read_unsigned_factor() {
    if (take('?')) {
      has_unknown_ = true;
      return Dim();
    }
    if (take('('))
      return read_nested([&] { return read_sum(); });
    if (take('`'))
      return Dim::symbol(read_quoted_name());
    if (rest_.empty() || !starts_name(rest_[0]))
      fail("a number, a symbol or '('");
    size_t length = 1;
    while (length < rest_.size() && continues_name(rest_[length]))
      ++length;
    const std::string_view name = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return take('(') ? read_nested([&] { return read_function(name); }) : Dim::symbol(name);
  }

  // What stands in parentheses, the first of which was read.
  template <class Read>
  Dim read_nested(const Read& read) {
    if (++depth_ > maximum_dim_size)
      throw user_error("dimension: is nested too deeply: wanted at most {} levels of parentheses",
                       maximum_dim_size);
    const Dim result = read();
    expect(')');
    --depth_;
    return result;
  }

  std::string read_quoted_name() {
    std::string name;
    for (;;) {
      const size_t end = rest_.find('`');
      if (end == std::string_view::npos)
        fail("a closing backtick");
      name += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('`'))
        break;
      name += '`';
      rest_.remove_prefix(1);
    }
    if (name.empty())
      fail("a name in the backticks");
    return name;
  }

  Dim read_function(std::string_view name) {
    if (name == "floor" || name == "ceil") {
      const Dim numerator = read_product(take('-'));
      expect('/');
      const Dim divisor = require_divisor(read_factor(false));
      return require_known(name == "floor" ? floor_div(numerator, divisor) : ceil_div(numerator, divisor));
    }
    const auto found = std::find(function_names.begin() + 1, function_names.end(), name);
    if (found == function_names.end())
      throw user_error("dimension \"{}\": no function is called {}: wanted floor, ceil, mod, max or min",
                       text_, name);
    std::vector<Dim> operands = {read_sum()};
    while (take(','))
      operands.push_back(read_sum());
    const auto function = static_cast<DimFunction>(found - function_names.begin());
    if (function == DimFunction::Mod) {
      if (operands.size() != 2)
        throw user_error("dimension \"{}\": mod wants 2 operands, got {}", text_, operands.size());
      require_divisor(operands[1]);
    }
    return require_known(apply_function(function, operands));
  }

  Dim require_divisor(const Dim& divisor) const {
    if (divisor == 0)
      throw user_error("dimension \"{}\": divides by zero", text_);
    return divisor;
  }

  std::string_view text_;
  std::string_view rest_;
  size_t depth_ = 0;
  bool has_unknown_ = false;
};

}  // namespace

std::string Dim::to_string() const {
  if (is_unknown())
    return "?";
  if (is_constant())
    return std::to_string(value_);
  // What is added before what is taken away: n-m, and 8-n. Integers come last where they may.
  std::vector<DimTerm> terms = expression_->terms;
  const auto integer = terms.back().factors.empty() ? terms.end() - 1 : terms.end();
  const auto negative =
      std::stable_partition(terms.begin(), integer, [](const DimTerm& t) { return t.coefficient > 0; });
  if (negative == terms.begin() && integer != terms.end() && integer->coefficient > 0)
    std::rotate(terms.begin(), integer, terms.end());

  std::string text;
  for (const DimTerm& term : terms) {
    if (term.coefficient < 0)
      text += '-';
    else if (!text.empty())
      text += '+';
    const int64_t magnitude = std::abs(term.coefficient);
    if (magnitude != 1 || term.factors.empty())
      text += std::to_string(magnitude) + (term.factors.empty() ? "" : "*");
    for (size_t i = 0; i < term.factors.size(); ++i)
      text += (i > 0 ? "*" : "") + print_atom(*term.factors[i]);
  }
  return text;
}

Dim Dim::parse(std::string_view text) { return DimReader(text).read_all(); }

}  // namespace tenon
