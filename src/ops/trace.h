// trace.h — graphs from plain C++: a function runs once on symbolic values, and what it does is recorded.
//
//   trace({f32({8, 16})}, [](Value x) { return relu(x * 2.0 + 1.0); })
//
// The function takes one Value per input, or all of them as a std::vector<Value>, and returns a Value or a
// std::vector<Value>.
#pragma once

#include <type_traits>

#include "base/error.h"
#include "ir/graph.h"

namespace tenon {

inline Type f32(Shape shape) { return Type::tensor(DType::F32, std::move(shape)); }
inline Type i64(Shape shape) { return Type::tensor(DType::I64, std::move(shape)); }
inline Type boolean(Shape shape) { return Type::tensor(DType::Bool, std::move(shape)); }

// An input of a traced function. One without a name is called x, or x0, x1, … where there are several.
struct TracedInput {
  TracedInput(Type type, std::string name = "") : type(std::move(type)), name(std::move(name)) {}

  Type type;
  std::string name;
};

using TracedInputs = std::vector<TracedInput>;

namespace tracing {

constexpr size_t kMostValues = 8;  // that a traced function takes one by one
constexpr size_t kVector = kMostValues + 1, kNothing = kMostValues + 2;  // what it takes instead

template <size_t>
using OneValue = Value;

template <class F, class>
struct Takes;
template <class F, size_t... I>
struct Takes<F, std::index_sequence<I...>> : std::is_invocable<F&, OneValue<I>...> {};

template <class F, size_t... I>
auto call(F& function, const std::vector<Value>& values, std::index_sequence<I...>) {
  return function(values[I]...);
}

// How many values a function takes one by one; or kVector, or kNothing that it could be called with.
template <class F, size_t count = 0>
constexpr size_t count_values() {
  if constexpr (std::is_invocable_v<F&, const std::vector<Value>&>)
    return kVector;
  else if constexpr (count > kMostValues)
    return kNothing;
  else if constexpr (Takes<F, std::make_index_sequence<count>>::value)
    return count;
  else
    return count_values<F, count + 1>();
}

inline std::vector<Value> as_outputs(Value value) { return {value}; }
inline std::vector<Value> as_outputs(std::vector<Value> values) { return values; }

// Calls the function with as many values as it takes. What it does may be a user's mistake, so nothing is
// instantiated any further where a message can say what is wrong.
template <class F>
std::vector<Value> apply(F& function, const std::vector<Value>& values) {
  constexpr size_t count = count_values<F>();
  static_assert(count != kNothing,
                "a traced function takes up to 8 tenon::Values, or a std::vector<tenon::Value>");
  const auto give = [&](auto&& work) -> std::vector<Value> {
    constexpr bool gives_values = requires { as_outputs(work()); };
    static_assert(gives_values, "a traced function returns a tenon::Value or a std::vector<tenon::Value>");
    if constexpr (gives_values)
      return as_outputs(work());
    else
      return {};
  };
  if constexpr (count == kVector) {
    return give([&] { return function(values); });
  } else if constexpr (count != kNothing) {
    CHECK(values.size() == count, "a function of {} values is traced with {} inputs", count, values.size());
    return give([&] { return call(function, values, std::make_index_sequence<count>()); });
  } else {
    return {};
  }
}

std::vector<Value> add_inputs(Graph& graph, const TracedInputs& inputs);
void set_outputs(Graph& graph, const std::vector<Value>& outputs);

}  // namespace tracing

// An output that is an input or has a name keeps it; others are called output, or output_0, output_1, …
template <class F>
std::unique_ptr<Graph> trace(const TracedInputs& inputs, F&& function) {
  auto graph = std::make_unique<Graph>();
  tracing::set_outputs(*graph, tracing::apply(function, tracing::add_inputs(*graph, inputs)));
  return graph;
}

// The same for a nested graph of a node in `parent`. What it uses must be handed to it as inputs.
template <class F>
std::unique_ptr<Graph> trace_region(const Graph& parent, const std::string& name, const TracedInputs& inputs,
                                    F&& function) {
  std::unique_ptr<Graph> graph = parent.make_region(name);
  tracing::set_outputs(*graph, tracing::apply(function, tracing::add_inputs(*graph, inputs)));
  return graph;
}

}  // namespace tenon
