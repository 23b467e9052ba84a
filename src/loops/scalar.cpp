#include "loops/scalar.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace tenon::loops {

namespace {

// Lets go of expressions one after another, however deeply they are nested: those within one that goes wait
// until it is gone.
class Operands {
 public:
  Operands(std::vector<Scalar> values) : values_(std::move(values)) {}  // NOLINT: they are no more than that
  Operands(Operands&&) = default;
  Operands& operator=(Operands&&) = delete;
  ~Operands() {
    static thread_local std::vector<Scalar>* waiting = nullptr;
    if (values_.empty())
      return;
    if (waiting != nullptr) {
      std::ranges::move(values_, std::back_inserter(*waiting));
      return;
    }
    waiting = &values_;
    while (!values_.empty()) {
      const Scalar next = std::move(values_.back());
      values_.pop_back();
    }
    waiting = nullptr;
  }

  const std::vector<Scalar>& values() const { return values_; }

 private:
  std::vector<Scalar> values_;
};

}  // namespace

struct ScalarNode {
  Scalar::Kind kind;
  DType dtype;
  Number value = 0.0;
  Dim index = 0;
  std::string name = {};
  Function function = Function::Add;
  Operands operands = {{}};
};

namespace {

// In the order of the enumeration.
constexpr FunctionInfo kFunctions[] = {
    {Function::Add, "add", "+", 2},
    {Function::Subtract, "subtract", "-", 2},
    {Function::Multiply, "multiply", "*", 2},
    {Function::Divide, "divide", "/", 2},
    {Function::Remainder, "remainder", "%", 2},
    {Function::Minimum, "min", "", 2},
    {Function::Maximum, "max", "", 2},
    {Function::Power, "power", "", 2},
    {Function::ShiftLeft, "shift_left", "", 2},
    {Function::ShiftRight, "shift_right", "", 2},
    {Function::Equal, "equal", "==", 2},
    {Function::Less, "less", "<", 2},
    {Function::LessEqual, "less_equal", "<=", 2},
    {Function::And, "and", "", 2},
    {Function::Or, "or", "", 2},
    {Function::Xor, "xor", "", 2},
    {Function::Not, "not", "", 1},
    {Function::DotI8x4, "dot_i8x4", "", 2},
    {Function::DotBf16x2, "dot_bf16x2", "", 2},
    {Function::PackI8x4, "pack_i8x4", "", 4},
    {Function::PackBf16x2, "pack_bf16x2", "", 2},
    {Function::RoundDownToBf16, "round_down_to_bf16", "", 1},
    {Function::Bf16Remainder, "bf16_remainder", "", 1},
    {Function::Philox, "philox", "", 3},
    {Function::PhiloxHigh, "philox_high", "", 3},
    {Function::Negate, "negate", "", 1},
    {Function::Absolute, "abs", "", 1},
    {Function::Sqrt, "sqrt", "", 1},
    {Function::Exp, "exp", "", 1},
    {Function::Log, "log", "", 1},
    {Function::Sin, "sin", "", 1},
    {Function::Cos, "cos", "", 1},
    {Function::Tan, "tan", "", 1},
    {Function::Asin, "asin", "", 1},
    {Function::Acos, "acos", "", 1},
    {Function::Atan, "atan", "", 1},
    {Function::Sinh, "sinh", "", 1},
    {Function::Cosh, "cosh", "", 1},
    {Function::Tanh, "tanh", "", 1},
    {Function::Asinh, "asinh", "", 1},
    {Function::Acosh, "acosh", "", 1},
    {Function::Atanh, "atanh", "", 1},
    {Function::Erf, "erf", "", 1},
    {Function::Floor, "floor", "", 1},
    {Function::Ceil, "ceil", "", 1},
    {Function::Round, "round", "", 1},
    {Function::Select, "select", "", 3},
    {Function::Require, "require", "", 2},
    {Function::Cast, "cast", "", 1},
};

}  // namespace

