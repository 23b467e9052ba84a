// print.cpp — kernels as text. A number is printed bare where its neighbours or the place it goes to say its
// dtype, as parse.cpp works it out.
#include "base/error.h"
#include "loops/kernel.h"
#include "loops/known_dtype.h"

namespace tenon::loops {
namespace {

// How tightly an operator binds.
enum class Binding : uint8_t { Comparison, Sum, Product, Primary };

Binding binding_of(Function function) {
  switch (function) {
    case Function::Equal:
    case Function::Less:
    case Function::LessEqual:
      return Binding::Comparison;
    case Function::Add:
    case Function::Subtract:
      return Binding::Sum;
    case Function::Multiply:
    case Function::Divide:
    case Function::Remainder:
      return Binding::Product;
    default:
      return Binding::Primary;
  }
}

std::string literal(const Scalar& scalar) {
  const std::string digits = std::visit([](auto value) { return fmt::format("{}", value); }, scalar.value());
  // Without a point, -0 would be an integer, which has no sign.
  return digits == "-nan" ? "nan" : digits == "-0" ? "-0.0" : digits;
}

class Printer {
 public:
  std::string print(const Kernel& kernel) {
    text_ = fmt::format(
        "kernel {}({}) -> ({}){} {{\n", kernel.name, fmt::join(described(kernel.inputs), ", "),
        fmt::join(described(kernel.outputs), ", "),
        kernel.more_sizes.empty() ? "" : fmt::format(" with {}", fmt::join(kernel.more_sizes, ", ")));
    for (const Buffer& buffer : kernel.inputs)
      remember(buffer);
    for (const Buffer& buffer : kernel.outputs)
      remember(buffer);
    depth_ = 1;
    for (const Combine& combine : kernel.combines)
      print(combine);
    print(kernel.body);
    return text_ + "}\n";
  }

  std::string print_alone(const Statement& statement, const Kernel& kernel) {
    print(kernel);
    text_.clear();
    depth_ = 0;
    std::visit([&](const auto& each) { print(each); }, statement);
    return text_.substr(0, text_.find('\n'));
  }

 private:
  void line(const std::string& words) { text_ += std::string(2 * depth_, ' ') + words + "\n"; }

  static std::string described(const Buffer& buffer) {
    constexpr std::string_view kSpaces[] = {"", " in shared", " in private", " streamed"};
    return fmt::format("{}: {}[{}]{}", buffer.name, buffer.dtype, fmt::join(buffer.sizes, ","),
                       kSpaces[static_cast<size_t>(buffer.space)]);
  }
  static std::vector<std::string> described(const std::vector<Buffer>& buffers) {
    std::vector<std::string> texts;
    for (const Buffer& buffer : buffers)
      texts.push_back(described(buffer));
    return texts;
  }
  void remember(const Buffer& buffer) { dtypes_.insert_or_assign(buffer.name, buffer.dtype); }

  void print(const Combine& combine) {
    std::vector<std::string> variables, results;
    for (const auto* half : {&combine.there, &combine.coming})
      for (const auto& [name, dtype] : *half)
        variables.push_back(fmt::format("{}: {}", name, dtype));
    for (size_t i = 0; i < combine.results.size(); ++i)
      results.push_back(scalar(combine.results[i], combine.there[i].second));
    line(fmt::format("combine {}{}({}) = {}", combine.unordered ? "unordered " : "", combine.name,
                     fmt::join(variables, ", "), fmt::join(results, ", ")));
  }

  void print(const std::vector<Statement>& body) {
    for (const Statement& statement : body)
      std::visit([&](const auto& each) { print(each); }, statement);
  }
  void print_block(const std::string& head, const std::vector<Statement>& body) {
    line(head + " {");
    ++depth_;
    print(body);
    --depth_;
    line("}");
  }

