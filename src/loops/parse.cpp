// parse.cpp — the text of a kernel, read back.
#include <set>

#include "ir/scanner.h"
#include "loops/check.h"
#include "loops/known_dtype.h"
#include "loops/parse_kernels.h"

namespace tenon::loops {
namespace {

// A number is read before it is known what dtype it has; until then it has this one, which no number has.
constexpr DType kBare = DType::String;

constexpr int kMaximumDepth = 100;         // of statements and brackets within each other
constexpr int kMaximumOperators = 10'000;  // of one expression, which may all stand within each other

// Whether a dtype has the number; floats round it.
bool fits(const Number& value, DType dtype) {
  if (is_float(dtype))
    return true;
  const int bits = dtype == DType::Bool ? 1 : info(dtype).bits - (is_signed(dtype) ? 1 : 0);
  const auto v = std::visit([](auto each) { return static_cast<long double>(each); }, value);
  const long double beyond = std::ldexp(1.0L, bits);
  return v == std::trunc(v) && v >= (is_signed(dtype) ? -beyond : 0) && v < beyond;
}

Number as_number(const Number& value, DType dtype) {
  return std::visit(
      [&](auto v) -> Number {
        if (is_float(dtype))
          return static_cast<double>(v);
        if (is_signed(dtype))
          return static_cast<int64_t>(v);
        return static_cast<uint64_t>(v);
      },
      value);
}

class Parser : private Scanner {
 public:
  explicit Parser(std::string_view text) : Scanner(text) {}

  Kernel parse() {
    dtypes_.clear();
    lines_.clear();
    Kernel kernel;
    expect_word("kernel");
    kernel.name = word();
    const auto parameters = [&](std::vector<Buffer>& buffers) {
      list('(', ')', [&] {
        begin_part();
        buffers.push_back(buffer());
      });
    };
    parameters(kernel.inputs);
    expect('-');
    expect('>');
    parameters(kernel.outputs);
    if (accept_word("with"))
      do
        kernel.more_sizes.push_back(word());
      while (accept(','));
    expect('{');
    while (peek_word() == "combine") {
      begin_part();
      expect_word("combine");
      kernel.combines.push_back(combine());
    }
    kernel.body = body();
    return kernel;
  }

  bool is_at_end() { return peek() == '\0'; }
  void expect_end() {
    if (!is_at_end())
      fail("the kernel ends here, but not the text");
  }

  // What is wrong with the kernel that was parsed is the user's fault.
  void refuse_problems(const Kernel& kernel) const {
    std::vector<std::string> wrong;
    for (const Problem& problem : find_problems(kernel))
      wrong.push_back(fmt::format("line {}: {}", lines_[problem.part], problem.text));
    if (!wrong.empty())
      throw user_error("{}", fmt::join(wrong, "\n  "));
  }

 private:
  // A part of the kernel, as check.h counts them, begins here.
  void begin_part() {
    skip_space();
    const size_t counted = std::exchange(counted_, at_);
    line_ += std::ranges::count(text_.substr(counted, at_ - counted), '\n');
    lines_.push_back(line_);
  }

  // What f reads, which stands within something.
  template <class F>
  auto deeper(const F& f) {
    if (++depth_ > kMaximumDepth)
      fail("this is nested too deeply");
    auto result = f();
    --depth_;
    return result;
  }

  // A dim that ends before one of these, outside of brackets.
  Dim dim(std::initializer_list<std::string_view> ends) {
    skip_space();
    const size_t begin = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 &&
          std::ranges::any_of(ends, [&](auto end) { return text_.substr(at_).starts_with(end); }))
        break;
      depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    return at_place(begin, [&] { return Dim::parse(text); });
  }

  DType dtype() {
    const size_t begin = at_;
    const std::string name = word();
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype || *dtype == DType::String)
      at_place(begin,
               [&]() -> int { throw user_error("'{}' is not a dtype that loops compute with", name); });
    return *dtype;
  }

