// image_parts.h — pieces of graphs that work on images: convolutions with what stands before and behind them,
// of few channels, and of so many that they are laid out side by side or computed in tiles.
#pragma once

#include "fuzz/graph_parts.h"

namespace tenon::fuzz {

class ImageParts : public GraphParts {
 public:
  using GraphParts::GraphParts;

 protected:
  Value batch_norm_of(Value x) {
    const Extents channels = {x.rank() < 2 ? 1 : x.dim(1).constant().value_or(1)};
    const Value variance = keep(graph_->create("abs", {{"x", weight(x.dtype(), channels)}})->result());
    return keep(
        graph_
            ->create("batch_norm",
                     {{"x", x},
                      {"scale", weight(x.dtype(), channels)},
                      {"bias", weight(x.dtype(), channels)},
                      {"mean", weight(x.dtype(), channels)},
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

  // --- layers of images [batch, channels, height, width] ---

  void images() {
    if (is_nested())
      return;
    const DType dtype = is_float(dtype_) && one_in(3) ? dtype_ : DType::F32;
    const auto side = [&] { return one_in(8) ? random_dim() : Dim(static_cast<int64_t>(4 + below(12))); };
    Value x = add_input(Type::tensor(dtype, {one_in(2) ? Dim(1) : random_dim(),
                                             one_of<int64_t>({3, 8, 16, 16, 16, 24, 32}), side(), side()}));
    for (size_t i = 2 + below(6); i > 0; --i)
      x = layer_of(x);
  }

  Value layer_of(Value x) {
    switch (below(16)) {
      case 0:
        return padded(x);
      case 1:
        return cropped(x);
      case 2:
        return keep(cast(x, one_of({DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16})));
      case 3:
        return turned(x);
      case 4:
        return resized(x);
      case 5:
        return keep(concat({x, image_like(x)}, one_in(4) ? pick_axis(x) : 1));
      case 6:
        return pooled(x);
      case 7:
        return either_way(one_of<std::string_view>({"add", "add", "mul"}), x, image_like(x));
      case 8:
        return gated(x);
      case 9:
      case 10:
        return with_numbers(x);
      default:
        return convolved(x);
    }
  }

  // Another image of its type, or what becomes of this one.
  Value image_like(Value x) {
    try {
      return pick([&](Value value) { return value.type() == x.type() && value != x; });
    } catch (const UserError&) {
      return apply(one_of<std::string_view>({"relu", "neg", "sigmoid"}), x);
    }
  }

  Value convolved(Value x) {
    const bool is_plain = one_in(2);  // windows of 3 x 3, which may be computed in tiles
    const int64_t channels = std::max<int64_t>(x.dim(1).constant().value_or(1), 1);
    const int64_t groups = is_plain ? 1 : one_of<int64_t>({1, 1, 2, channels, channels});
    const int64_t filters = groups > 2 ? channels * static_cast<int64_t>(1 + one_in(6))
                                       : one_of<int64_t>({16, 16, 16, 32, 8, 4, channels});
    const int64_t cells = is_plain ? 3 : one_of<int64_t>({1, 1, 3, 5, 2});
    const auto both = [](int64_t value) { return Attribute::Ints{value, value}; };
    const Attribute::Ints strides = is_plain || one_in(2) ? both(1)
                                    : one_in(3)           ? Attribute::Ints{1, 2}
                                                          : both(2);
    Attribute::Ints pads(4, cells / 2);
    for (int64_t& pad : pads)
      if (one_in(4))
        pad = static_cast<int64_t>(below(3));
    Value y = keep(graph_
                       ->create("conv",
                                {{"x", x},
                                 {"w", weight(x.dtype(), {filters, channels / groups, cells,
                                                          !is_plain && one_in(6) ? 1 : cells})}},
                                {{"groups", groups},
                                 {"strides", strides},
                                 {"dilations", both(!is_plain && one_in(4) ? 2 : 1)},
                                 {"pads", pads}})
                       ->result());
    // So that numbers stay about as large as they are.
    y = either_way("mul", y, scalar_of(y, 0.125));
    if (one_in(2))
      y = either_way("add", y, weight(y.dtype(), {filters, 1, 1}));
    if (one_in(4))
      y = batch_norm_of(y);
    return one_in(2) ? y : activated(y);
  }

  Value activated(Value x) {
    return apply(one_of<std::string_view>({"relu", "sigmoid", "tanh", "abs", "silu", "hard_swish", "gelu"}),
                 x);
  }

  Value padded(Value x) {
    std::vector<int64_t> pads(4);
    for (int64_t& pad : pads)
      pad = one_in(3) ? 0 : static_cast<int64_t>(below(4)) - 1;
    return keep(
        graph_
            ->create("pad",
                     {{"x", x},
                      {"pads", int_vector(*graph_, pads)},
                      {"value", one_in(3) ? scalar_of(x, number()) : Value()}},
                     {{"axes", one_in(6) ? Attribute::Ints{1, 3} : Attribute::Ints{2, 3}},
                      {"mode", one_of({"constant", "constant", "constant", "edge", "reflect", "wrap"})}})
            ->result());
  }

  Value cropped(Value x) {
    const auto few = [&] { return static_cast<int64_t>(below(3)); };
    return keep(slice(x, one_in(4) ? 1 : one_of<int64_t>({2, 3}), few(), one_in(2) ? kToTheEnd : -1 - few(),
                      one_of<int64_t>({1, 1, 1, 2})));
  }

  // Channels last, or rows as columns; and back.
  Value turned(Value x) {
    const bool last = one_in(2);
    const Attribute::Ints there = last ? Attribute::Ints{0, 2, 3, 1} : Attribute::Ints{0, 1, 3, 2},
                          back = last ? Attribute::Ints{0, 3, 1, 2} : there;
    Value y = apply("transpose", x, {{"permutation", there}});
    if (one_in(2))
      y = with_numbers(y);
    return one_in(8) ? y : apply("transpose", y, {{"permutation", back}});
  }

  Value resized(Value x) {
    const bool by_scale = one_in(2);
    const auto scale = [&] { return one_of({2.0F, 2.0F, 1.0F, 0.5F, 1.5F}); };
    const Value scales = by_scale ? constant(*graph_, Tensor::of<float>({scale(), scale()})) : Value();
    const auto size = [&] { return static_cast<int64_t>(1 + below(12)); };
    return keep(graph_
                    ->create("resize",
                             {{"x", x},
                              {"scales", scales},
                              {"sizes", by_scale ? Value() : int_vector(*graph_, {size(), size()})}},
                             {{"axes", Attribute::Ints{2, 3}},
                              {"mode", one_of({"nearest", "nearest", "linear", "cubic"})},
                              {"positions", one_of({"half_pixel", "asymmetric", "align_corners"})}})
                    ->result());
  }

  Value pooled(Value x) {
    if (one_in(4))
      return keep(reduce_mean(x, {2, 3}, Keep::Dims));
    const int64_t cells = one_of<int64_t>({2, 3});
    const Node* pool = graph_->create(
        one_of<std::string_view>({"max_pool", "average_pool"}), {{"x", x}},
        {{"kernel", Attribute::Ints{cells, cells}},
         {"strides", Attribute::Ints(2, one_of<int64_t>({1, 2}))},
         {"dilations", Attribute::Ints{1, 1}},
         {"pads", Attribute::Ints{static_cast<int64_t>(below(2)), 1, 0, static_cast<int64_t>(below(2))}}});
    return keep(pool->result(0));
  }

  // Channels weighed by what is in them.
  Value gated(Value x) {
    const Value mean = keep(reduce_mean(x, {2, 3}, Keep::Dims));
    return either_way("mul", x, apply("sigmoid", one_in(2) ? convolved(mean) : mean));
  }

  // Numbers for each channel, row, column or pixel, or one.
  Value with_numbers(Value x) {
    const auto size = [&](int64_t axis) { return x.dim(axis).constant().value_or(1); };
    const Value numbers = one_in(3)   ? numbers_for(x)
                          : one_in(3) ? weight(x.dtype(), {size(1), 1, 1})
                          : one_in(2) ? weight(x.dtype(), {one_in(2) ? 1 : size(2), size(3)})
                                      : weight(x.dtype(), {});
    return either_way(one_of<std::string_view>({"add", "mul", "sub", "max", "min"}), x, numbers);
  }
};

}  // namespace tenon::fuzz
