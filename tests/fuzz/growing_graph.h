// growing_graph.h — graphs grown from what the optimiser looks for: neutral elements and inverses, movements
// of elements, shapes that are computed, norms, activations and attention written out, products and
// convolutions with what stands beside them, control flow; and random nodes between.
#pragma once

#include <algorithm>
#include <numeric>

#include "fuzz/random_graph.h"
#include "ops/binary.h"
#include "ops/control.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::fuzz {

class GrowingGraph : public RandomGraph {
 public:
  using RandomGraph::Sizes;
  enum class Elements { Moderate, Special };  // finite and not large, or NaN and infinities too

  explicit GrowingGraph(uint64_t seed) : RandomGraph(seed) { draws_random_ops_ = false; }

  std::unique_ptr<Graph> make() {
    auto graph = std::make_unique<Graph>("grown");
    graph_ = graph.get();
    constexpr DType dtypes[] = {DType::F32, DType::F32, DType::F64, DType::F64, DType::F64,
                                DType::F16, DType::I64, DType::I32, DType::BF16};
    dtype_ = one_in(10) ? all_dtypes()[below(all_dtypes().size())].dtype : dtypes[below(std::size(dtypes))];
    for (size_t rank = 1 + below(4); rank > 0; --rank)
      frame_.push_back(random_dim());
    for (size_t i = 1 + below(3); i > 0; --i)
      add_input(one_in(8) ? random_type() : Type::tensor(dtype_, part_of_frame()));
    for (size_t i = 2 + below(9); i > 0; --i)
      grow();
    choose_outputs();
    return graph;
  }

  Sizes random_sizes() {
    Sizes sizes = sizes_;
    for (auto& [symbol, size] : sizes)
      size = static_cast<int64_t>(below(5));
    return sizes;
  }

  // The same for Graph::bind.
  std::map<std::string, Dim> random_dims() {
    const Sizes sizes = random_sizes();
    return {sizes.begin(), sizes.end()};
  }

  Data inputs_for(const Graph& graph, const Sizes& sizes, Elements elements) {
    Data inputs;
    for (Value input : graph.inputs()) {
      const TensorType& type = input.type().as_tensor();
      const Extents extents = extents_of(type, sizes);
      inputs.emplace_back(elements == Elements::Moderate && is_float(type.dtype)
                              ? moderate(type.dtype, extents)
                              : random_tensor(type.dtype, extents));
    }
    return inputs;
  }