  Buffer buffer() {
    Buffer buffer{.name = word()};
    expect(':');
    buffer.dtype = dtype();
    list('[', ']', [&] { buffer.sizes.push_back(dim({",", "]"})); });
    dtypes_.insert_or_assign(buffer.name, buffer.dtype);
    buffer.space = space();
    return buffer;
  }

  Space space() {
    if (accept_word("streamed"))
      return Space::Streamed;
    if (!accept_word("in"))
      return Space::Memory;
    if (accept_word("shared"))
      return Space::Shared;
    if (accept_word("private"))
      return Space::Private;
    fail("'shared' or 'private' was expected");
  }

  Combine combine() {
    Combine combine{.name = word()};
    if (combine.name == "unordered" && peek() != '(') {
      combine.unordered = true;
      combine.name = word();
    }
    std::vector<std::pair<std::string, DType>> variables;
    list('(', ')', [&] {
      std::string name = word();
      expect(':');
      variables.emplace_back(std::move(name), dtype());
    });
    if (variables.empty() || variables.size() % 2 != 0)
      fail("a combine has two variables for each value: what is there, and what comes");
    const auto half = variables.begin() + static_cast<std::ptrdiff_t>(variables.size() / 2);
    combine.there.assign(variables.begin(), half);
    combine.coming.assign(half, variables.end());
    variables_ = std::map<std::string, DType>(variables.begin(), variables.end());
    expect('=');
    for (size_t i = 0; i < combine.there.size(); ++i) {
      if (i > 0)
        expect(',');
      combine.results.push_back(expression(combine.there[i].second));
    }
    variables_.clear();
    return combine;
  }

  std::vector<Statement> body() {
    return deeper([&] {
      std::vector<Statement> result;
      while (!accept('}'))
        result.push_back(statement());
      return result;
    });
  }

  Statement statement() {
    begin_part();
    if (accept_word("for"))
      return loop();
    if (accept_word("if"))
      return guard();
    if (accept_word("local"))
      return local();
    if (accept_word("call"))
      return call();
    if (accept_word("prefetch"))
      return Prefetch{place(word())};
    if (accept_word("copy"))
      return copy();
    return assign();
  }

  Loop loop() {
    Loop loop{.variable = word(), .body = {}};
    expect_word("in");
    loop.begin = dim({".."});
    expect('.');
    expect('.');
    loop.end =
        dim({"{", " step ", " parallel", " vector", " unrolled", " tile", " block", " thread", " pipelined"});
    if (accept_word("step"))
      loop.step = integer<int64_t>();
    if (loop.step < 1)
      fail("a step is at least 1");
    if (accept_word("parallel"))
      loop.mark = Mark::Parallel;
    else if (accept_word("vector"))
      loop.mark = Mark::Vector;
    else if (accept_word("unrolled"))
      loop.mark = Mark::Unrolled;
    else if (accept_word("tile"))
      loop.mark = Mark::Tile;
    else if (accept_word("thread"))
      loop.mark = Mark::Thread;
    else if (accept_word("block")) {
      loop.mark = Mark::Block;
      if (accept('(')) {
        loop.threads = integer<int64_t>();
        expect(')');
      }
    }
    if (accept_word("pipelined")) {
      loop.stages = integer<int64_t>();
      if (loop.stages < 2)
        fail("at least 2 iterations of a pipelined loop overlap");
    }
    expect('{');
    loop.body = body();
    return loop;
  }

  Guard guard() {
    Guard guard;
    do {
      guard.conditions.push_back(dim({">"}));
      expect('>');
      expect('=');
      guard.conditions.back() = guard.conditions.back() - dim({"{", " and "});
    } while (accept_word("and"));
    expect('{');
    guard.body = body();
    return guard;
  }

  Local local() { return {buffer()}; }

  Copy copy() {
    Copy copy;
    list('(', ')', [&] { copy.sizes.push_back(dim({",", ")"})); });
    copy.to = place(word());
    expect('=');
    copy.from = place(word());
    return copy;
  }

  Call call() {
    Call call{.routine = word()};
    expect('(');
    do
      call.writes.push_back(place(word()));
    while (accept(','));
    expect('<');
    expect('-');
    do
      call.reads.push_back(place(word()));
    while (accept(','));
    expect(')');
    return call;
  }

