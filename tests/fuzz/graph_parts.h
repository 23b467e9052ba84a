// graph_parts.h — what graphs are grown from: values to pick, numbers that mean something to a rule, and the
// plain pieces made of them: arithmetic, movements of elements, computed shapes, conversions, reductions,
// choices.
#pragma once

#include <algorithm>
#include <numeric>

#include "fuzz/random_graph.h"
#include "ops/binary.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::fuzz {

class GraphParts : public RandomGraph {
 public:
  using RandomGraph::RandomGraph;

 protected:
  // --- what pieces are made of ---

  Dim random_dim() {
    if (one_in(3)) {
      const std::string symbol = one_in(2) ? "n" : "m";
      sizes_.emplace(symbol, 2);
      return Dim::symbol(symbol);
    }
    constexpr int64_t sizes[] = {1, 1, 2, 3, 4, 4, 6};
    return sizes[below(std::size(sizes))];
  }

  // A shape that broadcasts to the frame.
  std::vector<Dim> part_of_frame() {
    std::vector<Dim> dims(frame_.begin() + static_cast<int64_t>(one_in(2) ? 0 : below(frame_.size() + 1)),
                          frame_.end());
    for (Dim& dim : dims)
      if (one_in(5))
        dim = 1;
    return dims;
  }

  Value add_input(const Type& type) {
    const Value input = graph_->add_input(type, fmt::format("x{}", graph_->input_count()));
    values_.push_back(input);
    return input;
  }
  bool is_nested() const { return depth_ > 0; }

  Tensor moderate(DType dtype, const Extents& extents) {
    std::vector<double> numbers(static_cast<size_t>(element_count(extents)));
    for (double& number : numbers)
      number = std::uniform_real_distribution<double>(-2, 2)(random_);
    return narrow<double>(dtype, extents, numbers);
  }

  double number() {
    constexpr double numbers[] = {
        0,    1,       -1, 2, 0.5, -0.0, 3, 0.1, 8, -2, 0.25, 1e-5, 6, 0.7071067811865476, 1.4142135623730951,
        -1e9, 1.0 / 3, 10};
    if (one_in(40))
      return one_in(2) ? INFINITY : NAN;
    return numbers[below(std::size(numbers))];
  }

  Value literal(Literal value) {
    return one_in(4) ? parameter(*graph_, fmt::format("w{}", parameters_++), std::move(value))
                     : constant(*graph_, std::move(value));
  }
  Value weight(const Extents& extents) { return weight(is_float(dtype_) ? dtype_ : DType::F32, extents); }
  Value weight(DType dtype, const Extents& extents) {
    Tensor values = moderate(dtype, extents);
    return one_in(2) ? parameter(*graph_, fmt::format("w{}", parameters_++), std::move(values))
                     : constant(*graph_, std::move(values));
  }
  // One number, or several, in a shape that more or less fits x.
  Value numbers_for(Value x) {
    Extents extents;
    for (const Dim& dim : x.shape().dims())
      extents.push_back(one_in(3) ? 1 : dim.constant().value_or(1));
    if (one_in(2))
      extents.clear();
    else if (one_in(2) && !extents.empty())
      extents.erase(extents.begin(), extents.begin() + static_cast<int64_t>(below(extents.size() + 1)));
    else if (one_in(8))
      extents.insert(extents.begin(), static_cast<int64_t>(1 + below(2)));
    if (one_in(3)) {
      std::vector<double> all(static_cast<size_t>(element_count(extents)));
      std::generate(all.begin(), all.end(), [&] { return number(); });
      return literal(narrow<double>(x.dtype(), extents, all));
    }
    const Tensor element = filled(x.dtype(), {}, number());
    return literal(one_in(2) ? Literal::splat(element, extents) : Literal(repeat(element, extents)));
  }
  Value scalar_of(Value x, double value) { return scalar(*graph_, x.dtype(), value); }