const FunctionInfo& info(Function function) { return kFunctions[static_cast<size_t>(function)]; }
std::span<const FunctionInfo> all_functions() { return kFunctions; }
bool gives_bool(Function function) {
  return function == Function::Equal || function == Function::Less || function == Function::LessEqual;
}
std::optional<DType> dtype_given(Function function) {
  if (gives_bool(function))
    return DType::Bool;
  switch (function) {
    case Function::DotBf16x2:
      return DType::F32;
    case Function::PackBf16x2:
      return DType::I32;
    case Function::RoundDownToBf16:
      return DType::BF16;
    default:
      return std::nullopt;
  }
}
bool takes_condition(Function function) {
  return function == Function::Select || function == Function::Require;
}

Scalar Scalar::number(DType dtype, Number value) {
  return Scalar(
      std::make_shared<const ScalarNode>(ScalarNode{.kind = Kind::Number, .dtype = dtype, .value = value}));
}

Scalar Scalar::zero(DType dtype) {
  if (is_float(dtype))
    return number(dtype, 0.0);
  return number(dtype, is_signed(dtype) ? Number(int64_t{0}) : Number(uint64_t{0}));
}

Scalar Scalar::index(Dim value) {
  return Scalar(std::make_shared<const ScalarNode>(
      ScalarNode{.kind = Kind::Index, .dtype = DType::I64, .index = std::move(value)}));
}

Scalar Scalar::variable(std::string name, DType dtype) {
  return Scalar(std::make_shared<const ScalarNode>(
      ScalarNode{.kind = Kind::Variable, .dtype = dtype, .name = std::move(name)}));
}

Scalar Scalar::load(std::string buffer, DType dtype, std::vector<Scalar> at) {
  return Scalar(std::make_shared<const ScalarNode>(
      ScalarNode{.kind = Kind::Load, .dtype = dtype, .name = std::move(buffer), .operands = std::move(at)}));
}

Scalar Scalar::apply(Function function, std::vector<Scalar> operands) {
  CHECK(operands.size() == static_cast<size_t>(info(function).operands), "{} of {} operands",
        info(function).name, operands.size());
  const DType dtype = dtype_given(function).value_or(operands.back().dtype());
  return Scalar(std::make_shared<const ScalarNode>(ScalarNode{
      .kind = Kind::Apply, .dtype = dtype, .function = function, .operands = std::move(operands)}));
}

Scalar Scalar::cast(DType dtype, Scalar operand) {
  if (operand.dtype() == dtype)
    return operand;
  return Scalar(std::make_shared<const ScalarNode>(ScalarNode{.kind = Kind::Apply,
                                                              .dtype = dtype,
                                                              .function = Function::Cast,
                                                              .operands = std::vector{std::move(operand)}}));
}

Scalar::Kind Scalar::kind() const { return node_->kind; }
DType Scalar::dtype() const { return node_->dtype; }
Number Scalar::value() const { return node_->value; }
const Dim& Scalar::index() const { return node_->index; }
const std::string& Scalar::name() const { return node_->name; }
Function Scalar::function() const { return node_->function; }
const std::vector<Scalar>& Scalar::operands() const { return node_->operands.values(); }

namespace {

// The expression with other operands.
Scalar with_operands(const Scalar& scalar, std::vector<Scalar> operands) {
  if (scalar.kind() == Scalar::Kind::Load)
    return Scalar::load(scalar.name(), scalar.dtype(), std::move(operands));
  if (scalar.function() == Function::Cast)
    return Scalar::cast(scalar.dtype(), std::move(operands.front()));
  return Scalar::apply(scalar.function(), std::move(operands));
}

// Shared parts are replaced once and stay shared.
template <class Replace>
class Replacing {
 public:
  explicit Replacing(const Replace& replace) : replace_(replace) {}

  Scalar operator()(const Scalar& scalar) {
    if (const auto it = done_.find(scalar.identity()); it != done_.end())
      return it->second;
    std::vector<Scalar> operands;
    bool changed = false;
    for (const Scalar& operand : scalar.operands()) {
      operands.push_back((*this)(operand));
      changed |= operands.back().identity() != operand.identity();
    }
    const Scalar result = replace_(changed ? with_operands(scalar, std::move(operands)) : scalar);
    done_.emplace(scalar.identity(), result);
    return result;
  }

