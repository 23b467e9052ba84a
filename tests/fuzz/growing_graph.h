// growing_graph.h — graphs grown from what the optimiser looks for: plain pieces, norms, activations and
// attention written out, products and convolutions with what stands beside them, control flow; and random
// nodes between.
#pragma once

#include "fuzz/image_parts.h"
#include "ops/control.h"

namespace tenon::fuzz {

class GrowingGraph : public ImageParts {
 public:
  using RandomGraph::Sizes;
  enum class Elements { Moderate, Special };  // finite and not large, or NaN and infinities too

  explicit GrowingGraph(uint64_t seed) : ImageParts(seed) { draws_random_ops_ = false; }

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
        &GrowingGraph::product,    &GrowingGraph::convolution, &GrowingGraph::images,
        &GrowingGraph::images,     &GrowingGraph::images,      &GrowingGraph::images,
        &GrowingGraph::branch,     &GrowingGraph::loop,        &GrowingGraph::walk_slices,
        &GrowingGraph::duplicate,  &GrowingGraph::duplicate,   &GrowingGraph::anything,
        &GrowingGraph::anything,
    };
    try {
      (this->*pieces[below(std::size(pieces))])();
    } catch (const UserError&) {
      // The gate refused it; what was made of it before stays.
    }
  }

  void anything() { add_node(*graph_); }

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
};

}  // namespace tenon::fuzz