  Assign assign() {
    Assign assign;
    std::string name = word();
    do {
      if (name.empty())
        name = word();
      assign.places.push_back(place(std::exchange(name, {})));
    } while (accept(','));
    if (accept('+'))
      assign.combine = "+";
    else if (accept('*'))
      assign.combine = "*";
    else if (peek() != '=')
      assign.combine = word();
    expect('=');
    for (size_t i = 0; i < assign.places.size(); ++i) {
      if (i > 0)
        expect(',');
      assign.values.push_back(expression(dtypes_.at(assign.places[i].buffer)));
    }
    return assign;
  }

  Place place(std::string name) {
    if (!dtypes_.contains(name))
      fail(fmt::format("'{}' is no buffer", name));
    return {std::move(name), indices()};
  }

  std::vector<Scalar> indices() {
    std::vector<Scalar> at;
    list('[', ']', [&] {
      if (accept('{')) {
        at.push_back(settled(comparison(), DType::I64));
        expect('}');
      } else {
        at.push_back(Scalar::index(dim({",", "]"})));
      }
    });
    return at;
  }

  Scalar expression(DType dtype) {
    operators_ = 0;
    return settled(comparison(), dtype);
  }

  // --- expressions, from what binds loosest ---

  Scalar comparison() {
    return deeper([&] { return comparison_or_sum(); });
  }
  Scalar comparison_or_sum() {
    const Scalar left = sum();
    const auto symbol = [&](std::string_view text) {
      skip_space();
      if (!text_.substr(at_).starts_with(text))
        return false;
      at_ += text.size();
      return true;
    };
    if (symbol("=="))
      return applied(Function::Equal, {left, sum()});
    if (symbol("<="))
      return applied(Function::LessEqual, {left, sum()});
    if (symbol(">="))
      return applied(Function::LessEqual, {sum(), left});
    if (symbol("<"))
      return applied(Function::Less, {left, sum()});
    if (symbol(">"))
      return applied(Function::Less, {sum(), left});
    return left;
  }

  Scalar sum() {
    Scalar left = product();
    for (;;) {
      if (peek() == '+' && !text_.substr(at_).starts_with("+=") && accept('+'))
        left = applied(Function::Add, {left, product()});
      else if (accept('-'))
        left = applied(Function::Subtract, {left, product()});
      else
        return left;
    }
  }

  Scalar product() {
    Scalar left = primary();
    for (;;) {
      if (accept('*'))
        left = applied(Function::Multiply, {left, primary()});
      else if (peek() == '/' && accept('/'))
        left = applied(Function::Divide, {left, primary()});
      else if (accept('%'))
        left = applied(Function::Remainder, {left, primary()});
      else
        return left;
    }
  }

  Scalar primary() {
    if (accept('(')) {
      const Scalar inner = comparison();
      expect(')');
      return inner;
    }
    const char c = peek();
    const std::string_view next = peek_word();
    if (('0' <= c && c <= '9') || next == "inf" || next == "nan")
      return bare_number();
    if (accept('-')) {
      const char digit = peek();
      const std::string_view after = peek_word();
      if (('0' <= digit && digit <= '9') || after == "inf" || after == "nan") {
        --at_;
        while (text_[at_] != '-')
          --at_;
        return bare_number();
      }
      return applied(Function::Negate, {deeper([&] { return primary(); })});
    }
    const std::string name = word();
    if (peek() == '[')
      return Scalar::load(name, place_dtype(name), indices());
    if (peek() == '(')
      return applied(name);
    if (const auto it = variables_.find(name); it != variables_.end())
      return Scalar::variable(name, it->second);
    return Scalar::index(Dim::symbol(name));
  }

  DType place_dtype(const std::string& name) {
    if (const auto it = dtypes_.find(name); it != dtypes_.end())
      return it->second;
    fail(fmt::format("'{}' is no buffer", name));
  }

