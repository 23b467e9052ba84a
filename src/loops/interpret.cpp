#include "loops/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tensor/wide.h"

namespace tenon::loops {
namespace {

// As close as the dtype comes: rounded, or reduced to its low bits.
Number fitted(DType dtype, const Number& value) {
  if (dtype == DType::F64 || dtype == DType::I64 || dtype == DType::U64)
    return value;
  if (dtype == DType::F32)
    return static_cast<double>(static_cast<float>(std::get<double>(value)));
  return std::visit(
      [&]<class T>(T v) -> Number { return widen<T>(narrow<T>(dtype, {1}, std::span(&v, 1))).front(); },
      value);
}

Number truth(bool holds) { return static_cast<uint64_t>(holds); }
bool holds(const Number& value) { return std::get<uint64_t>(value) != 0; }

Number cast(DType dtype, const Number& value) {
  if (dtype == DType::Bool)
    return truth(std::visit([](auto v) { return v != 0; }, value));
  // By way of tensors, which know how numbers that do not fit are cast.
  const DType from = std::holds_alternative<double>(value)    ? DType::F64
                     : std::holds_alternative<int64_t>(value) ? DType::I64
                                                              : DType::U64;
  const Tensor wide = std::visit([&]<class T>(T v) { return narrow<T>(from, {1}, std::span(&v, 1)); }, value);
  return with_wide(dtype, [&]<class T>(T) -> Number { return fitted(dtype, widen<T>(wide).front()); });
}

double of_floats(Function function, double a) {
  switch (function) {
    case Function::Negate:
      return -a;
    case Function::Absolute:
      return std::abs(a);
    case Function::Sqrt:
      return std::sqrt(a);
    case Function::Exp:
      return std::exp(a);
    case Function::Log:
      return std::log(a);
    case Function::Sin:
      return std::sin(a);
    case Function::Cos:
      return std::cos(a);
    case Function::Tan:
      return std::tan(a);
    case Function::Asin:
      return std::asin(a);
    case Function::Acos:
      return std::acos(a);
    case Function::Atan:
      return std::atan(a);
    case Function::Sinh:
      return std::sinh(a);
    case Function::Cosh:
      return std::cosh(a);
    case Function::Tanh:
      return std::tanh(a);
    case Function::Asinh:
      return std::asinh(a);
    case Function::Acosh:
      return std::acosh(a);
    case Function::Atanh:
      return std::atanh(a);
    case Function::Erf:
      return std::erf(a);
    case Function::Floor:
      return std::floor(a);
    case Function::Ceil:
      return std::ceil(a);
    case Function::Round:
      return std::nearbyint(a);
    default:
      throw user_error("{} of a float", info(function).name);
  }
}

double of_floats(Function function, double a, double b) {
  switch (function) {
    case Function::Add:
      return a + b;
    case Function::Subtract:
      return a - b;
    case Function::Multiply:
      return a * b;
    case Function::Divide:
      return a / b;
    case Function::Remainder:
      return std::fmod(a, b);
    case Function::Minimum:  // NaN where either is
      return std::isnan(a) || a < b ? a : b;
    case Function::Maximum:
      return std::isnan(a) || a > b ? a : b;
    case Function::Power:
      return std::pow(a, b);
    default:
      throw user_error("{} of floats", info(function).name);
  }
}

template <class T>
T of_integers(Function function, T a) {
  switch (function) {
    case Function::Not:
      return ~a;
    case Function::Negate:
      return static_cast<T>(-static_cast<uint64_t>(a));
    case Function::Absolute:
      return a < 0 ? static_cast<T>(-static_cast<uint64_t>(a)) : a;
    default:
      throw user_error("{} of an integer", info(function).name);
  }
}

uint32_t dot_i8x4(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int bits = 0; bits < 32; bits += 8)
    sum += (a >> bits & 0xff) * static_cast<uint32_t>(static_cast<int8_t>(b >> bits & 0xff));
  return sum;
}

double dot_bf16x2(uint32_t a, uint32_t b) {
  const auto low = [](uint32_t word) { return std::bit_cast<float>(word << 16); };
  const auto high = [](uint32_t word) { return std::bit_cast<float>(word & 0xffff0000); };
  return double{low(a)} * double{low(b)} + double{high(a)} * double{high(b)};
}

int64_t pack_i8x4(const std::vector<Number>& operands) {
  uint32_t word = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    word |= (static_cast<uint32_t>(std::get<int64_t>(operands[i])) & 0xff) << (8 * i);
  return static_cast<int32_t>(word);
}

double round_down_to_bf16(double number) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(number)) & 0xffff0000);
}