 private:
  const Replace& replace_;
  std::unordered_map<const void*, Scalar> done_;
};

}  // namespace

Scalar Scalar::substitute(const std::map<std::string, Dim>& replacements) const {
  const auto replace = [&](const Scalar& scalar) {
    return scalar.kind() == Kind::Index ? Scalar::index(scalar.index().substitute(replacements)) : scalar;
  };
  return Replacing(replace)(*this);
}

bool operator==(const Scalar& a, const Scalar& b) {
  if (a.node_ == b.node_)
    return true;
  const ScalarNode &x = *a.node_, &y = *b.node_;
  // Numbers by their bits, so that NaN equals itself and -0 does not equal 0.
  const auto bits = [](const Number& n) {
    return std::visit([](auto v) { return std::bit_cast<uint64_t>(v); }, n);
  };
  return x.kind == y.kind && x.dtype == y.dtype && x.value.index() == y.value.index() &&
         bits(x.value) == bits(y.value) && x.index == y.index && x.name == y.name &&
         x.function == y.function && x.operands.values() == y.operands.values();
}

const Scalar* first_of_word(const Scalar& word) {
  if (word.kind() != Scalar::Kind::Apply ||
      (word.function() != Function::PackI8x4 && word.function() != Function::PackBf16x2))
    return nullptr;
  const auto load_in = [](const Scalar& part) -> const Scalar* {
    const bool widened = part.kind() == Scalar::Kind::Apply && part.function() == Function::Cast;
    const Scalar& load = widened ? part.operands().front() : part;
    return load.kind() == Scalar::Kind::Load && (!widened || info(load.dtype()).bits == 8) ? &load : nullptr;
  };
  const Scalar* first = load_in(word.operands().front());
  for (size_t i = 0; i < word.operands().size(); ++i) {
    const Scalar* load = load_in(word.operands()[i]);
    if (first == nullptr || load == nullptr || load->name() != first->name() || load->operands().empty())
      return nullptr;
    for (size_t dim = 0; dim < load->operands().size(); ++dim) {
      const Scalar &index = load->operands()[dim], &of_first = first->operands()[dim];
      const int64_t beyond = dim + 1 == load->operands().size() ? static_cast<int64_t>(i) : 0;
      if (index.kind() != Scalar::Kind::Index || of_first.kind() != Scalar::Kind::Index ||
          index.index() != of_first.index() + beyond)
        return nullptr;
    }
  }
  return first;
}

void for_each_load(const Scalar& scalar, const std::function<void(const Scalar&)>& f) {
  for (const Scalar& operand : scalar.operands())
    for_each_load(operand, f);
  if (scalar.kind() == Scalar::Kind::Load)
    f(scalar);
}

namespace {

void visit_indices(const Scalar& scalar, const std::function<void(const Dim&)>& f,
                   std::unordered_set<const void*>& seen) {
  if (scalar.kind() == Scalar::Kind::Index)
    return f(scalar.index());
  if (scalar.kind() == Scalar::Kind::Apply && !seen.insert(scalar.identity()).second)
    return;
  for (const Scalar& operand : scalar.operands())
    visit_indices(operand, f, seen);
}

}  // namespace

void for_each_index(const Scalar& scalar, const std::function<void(const Dim&)>& f) {
  std::unordered_set<const void*> seen;
  visit_indices(scalar, f, seen);
}

Scalar replace_loads(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f) {
  const auto replace = [&](const Scalar& each) { return each.kind() == Scalar::Kind::Load ? f(each) : each; };
  return Replacing(replace)(scalar);
}

Scalar replace_indices(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f) {
  const auto replace = [&](const Scalar& each) {
    return each.kind() == Scalar::Kind::Index ? f(each) : each;
  };
  return Replacing(replace)(scalar);
}

Scalar replace_selects(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f) {
  const auto replace = [&](const Scalar& each) {
    return each.kind() == Scalar::Kind::Apply && each.function() == Function::Select ? f(each) : each;
  };
  return Replacing(replace)(scalar);
}

}  // namespace tenon::loops