 private:
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
  Value weight(const Extents& extents) {
    const DType dtype = is_float(dtype_) ? dtype_ : DType::F32;
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

  void grow() {
    using Piece = void (GrowingGraph::*)();
    constexpr Piece pieces[] = {
        &GrowingGraph::arithmetic, &GrowingGraph::arithmetic,  &GrowingGraph::formula,
        &GrowingGraph::formula,    &GrowingGraph::function,    &GrowingGraph::function,
        &GrowingGraph::move,       &GrowingGraph::move,        &GrowingGraph::move,
        &GrowingGraph::move,       &GrowingGraph::view,        &GrowingGraph::view,
        &GrowingGraph::view,       &GrowingGraph::cut,         &GrowingGraph::cut,
        &GrowingGraph::cut,        &GrowingGraph::shape_sizes, &GrowingGraph::conversion,
        &GrowingGraph::conversion, &GrowingGraph::reduction,   &GrowingGraph::reduction,
        &GrowingGraph::limits,     &GrowingGraph::choice,      &GrowingGraph::choice,
        &GrowingGraph::softmax,    &GrowingGraph::norm,        &GrowingGraph::activation,
        &GrowingGraph::attention,  &GrowingGraph::rotation,    &GrowingGraph::product,
        &GrowingGraph::product,    &GrowingGraph::convolution, &GrowingGraph::branch,
        &GrowingGraph::loop,       &GrowingGraph::walk_slices, &GrowingGraph::duplicate,
        &GrowingGraph::duplicate,  &GrowingGraph::anything,    &GrowingGraph::anything,
    };
    try {
      (this->*pieces[below(std::size(pieces))])();
    } catch (const UserError&) {
      // The gate refused it; what was made of it before stays.
    }
  }

  void anything() { add_node(*graph_); }

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

  // --- what has a name when it is one op ---

  void softmax() {
    const Value x = pick_float();
    const Axes axis = {pick_axis(x)};
    const Value shifted = one_in(3) ? x : combine("sub", x, keep(reduce_max(x, axis, Keep::Dims)));
    if (one_in(4)) {
      combine("sub", shifted, apply("log", keep(reduce_sum(apply("exp", shifted), axis, Keep::Dims))));
      return;
    }
    const Value exps = apply("exp", shifted),
                sum = keep(reduce_sum(exps, one_in(8) ? Axes{0} : axis, Keep::Dims));
    const Value y = one_in(3) ? either_way("mul", exps, apply("reciprocal", sum)) : combine("div", exps, sum);
    if (one_in(4))
      apply("log", y);
  }

  void norm() {
    const Value x = pick_float();
    Axes axes = {pick_axis(x)};
    if (one_in(4))
      axes = {-2, -1};
    const bool centred = !one_in(3);
    const Value d = centred ? combine("sub", x, keep(reduce_mean(x, axes, Keep::Dims))) : x;
    const Value square = one_in(2) ? combine("mul", d, d) : combine("pow", d, scalar_of(x, 2));
    const Value variance = keep(reduce_mean(square, axes, one_in(10) ? Keep::None : Keep::Dims));
    const Value safe = either_way("add", variance, scalar_of(x, one_of({1e-5, 1e-3, 1e-12})));
    Value y;
    switch (below(3)) {
      case 0:
        y = combine("div", d, apply("sqrt", safe));
        break;
      case 1:
        y = either_way("mul", d, apply("reciprocal", apply("sqrt", safe)));
        break;
      default:
        y = either_way("mul", d, combine("pow", safe, scalar_of(x, -0.5)));
    }
    const std::optional<int64_t> size = x.dim(-1).constant();
    const auto factor = [&] { return size && !one_in(4) ? weight({*size}) : numbers_for(x); };
    if (!one_in(3))
      y = either_way("mul", y, factor());
    if (!one_in(3))
      either_way("add", y, factor());
  }

  void activation() {
    const Value x = pick_float();
    const auto c = [&](double value) { return scalar_of(x, one_in(12) ? number() : value); };
    switch (below(8)) {
      case 0: {
        const Value inner = one_in(2) ? combine("div", x, c(1.4142135623730951))
                                      : either_way("mul", x, c(0.7071067811865476));
        const Value bell = either_way("add", apply("erf", inner), c(1));
        if (one_in(2))
          either_way("mul", either_way("mul", x, c(0.5)), bell);
        else
          either_way("mul", x, either_way("mul", bell, c(0.5)));
        break;
      }
      case 1: {
        const Value cube =
            one_in(2) ? combine("pow", x, c(3)) : either_way("mul", either_way("mul", x, x), x);
        const Value inner = either_way("mul", either_way("add", x, either_way("mul", cube, c(0.044715))),
                                       c(0.7978845608028654));
        either_way("mul", either_way("mul", x, c(0.5)), either_way("add", apply("tanh", inner), c(1)));
        break;
      }
      case 2:
        either_way("mul", x, apply("sigmoid", one_in(3) ? either_way("mul", x, c(1.702)) : x));
        break;
      case 3: {
        const Value bottom = either_way("add", apply("exp", apply("neg", x)), c(1));
        one_in(2) ? combine("div", one_in(2) ? x : c(1), bottom) : apply("reciprocal", bottom);
        break;
      }
      case 4: {
        const Value six = combine("min", combine("max", either_way("add", x, c(3)), c(0)), c(6));
        one_in(2) ? combine("div", either_way("mul", x, six), c(6))
                  : either_way("mul", x, combine("div", six, c(6)));
        break;
      }
      case 5:
        either_way("max", x, either_way("mul", x, c(0.1)));
        break;
      case 6: {
        const Value plus =
            one_in(2) ? apply("softplus", x) : apply("log", either_way("add", apply("exp", x), c(1)));
        either_way("mul", x, apply("tanh", plus));
        break;
      }
      default:
        keep(where(combine("greater", x, c(0)), x,
                   one_in(2) ? either_way("mul", x, c(0.1)) : combine("sub", apply("exp", x), c(1))));
    }
  }

  void attention() {
    if (is_nested() || !is_float(dtype_))
      return;
    const Dim queries = random_dim(), keys = one_in(2) ? queries : random_dim(),
              size = one_of<int64_t>({2, 4});
    std::vector<Dim> leading;
    for (size_t rank = below(3); rank > 0; --rank)
      leading.push_back(random_dim());
    const auto stack = [&](Dim rows, Dim columns) {
      std::vector<Dim> dims = leading;
      dims.push_back(rows);
      dims.push_back(columns);
      return add_input(Type::tensor(dtype_, dims));
    };
    Value q = stack(queries, size);
    const bool turned = one_in(2);
    Value k = turned ? stack(keys, size) : stack(size, keys);
    const Value v = stack(keys, one_in(2) ? size : Dim(3));
    if (one_in(3))
      q = either_way("mul", q, scalar_of(q, 0.5));
    Value scores;
    if (turned && one_in(2)) {
      scores = keep(graph_->create("matmul", {{"a", q}, {"b", k}}, {{"transpose_b", true}})->result());
    } else {
      if (turned)
        k = keep(transpose_last_two(k));
      scores = combine("matmul", q, k);
    }
    if (!one_in(3))
      scores = one_in(2) ? combine("div", scores, scalar_of(q, 2))
                         : either_way("mul", scores, numbers_for(scores));
    if (one_in(3))
      scores = either_way("add", scores,
                          one_in(2) ? numbers_for(scores) : add_input(Type::tensor(dtype_, {queries, keys})));
    if (one_in(4))
      scores = keep(where(add_input(Type::tensor(DType::Bool, {queries, keys})), scores,
                          scalar_of(q, one_of<double>({-1e9, -INFINITY, -1e4}))));
    if (one_in(4))
      scores = either_way("mul", apply("tanh", combine("div", scores, scalar_of(q, 5))), scalar_of(q, 5));
    const Value p = apply("softmax", scores, {{"axis", int64_t{-1}}});
    combine("matmul", p, v);
  }

  void rotation() {
    const Value x = pick([&](Value value) {
      return is_float(value.dtype()) && value.rank() >= 1 && value.dim(-1).is_constant() &&
             *value.dim(-1).constant() % 2 == 0;
    });
    const int64_t size = *x.dim(-1).constant(), half = one_in(8) ? 1 : size / 2;
    const Value low = keep(slice(x, -1, 0, half)), high = keep(slice(x, -1, half, kToTheEnd));
    const Value turned = keep(concat({apply("neg", high), low}, -1));
    const Value cosines = numbers_for(x), sines = one_in(2) ? pick_float() : numbers_for(x);
    either_way("add", either_way("mul", x, cosines), either_way("mul", turned, sines));
  }

  void product() {
    const Value x = pick([&](Value value) {
      return is_float(value.dtype()) && value.rank() >= 1 && value.dim(-1).is_constant();
    });
    const int64_t features = *x.dim(-1).constant(), outputs = one_of<int64_t>({1, 2, 3});
    Value y;
    switch (below(4)) {
      case 0:
        y = keep(graph_
                     ->create("linear", {{"x", x},
                                         {"weight", weight({outputs, features})},
                                         {"bias", one_in(2) ? Value() : weight({outputs})}})
                     ->result());
        break;
      case 1:
        y = keep(graph_
                     ->create("matmul",
                              {{"a", x}, {"b", one_in(2) ? weight({outputs, features}) : pick_float()}},
                              {{"transpose_b", true}})
                     ->result());
        break;
      case 2:
        y = combine(
            "matmul", x,
            one_in(2) ? weight({features, outputs}) : keep(transpose_last_two(weight({outputs, features}))));
        break;
      default:
        y = keep(graph_
                     ->create("matmul",
                              {{"a", one_in(2)      ? x
                                     : x.rank() < 2 ? x
                                                    : keep(transpose_last_two(x))},
                               {"b", one_in(2) ? weight({features, outputs}) : pick_float()}},
                              {{"transpose_a", true}})
                     ->result());
    }
    for (size_t i = below(4); i > 0; --i) {
      const Value c = one_in(3) ? numbers_for(y) : weight(one_in(3) ? Extents{} : Extents{outputs});
      switch (below(5)) {
        case 0:
          y = either_way("add", y, c);
          break;
        case 1:
          y = either_way("mul", y, c);
          break;
        case 2:
          y = combine(one_of<std::string_view>({"div", "sub"}), y, c);
          break;
        case 3:
          y = combine("matmul", y, weight({outputs, outputs}));
          break;
        default:
          y = batch_norm_of(y);
      }
    }
    if (one_in(3))
      apply("relu", y);
  }

  Value batch_norm_of(Value x) {
    const Extents channels = {x.rank() < 2 ? 1 : x.dim(1).constant().value_or(1)};
    const Value variance = keep(graph_->create("abs", {{"x", weight(channels)}})->result());
    return keep(
        graph_
            ->create("batch_norm",
                     {{"x", x},
                      {"scale", weight(channels)},
                      {"bias", weight(channels)},
                      {"mean", weight(channels)},
                      {"variance", one_in(2) ? variance : constant(*graph_, filled(x.dtype(), channels, 1))}},
                     {{"epsilon", one_of({1e-5, 1e-3})}})
            ->result());
  }

  void convolution() {
    if (is_nested() || !is_float(dtype_))
      return;
    const int64_t spatial = one_in(2) ? 1 : 2, groups = one_in(4) ? 2 : 1;
    const bool transposed = one_in(4);
    std::vector<Dim> dims = {random_dim(), 2};
    for (int64_t i = 0; i < spatial; ++i)
      dims.push_back(one_in(4) ? random_dim() : Dim(static_cast<int64_t>(3 + below(3))));
    Value x = add_input(Type::tensor(dtype_, dims));
    if (one_in(2)) {
      std::vector<int64_t> pads(static_cast<size_t>(2 * (spatial + one_in(6))));
      for (int64_t& pad : pads)
        pad = static_cast<int64_t>(below(3)) - one_in(8);
      Attribute::Ints axes(pads.size() / 2);
      std::iota(axes.begin(), axes.end(), 2 + spatial - static_cast<int64_t>(axes.size()));
      x = keep(graph_
                   ->create("pad",
                            {{"x", x},
                             {"pads", int_vector(*graph_, pads)},
                             {"value", one_in(3) ? scalar_of(x, number()) : Value()}},
                            {{"axes", axes}, {"mode", one_of({"constant", "constant", "constant", "edge"})}})
                   ->result());
    }
    const int64_t filters = 2;
    Extents extents = {transposed ? 2 : filters, (transposed ? filters : 2) / groups};
    for (int64_t i = 0; i < spatial; ++i)
      extents.push_back(static_cast<int64_t>(1 + below(3)));
    const Attribute::Ints ones(static_cast<size_t>(spatial), 1),
        strides(static_cast<size_t>(spatial), one_of<int64_t>({1, 1, 2}));
    Attribute::Ints pads(static_cast<size_t>(2 * spatial));
    for (int64_t& pad : pads)
      pad = static_cast<int64_t>(below(2));
    Value y =
        keep(graph_
                 ->create(transposed ? "conv_transpose" : "conv", {{"x", x}, {"w", weight(extents)}},
                          {{"groups", groups}, {"strides", strides}, {"dilations", ones}, {"pads", pads}})
                 ->result());
    const Extents channels = spatial == 1 ? Extents{filters, 1} : Extents{filters, 1, 1};
    for (size_t i = below(4); i > 0; --i) {
      const Value c = one_in(4) ? numbers_for(y) : weight(one_in(4) ? Extents{} : channels);
      y = one_in(3) ? batch_norm_of(y)
                    : either_way(one_of<std::string_view>({"add", "add", "mul", "sub", "div"}), y, c);
    }
  }

  // --- control flow ---

  // A nested graph of a few pieces; `finish` says what it gives.
  std::unique_ptr<Graph> nested(const std::string& name, const Types& inputs,
                                const std::function<void()>& finish) {
    std::unique_ptr<Graph> region = graph_->make_region(name);
    Graph* const outer = std::exchange(graph_, region.get());
    const std::vector<Value> outer_values = std::exchange(values_, {});
    ++depth_;
    for (const Type& type : inputs)
      add_input(type);
    for (size_t i = 1 + below(3); i > 0; --i)
      grow();
    finish();
    --depth_;
    graph_ = outer;
    values_ = outer_values;
    return region;
  }
  // The newest value of this type.
  Value newest(const Type& type) {
    for (auto it = values_.rbegin(); it != values_.rend(); ++it)
      if (it->type() == type)
        return *it;
    return values_.front();
  }

  void branch() {
    if (depth_ > 1)
      return;
    const Value x = pick_number(), y = pick_any();
    const Value test = one_in(3)
                           ? constant(*graph_, Tensor(filled(DType::Bool, {}, one_in(2))))
                           : combine("less", keep(reduce_max(x, permutation(x.rank()))), scalar_of(x, 1));
    const auto make = [&](const std::string& name) {
      return nested(name, {x.type(), y.type()}, [&] {
        graph_->set_outputs({newest(x.type()), newest(y.type())});
      });
    };
    std::unique_ptr<Graph> then = make("then"), otherwise = one_in(5) ? then->clone() : make("else");
    for (Value result : if_else(test, {x, y}, std::move(then), std::move(otherwise)))
      keep(result);
  }

  void loop() {
    if (depth_ > 1)
      return;
    const Value x = pick_number(), y = pick_any();
    const Type i64 = Type::tensor(DType::I64, {});
    std::unique_ptr<Graph> body = nested("body", {i64, x.type(), y.type()}, [&] {
      const Value go_on = one_in(3) ? combine("less", graph_->input(0), scalar(*graph_, DType::I64, 1))
                                    : constant(*graph_, Tensor(filled(DType::Bool, {}, !one_in(5))));
      graph_->set_outputs({go_on, newest(x.type()), values_.back()});
    });
    Loop loop{.trip_count = constant(*graph_, Tensor::scalar(static_cast<int64_t>(below(4)))),
              .carried = {x},
              .captured = {y}};
    for (Value result : while_loop(*graph_, loop, std::move(body)))
      keep(result);
  }

  void walk_slices() {
    if (depth_ > 1)
      return;
    const Value x = pick_ranked(1), carried = pick_number();
    const auto axis = static_cast<int64_t>(below(static_cast<size_t>(x.rank())));
    std::vector<Dim> dims = x.shape().dims();
    dims.erase(dims.begin() + axis);
    std::unique_ptr<Graph> body = nested("body", {carried.type(), Type::tensor(x.dtype(), dims)}, [&] {
      graph_->set_outputs({newest(carried.type()), values_.back()});
    });
    const Scan walk{.carried = {carried},
                    .scanned = {x},
                    .axes = {axis},
                    .reversed = {one_in(3)},
                    .output_axes = {0},
                    .output_reversed = {one_in(3)}};
    for (Value result : scan(*graph_, walk, std::move(body)))
      keep(result);
  }

  void choose_outputs() {
    std::vector<Value> outputs;
    for (Value value : values_)
      if (value.type().is_tensor() && !value.is_input() &&
          (one_in(6) || (value.use_count() == 0 && one_in(2))))
        outputs.push_back(value);
    if (values_.back().type().is_tensor())
      outputs.push_back(values_.back());
    graph_->set_outputs(outputs);
  }

  Graph* graph_ = nullptr;
  DType dtype_ = DType::F32;
  std::vector<Dim> frame_;
  int64_t parameters_ = 0;
  int depth_ = 0;
};

}  // namespace tenon::fuzz