  Scalar number(DType dtype, const Number& value) {
    if (!fits(value, dtype))
      fail(std::visit([&](auto v) { return fmt::format("{} does not fit {}", v, dtype); }, value));
    return Scalar::number(dtype, as_number(value, dtype));
  }

  Scalar bare_number() {
    skip_space();
    const size_t begin = at_;
    const double value = real();
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.find_first_of(".einf") != std::string_view::npos)
      return Scalar::number(kBare, value);
    int64_t integer = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), integer).ec == std::errc())
      return Scalar::number(kBare, integer);
    uint64_t large = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), large).ec == std::errc())
      return Scalar::number(kBare, large);
    return Scalar::number(kBare, value);
  }

  Scalar applied(const std::string& name) {
    if (name == "index") {
      expect('(');
      const Dim index = dim({")"});
      expect(')');
      return Scalar::index(index);
    }
    std::vector<Scalar> operands;
    list('(', ')', [&] { operands.push_back(comparison()); });
    if (const std::optional<DType> dtype = parse_dtype(name)) {
      if (operands.size() != 1)
        fail(fmt::format("{} takes one operand", name));
      const Scalar& operand = operands.front();
      if (operand.kind() == Scalar::Kind::Number && operand.dtype() == kBare)
        return number(*dtype, operand.value());
      return Scalar::cast(*dtype, settled(operand, std::nullopt));
    }
    for (const FunctionInfo& function : all_functions())
      if (function.name == name && function.function != Function::Cast) {
        if (operands.size() != static_cast<size_t>(function.operands))
          fail(fmt::format("{} takes {} operands, not {}", name, function.operands, operands.size()));
        return applied(function.function, std::move(operands));
      }
    fail(fmt::format("'{}' is no function", name));
  }

  Scalar applied(Function function, std::vector<Scalar> operands) {
    if (++operators_ > kMaximumOperators)
      fail(fmt::format("an expression has more than {} operators", kMaximumOperators));
    return Scalar::apply(function, std::move(operands));
  }

  // The expression, with dtypes for its bare numbers.
  Scalar settled(const Scalar& scalar, std::optional<DType> expected) {
    if (scalar.kind() == Scalar::Kind::Number && scalar.dtype() == kBare) {
      if (!expected)
        fail("the dtype of a number is ambiguous; write i32(1), say");
      return number(*expected, scalar.value());
    }
    if (scalar.kind() != Scalar::Kind::Apply || scalar.function() == Function::Cast)
      return scalar;
    const std::optional<DType> inner = dtype_of_operands(scalar, expected);
    std::vector<Scalar> operands;
    for (size_t i = 0; i < scalar.operands().size(); ++i)
      operands.push_back(
          settled(scalar.operands()[i], takes_condition(scalar.function()) && i == 0 ? DType::Bool : inner));
    return Scalar::apply(scalar.function(), std::move(operands));
  }

  std::map<std::string, DType> dtypes_;     // of buffers
  std::map<std::string, DType> variables_;  // of the combine that is being read
  int depth_ = 0;
  int operators_ = 0;                  // of the expression that is being read
  std::vector<std::ptrdiff_t> lines_;  // of the parts
  std::ptrdiff_t line_ = 1;            // of the last part
  size_t counted_ = 0;                 // letters in whose lines they are
};

}  // namespace

Kernel parse_kernel(std::string_view text) {
  Parser parser(text);
  Kernel kernel = parser.parse();
  parser.expect_end();
  return kernel;
}

Kernel parse_checked_kernel(std::string_view text) {
  Parser parser(text);
  Kernel kernel = parser.parse();
  parser.expect_end();
  parser.refuse_problems(kernel);
  return kernel;
}

std::vector<Kernel> parse_kernels(std::string_view text) {
  Parser parser(text);
  std::vector<Kernel> kernels;
  std::set<std::string> names;
  do {
    kernels.push_back(parser.parse());
    parser.refuse_problems(kernels.back());
    if (!names.insert(kernels.back().name).second)
      throw user_error("there are two kernels called {}", kernels.back().name);
  } while (!parser.is_at_end());
  return kernels;
}

}  // namespace tenon::loops