  Value pick(const std::function<bool(Value)>& fits) {
    for (int tries = 0; tries < 20; ++tries) {
      const size_t last = std::min<size_t>(values_.size(), 4);
      const Value value = values_[one_in(2) ? values_.size() - 1 - below(last) : below(values_.size())];
      if (value.type().is_tensor() && value.shape().ranked() && fits(value))
        return value;
    }
    throw user_error("nothing fits");
  }
  Value pick_any() {
    return pick([](Value) { return true; });
  }
  Value pick_number() {
    return pick([&](Value value) { return value.dtype() == dtype_; });
  }
  Value pick_float() {
    return pick([&](Value value) { return is_float(value.dtype()); });
  }
  Value pick_ranked(int64_t least) {
    return pick([&](Value value) { return value.rank() >= least; });
  }
  int64_t pick_axis(Value x) {
    if (x.rank() == 0)
      throw user_error("there is no axis");
    const auto axis = static_cast<int64_t>(below(static_cast<size_t>(x.rank())));
    return one_in(4) ? axis - x.rank() : axis;
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(all.size())];
  }

  Value keep(Value value) {
    values_.push_back(value);
    return value;
  }
  Value apply(std::string_view op, Value x, Attributes attributes = {}) {
    return keep(graph_->create(op, {{"x", x}}, std::move(attributes))->result());
  }
  Value combine(std::string_view op, Value a, Value b) {
    return keep(graph_->create(op, {{"a", a}, {"b", b}})->result());
  }
  // The same sum or product, this way or that way round.
  Value either_way(std::string_view op, Value a, Value b) {
    return one_in(2) ? combine(op, a, b) : combine(op, b, a);
  }

  // --- pieces ---

  void duplicate() {
    const std::vector<Node*> nodes = graph_->nodes();
    if (nodes.empty())
      return;
    for (Value result :
         graph_->copy_node(*nodes[below(nodes.size())], [](Value value) { return value; })->results())
      values_.push_back(result);
  }

  void arithmetic() {
    const Value x = one_in(4) ? pick_any() : pick_number();
    const Value y =
        one_in(2) ? numbers_for(x) : pick([&](Value value) { return value.dtype() == x.dtype(); });
    either_way(
        one_of<std::string_view>({"add", "add", "sub", "mul", "mul", "div", "min", "max", "pow", "mod"}), x,
        y);
  }

  // Sums, products and so on of few values.
  void formula() {
    const Value x = pick_number(), y = pick_number();
    const std::function<Value(int)> make = [&](int depth) -> Value {
      if (depth == 0 || one_in(5))
        return one_in(3) ? numbers_for(x) : one_in(3) ? y : x;
      if (one_in(6))
        return apply(one_of<std::string_view>({"neg", "neg", "reciprocal", "exp", "log", "sqrt", "abs"}),
                     make(depth - 1));
      return combine(one_of<std::string_view>({"add", "add", "mul", "mul", "sub", "div"}), make(depth - 1),
                     make(depth - 1));
    };
    make(static_cast<int>(2 + below(2)));
  }

  void function() {
    const auto random_function = [&] {
      return one_of<std::string_view>({"neg", "abs", "sqrt", "exp", "log", "reciprocal", "relu", "sigmoid",
                                       "tanh", "erf", "sign", "floor", "ceil", "round", "not", "sin",
                                       "softplus"});
    };
    Value x = one_in(6) ? pick_any() : pick_number();
    for (size_t i = 1 + below(2); i > 0; --i)
      x = apply(random_function(), x);
    if (one_in(3) && !x.is_input())
      apply(x.node()->op().name, x);
  }

  Attribute::Ints permutation(int64_t rank) {
    Attribute::Ints axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random_);
    return axes;
  }

  void move() {
    Value x = pick_any();
    for (size_t i = 1 + below(3); i > 0; --i) {
      switch (below(4)) {
        case 0:
          x = apply("transpose", x, {{"permutation", permutation(x.rank())}});
          break;
        case 1: {
          const auto axis = static_cast<int64_t>(below(static_cast<size_t>(x.rank()) + 1));
          x = apply("unsqueeze", x, {{"axes", Attribute::Ints{one_in(4) ? axis - x.rank() - 1 : axis}}});
          break;
        }
        case 2: {
          Attribute::Ints axes;
          for (int64_t axis = 0; axis < x.rank(); ++axis)
            if (x.dim(axis) == Dim(1) && one_in(2))
              axes.push_back(axis);
          x = apply("squeeze", x, {{"axes", axes}});
          break;
        }
        default:
          x = apply(one_of<std::string_view>({"neg", "relu", "abs"}), x);
      }
    }
  }

  // The sizes of x as the model computes them, some of them as constants.
  Value computed_sizes(const std::vector<std::pair<Value, int64_t>>& sizes) {
    std::vector<Value> parts;
    for (const auto& [x, axis] : sizes) {
      const std::optional<int64_t> known = x ? x.dim(axis).constant() : axis;
      if (known && (one_in(2) || !x)) {
        parts.push_back(int_vector(*graph_, {*known}));
        continue;
      }
      const Value shape = keep(shape_of(x));
      const Value index = constant(*graph_, one_in(2) ? Tensor::scalar(axis) : Tensor::of<int64_t>({axis}));
      switch (below(3)) {
        case 0:
          parts.push_back(keep(slice(shape, 0, axis, axis + 1)));
          break;
        default: {
          const Value size = keep(gather(shape, index, 0));
          parts.push_back(size.rank() == 0 ? keep(unsqueeze(size, {0})) : size);
        }
      }
    }
    if (parts.empty())
      return int_vector(*graph_, {});
    return keep(concat(parts, 0));
  }

  void view() {
    const Value x = pick_any();
    const int64_t rank = x.rank();
    const int64_t at = rank == 0 ? 0 : static_cast<int64_t>(below(static_cast<size_t>(rank)));
    std::vector<std::pair<Value, int64_t>> sizes;
    const size_t how = below(5);
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (axis != at) {
        sizes.emplace_back(x, axis);
      } else if (how == 0) {  // split
        sizes.emplace_back(Value(), one_of<int64_t>({1, 2, 2, 3}));
        sizes.emplace_back(Value(), -1);
      } else if (how == 1 && axis + 1 < rank) {  // merge
        sizes.emplace_back(Value(), -1);
        ++axis;
      } else if (how == 2) {
        sizes.emplace_back(Value(), -1);
      } else {
        sizes.emplace_back(x, axis);
        if (one_in(2))
          sizes.emplace_back(Value(), 1);
      }
    }
    if (how == 4)
      sizes = {{Value(), -1}};
    const Value shape = one_in(8) ? keep(shape_of(pick_any())) : computed_sizes(sizes);
    const Value y =
        keep(graph_->create("reshape", {{"x", x}, {"shape", shape}}, {{"allow_zero", one_in(2)}})->result());
    if (one_in(3))  // and back
      keep(reshape(one_in(2) ? y : apply("neg", y), keep(shape_of(x))));
    if (one_in(4))
      keep(broadcast_to(y, one_in(2) ? keep(shape_of(pick_any())) : int_vector(*graph_, {2, 1, 1})));
  }

  void cut() {
    const Value x = pick_ranked(1);
    const int64_t axis = pick_axis(x);
    const auto few = [&] { return static_cast<int64_t>(below(4)) - one_in(3) * 3; };
    switch (below(8)) {
      case 0: {
        const Value y =
            keep(slice(x, axis, few(), one_in(3) ? kToTheEnd : few(), one_of<int64_t>({1, 1, 1, 2, -1})));
        if (one_in(2))
          keep(slice(y, one_in(2) ? axis : pick_axis(y), few(), kToTheEnd));
        break;
      }
      case 1: {  // apart and together again
        const int64_t size = x.dim(axis).constant().value_or(2),
                      first = static_cast<int64_t>(below(static_cast<size_t>(size) + 1));
        std::vector<Value> parts = split(x, {first, size - first}, axis);
        values_.insert(values_.end(), parts.begin(), parts.end());
        if (one_in(4))
          std::reverse(parts.begin(), parts.end());
        if (one_in(2))
          keep(concat(parts, one_in(4) ? pick_axis(x) : axis));
        break;
      }
      case 2: {
        const int64_t size = x.dim(axis).constant().value_or(2),
                      middle = static_cast<int64_t>(below(static_cast<size_t>(size) + 1));
        keep(concat({keep(slice(x, axis, 0, middle)), keep(slice(x, axis, middle, kToTheEnd))}, axis));
        break;
      }
      case 3:
        keep(concat({x, pick([&](Value value) { return value.dtype() == x.dtype(); })}, axis));
        break;
      case 4:
        keep(gather(
            x,
            constant(*graph_, one_in(2) ? Tensor::scalar(few())
                                        : Tensor::of<int64_t>(one_in(2) ? std::vector<int64_t>{0, 1}
                                                                        : std::vector<int64_t>{few()})),
            axis));
        break;
      case 5: {
        const Value pads = int_vector(*graph_, {few(), few()});
        keep(graph_
                 ->create("pad", {{"x", x}, {"pads", pads}},
                          {{"axes", Attribute::Ints{axis}},
                           {"mode", one_of({"constant", "constant", "edge", "wrap"})}})
                 ->result());
        break;
      }
      case 6: {
        std::vector<int64_t> repeats(static_cast<size_t>(x.rank()), 1);
        repeats[below(repeats.size())] = static_cast<int64_t>(below(3));
        keep(graph_->create("tile", {{"x", x}, {"repeats", int_vector(*graph_, repeats)}})->result());
        break;
      }
      default:
        keep(broadcast_to(
            x, one_in(2) ? keep(shape_of(pick_any())) : computed_sizes({{Value(), 2}, {x, axis}})));
    }
  }

  // Arithmetic with sizes.
  void shape_sizes() {
    const Value x = pick_ranked(1), shape = keep(shape_of(x));
    Value size = keep(gather(shape, constant(*graph_, Tensor::of<int64_t>({pick_axis(x)})), 0));
    for (size_t i = below(3); i > 0; --i)
      size = combine(one_of<std::string_view>({"mul", "add", "sub", "div", "max"}), size,
                     int_vector(*graph_, {one_of<int64_t>({1, 2, 0, 3})}));
    switch (below(4)) {
      case 0:
        keep(graph_
                 ->create("slice", {{"x", x}, {"starts", int_vector(*graph_, {0})}, {"ends", size}},
                          {{"axes", Attribute::Ints{0}}})
                 ->result());
        break;
      case 1:
        keep(broadcast_to(scalar(*graph_, dtype_, number()), keep(concat({size, shape}, 0))));
        break;
      case 2:
        keep(reduce_prod(shape, {0}, one_in(2) ? Keep::Dims : Keep::None));
        break;
      default:
        keep(cast(size, is_float(dtype_) ? dtype_ : DType::F32));
    }
  }

  void conversion() {
    Value x = pick_any();
    for (size_t i = 1 + below(3); i > 0; --i) {
      x = keep(cast(x, one_in(3) ? dtype_ : random_dtype()));
      if (one_in(4))
        x = apply("transpose", x, {{"permutation", permutation(x.rank())}});
    }
  }

  void reduction() {
    Value x = one_in(4) ? pick_any() : pick_number();
    for (size_t i = 1 + below(2); i > 0; --i) {
      Attribute::Ints axes;
      for (int64_t axis = 0; axis < x.rank(); ++axis)
        if (one_in(2))
          axes.push_back(one_in(4) ? axis - x.rank() : axis);
      const bool keep_dims = one_in(2);
      const Value y = apply(one_of<std::string_view>({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                                                      "reduce_prod", "reduce_log_sum_exp"}),
                            x, {{"axes", axes}, {"keep_dims", keep_dims}});
      x = one_in(3) && !keep_dims && axes.size() == 1 ? apply("unsqueeze", y, {{"axes", axes}}) : y;
    }
  }

  void limits() {
    Value x = pick_number();
    for (size_t i = 1 + below(3); i > 0; --i) {
      switch (below(4)) {
        case 0:
          x = apply("relu", x);
          break;
        case 1:
          x = either_way("max", x, numbers_for(x));
          break;
        case 2:
          x = either_way("min", x, numbers_for(x));
          break;
        default:
          x = keep(clip(x, one_in(3) ? Value() : scalar_of(x, number()),
                        one_in(3) ? Value() : scalar_of(x, number())));
      }
    }
  }

  Value condition(Value x) {
    const Value y = one_in(2)   ? numbers_for(x)
                    : one_in(3) ? x
                                : pick([&](Value value) { return value.dtype() == x.dtype(); });
    return either_way(one_of<std::string_view>({"less", "greater", "equal", "less_equal", "greater_equal"}),
                      x, y);
  }

  void choice() {
    const Value x = pick_number();
    Value test = one_in(5)
                     ? constant(*graph_, repeat(filled(DType::Bool, {}, one_in(2)), Extents(below(2), 1)))
                     : condition(x);
    for (size_t i = below(3); i > 0; --i)
      test = one_in(2) ? apply("not", test)
                       : either_way(one_of<std::string_view>({"and", "or", "xor"}), test,
                                    one_in(2) ? test : condition(x));
    const Value a = one_in(2) ? x : numbers_for(x), b = one_in(2)   ? a
                                                        : one_in(2) ? pick_number()
                                                                    : numbers_for(x);
    keep(where(test, a, b));
    if (one_in(3))
      keep(cast(test, dtype_));
  }

  Graph* graph_ = nullptr;    // that grows
  DType dtype_ = DType::F32;  // of most values
  std::vector<Dim> frame_;    // what most shapes broadcast to
  int64_t parameters_ = 0;
  int depth_ = 0;  // of nested graphs
};

}  // namespace tenon::fuzz