  void print(const Assign& assign) {
    std::vector<std::string> values;
    for (size_t i = 0; i < assign.values.size(); ++i)
      values.push_back(scalar(assign.values[i], dtypes_.at(assign.places[i].buffer)));
    line(fmt::format("{} {}= {}", fmt::join(texts(assign.places), ", "), assign.combine,
                     fmt::join(values, ", ")));
  }
  void print(const Call& call) {
    line(fmt::format("call {}({} <- {})", call.routine, fmt::join(texts(call.writes), ", "),
                     fmt::join(texts(call.reads), ", ")));
  }
  void print(const Prefetch& prefetch) { line("prefetch " + text(prefetch.place.buffer, prefetch.place.at)); }
  void print(const Copy& copy) {
    line(fmt::format("copy({}) {} = {}", fmt::join(copy.sizes, ","), text(copy.to.buffer, copy.to.at),
                     text(copy.from.buffer, copy.from.at)));
  }
  void print(const Local& local) {
    remember(local.buffer);
    line("local " + described(local.buffer));
  }
  void print(const Loop& loop) {
    constexpr std::string_view kMarks[] = {"",      " parallel", " vector", " unrolled",
                                           " tile", " block",    " thread"};
    const std::string threads = loop.threads == 0 ? "" : fmt::format("({})", loop.threads);
    const std::string step = loop.step == 1 ? "" : fmt::format(" step {}", loop.step);
    const std::string stages = loop.stages == 1 ? "" : fmt::format(" pipelined {}", loop.stages);
    print_block(fmt::format("for {} in {}..{}{}{}{}{}", loop.variable, loop.begin, loop.end, step,
                            kMarks[static_cast<size_t>(loop.mark)], threads, stages),
                loop.body);
  }
  void print(const Guard& guard) {
    std::vector<std::string> conditions;
    for (const Dim& condition : guard.conditions)
      conditions.push_back(fmt::format("{} >= 0", condition));
    print_block(fmt::format("if {}", fmt::join(conditions, " and ")), guard.body);
  }

  std::vector<std::string> texts(const std::vector<Place>& places) {
    std::vector<std::string> result;
    for (const Place& place : places)
      result.push_back(text(place.buffer, place.at));
    return result;
  }
  std::string text(const std::string& buffer, const std::vector<Scalar>& at) {
    std::vector<std::string> indices;
    for (const Scalar& index : at)
      indices.push_back(index.kind() == Scalar::Kind::Index
                            ? index.index().to_string()
                            : fmt::format("{{{}}}", scalar(index, DType::I64)));
    return fmt::format("{}[{}]", buffer, fmt::join(indices, ","));
  }

  // Within what binds as `around` does; `expected` is the dtype that a bare number would get.
  std::string scalar(const Scalar& scalar, std::optional<DType> expected,
                     Binding around = Binding::Comparison) {
    switch (scalar.kind()) {
      case Scalar::Kind::Number:
        return scalar.dtype() == expected ? literal(scalar)
                                          : fmt::format("{}({})", scalar.dtype(), literal(scalar));
      case Scalar::Kind::Index:
        return scalar.index().is_symbol() ? scalar.index().to_string()
                                          : fmt::format("index({})", scalar.index());
      case Scalar::Kind::Variable:
        return scalar.name();
      case Scalar::Kind::Load:
        return text(scalar.name(), scalar.operands());
      case Scalar::Kind::Apply:
        return applied(scalar, expected, around);
    }
    CHECK(false, "a scalar of no kind");
  }

  std::string applied(const Scalar& applied, std::optional<DType> expected, Binding around) {
    const std::vector<Scalar>& operands = applied.operands();
    const FunctionInfo& function = info(applied.function());
    if (applied.function() == Function::Cast)
      return fmt::format("{}({})", applied.dtype(), scalar(operands[0], std::nullopt));
    const std::optional<DType> inner = dtype_of_operands(applied, expected);
    if (function.infix.empty()) {
      std::vector<std::string> texts;
      for (size_t i = 0; i < operands.size(); ++i)
        texts.push_back(
            scalar(operands[i], takes_condition(applied.function()) && i == 0 ? DType::Bool : inner));
      return fmt::format("{}({})", function.name, fmt::join(texts, ", "));
    }
    // a - (b - c) keeps its brackets, (a - b) - c does not need them.
    const Binding own = binding_of(applied.function());
    const auto tighter = static_cast<Binding>(static_cast<int>(own) + 1);
    const std::string text =
        fmt::format("{} {} {}", scalar(operands[0], inner, own == Binding::Comparison ? tighter : own),
                    function.infix, scalar(operands[1], inner, tighter));
    return own < around ? "(" + text + ")" : text;
  }

  std::string text_;
  size_t depth_ = 0;
  std::map<std::string, DType> dtypes_;  // of buffers
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer().print(kernel); }
std::string print(const Statement& statement, const Kernel& kernel) {
  return Printer().print_alone(statement, kernel);
}

}  // namespace tenon::loops
