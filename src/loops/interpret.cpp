#include "loops/interpret.h"

#include <algorithm>
#include <array>

#include "loops/apply_function.h"
#include "tensor/wide.h"

namespace tenon::loops {
namespace {

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

// With 0 for what was not written.
Tensor tensor_of(const Elements& elements) {
  return with_wide(elements.dtype, [&]<class T>(T) {
    std::vector<T> values;
    for (const std::optional<Number>& value : elements.values)
      values.push_back(value ? std::get<T>(*value) : T{});
    return narrow<T>(elements.dtype, elements.extents, values);
  });
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const std::map<std::string, int64_t>& sizes)
      : kernel_(kernel), variables_(sizes) {}

  std::vector<PartialOutput> run(const std::vector<Tensor>& inputs) {
    bind(inputs);
    for (const Buffer& output : kernel_.outputs)
      allocate(output);
    run(kernel_.body);
    std::vector<PartialOutput> outputs;
    for (const Buffer& output : kernel_.outputs) {
      const Elements& elements = buffers_.at(output.name);
      PartialOutput partial{.elements = tensor_of(elements), .written = {}};
      for (const std::optional<Number>& value : elements.values)
        partial.written.push_back(value.has_value());
      outputs.push_back(std::move(partial));
    }
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
        return apply_function(scalar.function(), scalar.dtype(), operands);
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
        coming[i] = apply_function(*function, assign.values[i].dtype(), std::array{there(i), coming[i]});
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
  void run(const Copy& copy) {
    Extents sizes;
    for (const Dim& size : copy.sizes)
      sizes.push_back(value_of(size));
    const auto beyond = [&](const Place& place, const std::vector<int64_t>& by) {
      std::vector<Scalar> at;
      for (size_t i = 0; i < place.at.size(); ++i) {
        const int64_t more = i + by.size() < place.at.size() ? 0 : by[i + by.size() - place.at.size()];
        at.push_back(Scalar::index(std::get<int64_t>(value_of(place.at[i])) + more));
      }
      return at;
    };
    for (int64_t element_number = 0; element_number < element_count(sizes); ++element_number) {
      std::vector<int64_t> by(sizes.size());
      int64_t rest = element_number;
      for (size_t i = sizes.size(); i-- > 0; rest /= sizes[i])
        by[i] = rest % sizes[i];
      element(copy.to.buffer, beyond(copy.to, by)) = written(copy.from.buffer, beyond(copy.from, by));
    }
  }
  void run(const Local& local) { allocate(local.buffer); }
  void run(const Loop& loop) {
    std::vector<int64_t> iterations;
    const int64_t end = value_of(loop.end);
    for (int64_t i = value_of(loop.begin); i < end; i += loop.step)
      iterations.push_back(i);
    if (is_parallel(loop.mark) || loop.mark == Mark::Vector || loop.mark == Mark::Thread)
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

bool calls_routines(const std::vector<Statement>& body) {
  return std::ranges::any_of(body, [](const Statement& statement) {
    const std::vector<Statement>* inner = body_of(statement);
    return std::holds_alternative<Call>(statement) || (inner != nullptr && calls_routines(*inner));
  });
}

std::vector<PartialOutput> interpret_partly(const Kernel& kernel, const std::vector<Tensor>& inputs,
                                            const std::map<std::string, int64_t>& sizes) {
  if (const std::vector<std::string> problems = check(kernel); !problems.empty())
    throw user_error("kernel {}: {}", kernel.name, problems.front());
  return Interpreter(kernel, sizes).run(inputs);
}

std::vector<Tensor> interpret(const Kernel& kernel, const std::vector<Tensor>& inputs,
                              const std::map<std::string, int64_t>& sizes) {
  std::vector<PartialOutput> partial = interpret_partly(kernel, inputs, sizes);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < partial.size(); ++i) {
    if (const auto unwritten = std::ranges::find(partial[i].written, false);
        unwritten != partial[i].written.end())
      throw user_error("{}: element {} of the output is never written", kernel.outputs[i].name,
                       unwritten - partial[i].written.begin());
    outputs.push_back(std::move(partial[i].elements));
  }
  return outputs;
}

}  // namespace tenon::loops