int64_t pack_bf16x2(double low, double high) {
  const auto bits = [](double number) { return std::bit_cast<uint32_t>(static_cast<float>(number)) >> 16; };
  return static_cast<int32_t>(bits(low) | bits(high) << 16);
}

template <class T>
T of_integers(Function function, T a, T b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // which may overflow
  switch (function) {
    case Function::Add:
      return static_cast<T>(x + y);
    case Function::Subtract:
      return static_cast<T>(x - y);
    case Function::Multiply:
      return static_cast<T>(x * y);
    case Function::Divide:
    case Function::Remainder:
      if (b == 0)
        throw user_error("an integer is divided by 0");
      if (b == static_cast<T>(-1) && std::is_signed_v<T>)
        return function == Function::Divide ? static_cast<T>(-x) : T{0};
      return function == Function::Divide ? a / b : a % b;
    case Function::Minimum:
      return std::min(a, b);
    case Function::Maximum:
      return std::max(a, b);
    case Function::ShiftLeft:
      return y < 64 ? static_cast<T>(x << y) : T{0};
    case Function::ShiftRight:
      return y < 64 ? static_cast<T>(a >> y) : T{0};
    case Function::And:
      return a & b;
    case Function::Or:
      return a | b;
    case Function::Xor:
      return a ^ b;
    case Function::DotI8x4:
      return static_cast<T>(dot_i8x4(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
    default:
      throw user_error("{} of integers", info(function).name);
  }
}

Number apply(Function function, DType dtype, const std::vector<Number>& operands) {
  if (function == Function::Cast)
    return cast(dtype, operands[0]);
  if (function == Function::Select)
    return holds(operands[0]) ? operands[1] : operands[2];
  if (function == Function::Require) {
    if (!holds(operands[0]))
      throw user_error("what the kernel requires does not hold");
    return operands[1];
  }
  if (function == Function::DotBf16x2) {
    const auto word = [&](size_t i) { return static_cast<uint32_t>(std::get<int64_t>(operands[i])); };
    return fitted(dtype, dot_bf16x2(word(0), word(1)));
  }
  if (function == Function::RoundDownToBf16)
    return round_down_to_bf16(std::get<double>(operands[0]));
  if (function == Function::Bf16Remainder)
    return fitted(dtype, std::get<double>(operands[0]) - round_down_to_bf16(std::get<double>(operands[0])));
  if (function == Function::PackBf16x2)
    return pack_bf16x2(std::get<double>(operands[0]), std::get<double>(operands[1]));
  if (function == Function::PackI8x4)
    return fitted(dtype, pack_i8x4(operands));
  if (dtype == DType::Bool && function == Function::Not)
    return truth(!holds(operands[0]));
  const Number result = std::visit(
      [&]<class T>(T a) -> Number {
        if (operands.size() == 1) {
          if constexpr (std::is_same_v<T, double>)
            return of_floats(function, a);
          else
            return of_integers<T>(function, a);
        }
        const T b = std::get<T>(operands[1]);
        if (function == Function::Equal)
          return truth(a == b);
        if (function == Function::Less)
          return truth(a < b);
        if (function == Function::LessEqual)
          return truth(a <= b);
        if constexpr (std::is_same_v<T, double>)
          return of_floats(function, a, b);
        else
          return of_integers<T>(function, a, b);
      },
      operands[0]);
  return fitted(dtype, result);
}

// The elements of a buffer; one that was not written holds nothing.
struct Elements {
  DType dtype;
  Extents extents;
  std::vector<std::optional<Number>> values;
};

Elements elements_of(const Tensor& tensor) {
  Elements elements{tensor.dtype(), tensor.extents(), {}};
  with_wide(tensor.dtype(), [&]<class T>(T) {
    for (T value : widen<T>(tensor))
      elements.values.emplace_back(value);
  });
  return elements;
}

Tensor tensor_of(const std::string& name, const Elements& elements) {
  return with_wide(elements.dtype, [&]<class T>(T) {
    std::vector<T> values;
    for (const std::optional<Number>& value : elements.values) {
      if (!value)
        throw user_error("{}: element {} of the output is never written", name, values.size());
      values.push_back(std::get<T>(*value));
    }
    return narrow<T>(elements.dtype, elements.extents, values);
  });
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const std::map<std::string, int64_t>& sizes)
      : kernel_(kernel), variables_(sizes) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    bind(inputs);
    for (const Buffer& output : kernel_.outputs)
      allocate(output);
    run(kernel_.body);
    std::vector<Tensor> outputs;
    for (const Buffer& output : kernel_.outputs)
      outputs.push_back(tensor_of(output.name, buffers_.at(output.name)));
    return outputs;
  }

 private:
  void bind(const std::vector<Tensor>& inputs) {
    if (inputs.size() != kernel_.inputs.size())
      throw user_error("kernel {} takes {} inputs, not {}", kernel_.name, kernel_.inputs.size(),
                       inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Buffer& buffer = kernel_.inputs[i];
      for (size_t axis = 0; axis < std::min(buffer.sizes.size(), inputs[i].extents().size()); ++axis)
        if (buffer.sizes[axis].is_symbol())
          variables_.emplace(buffer.sizes[axis].to_string(), inputs[i].extents()[axis]);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Buffer& buffer = kernel_.inputs[i];
      if (inputs[i].dtype() != buffer.dtype || inputs[i].extents() != extents_of(buffer))
        throw user_error("input {} is {}, not {}", buffer.name,
                         describe(inputs[i].dtype(), inputs[i].extents()),
                         describe(buffer.dtype, extents_of(buffer)));
      buffers_.insert_or_assign(buffer.name, elements_of(inputs[i]));
    }
  }

  Extents extents_of(const Buffer& buffer) const {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(value_of(size));
    return extents;
  }
  void allocate(const Buffer& buffer) {
    Elements elements{buffer.dtype, extents_of(buffer), {}};
    elements.values.resize(static_cast<size_t>(element_count(elements.extents)));
    buffers_.insert_or_assign(buffer.name, std::move(elements));
  }

  int64_t value_of(const Dim& dim) const {
    const std::optional<int64_t> value = dim.evaluate(variables_);
    if (!value)
      throw user_error("kernel {}: size {} is unbound", kernel_.name, dim);
    return *value;
  }

  std::optional<Number>& element(const std::string& name, const std::vector<Scalar>& at) {
    Elements& elements = buffers_.at(name);
    int64_t offset = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const int64_t index = std::get<int64_t>(value_of(at[axis])), extent = elements.extents[axis];
      if (index < 0 || index >= extent)
        throw user_error("{}: index {} along dimension {} of {}{}", name, index, axis,
                         describe(elements.dtype, elements.extents), where());
      offset = offset * extent + index;
    }
    return elements.values[static_cast<size_t>(offset)];
  }
  const Number& written(const std::string& name, const std::vector<Scalar>& at) {
    const std::optional<Number>& value = element(name, at);
    if (!value)
      throw user_error("{} is read before it is written{}", name, where());
    return *value;
  }

  // The values of the loop variables, for errors.
  std::string where() const {
    std::vector<std::string> texts;
    for (const auto& [name, value] : variables_)
      texts.push_back(fmt::format("{} = {}", name, value));
    return texts.empty() ? "" : fmt::format(", at {}", fmt::join(texts, ", "));
  }

  Number value_of(const Scalar& scalar, const std::map<std::string, Number>& locals = {}) {
    switch (scalar.kind()) {
      case Scalar::Kind::Number:
        return fitted(scalar.dtype(), scalar.value());
      case Scalar::Kind::Index:
        return value_of(scalar.index());
      case Scalar::Kind::Variable:
        return locals.at(scalar.name());
      case Scalar::Kind::Load:
        return written(scalar.name(), scalar.operands());
      case Scalar::Kind::Apply: {
        // Only what is chosen: the other may be an element outside its buffer.
        if (scalar.function() == Function::Select)
          return value_of(scalar.operands()[holds(value_of(scalar.operands()[0], locals)) ? 1 : 2], locals);
        std::vector<Number> operands;
        for (const Scalar& operand : scalar.operands())
          operands.push_back(value_of(operand, locals));
        return apply(scalar.function(), scalar.dtype(), operands);
      }
    }
    CHECK(false, "a scalar of no kind");
  }

  void run(const std::vector<Statement>& body) {
    for (const Statement& statement : body)
      std::visit([&](const auto& each) { run(each); }, statement);
  }
  void run(const Assign& assign) {
    std::vector<Number> coming;
    for (const Scalar& value : assign.values)
      coming.push_back(value_of(value));
    if (!assign.combine.empty())
      coming = combined(assign, std::move(coming));
    // All places are found before any is written, as one may say where another is.
    std::vector<std::optional<Number>*> places;
    for (const Place& place : assign.places)
      places.push_back(&element(place.buffer, place.at));
    for (size_t i = 0; i < coming.size(); ++i)
      *places[i] = coming[i];
  }
  std::vector<Number> combined(const Assign& assign, std::vector<Number> coming) {
    const auto there = [&](size_t i) { return written(assign.places[i].buffer, assign.places[i].at); };
    if (const std::optional<Function> function = built_in_combine(assign.combine)) {
      for (size_t i = 0; i < coming.size(); ++i)
        coming[i] = apply(*function, assign.values[i].dtype(), {there(i), coming[i]});
      return coming;
    }
    const Combine& combine = *kernel_.find_combine(assign.combine);
    std::map<std::string, Number> variables;
    for (size_t i = 0; i < coming.size(); ++i) {
      variables.emplace(combine.there[i].first, there(i));
      variables.emplace(combine.coming[i].first, coming[i]);
    }
    std::vector<Number> results;
    for (const Scalar& result : combine.results)
      results.push_back(value_of(result, variables));
    return results;
  }
  void run(const Call& call) { throw user_error("there is no routine '{}' to call", call.routine); }
  void run(const Prefetch&) {}
  void run(const Local& local) { allocate(local.buffer); }
  void run(const Loop& loop) {
    std::vector<int64_t> iterations;
    const int64_t end = value_of(loop.end);
    for (int64_t i = value_of(loop.begin); i < end; i += loop.step)
      iterations.push_back(i);
    if (loop.mark == Mark::Parallel || loop.mark == Mark::Vector)
      std::ranges::reverse(iterations);
    for (int64_t i : iterations) {
      variables_.insert_or_assign(loop.variable, i);
      run(loop.body);
    }
    variables_.erase(loop.variable);
  }
  void run(const Guard& guard) {
    if (std::ranges::all_of(guard.conditions, [&](const Dim& condition) { return value_of(condition) >= 0; }))
      run(guard.body);
  }

  const Kernel& kernel_;
  std::map<std::string, int64_t> variables_;  // of loops, and sizes
  std::map<std::string, Elements> buffers_;
};

}  // namespace

std::vector<Tensor> interpret(const Kernel& kernel, const std::vector<Tensor>& inputs,
                              const std::map<std::string, int64_t>& sizes) {
  if (const std::vector<std::string> problems = check(kernel); !problems.empty())
    throw user_error("kernel {}: {}", kernel.name, problems.front());
  return Interpreter(kernel, sizes).run(inputs);
}

}  // namespace tenon::loops
