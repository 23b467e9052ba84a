#include "ops/widening_conv.h"

#include <algorithm>

#include "ir/size_condition.h"
#include "ops/lower_window.h"
#include "ops/shapes.h"
#include "ops/widening_matmul.h"

namespace tenon {
namespace {

Extents spatial(const Tensor& t) { return Extents(t.extents().begin() + 2, t.extents().end()); }
std::span<const Dim> spatial(Value v) { return std::span(v.shape().dims()).subspan(2); }

void check_ranks(const Node& n, int64_t x_rank, int64_t w_rank) {
  if (x_rank < 3 || w_rank != x_rank)
    throw operand_error(n, "x must be [batch, channels, spatial…], and w of the same rank");
}

void check(const Node& n, const Dim& channels, const Dim& filters, const Dim& filter_channels) {
  const int64_t groups = n.attr("groups"), border = n.attr("border");
  assume_multiple(filters, groups);
  if (groups < 1 || groups > INT32_MAX || filters.constant().value_or(0) % groups != 0)
    throw operand_error(n, fmt::format("{} filters do not divide into {} groups", filters, groups));
  if (border < 0 || border > UINT8_MAX)
    throw user_error("{}: border is {}, which is no byte", n.op().name, border);
  if (provably_different(channels, filter_channels * groups))
    throw operand_error(n, "the channels of x are not those that w is for");
}

Types infer(const Node& n) {
  const Value x = n.in("x"), w = n.in("w");
  check_ranks(n, x.rank(), w.rank());
  check(n, x.dim(1), w.dim(0), w.dim(1));
  std::vector<Dim> dims = {x.dim(0), w.dim(0)};
  for (Dim& count : count_windows(n, window_of(n, x.rank() - 2), spatial(x), spatial(w)))
    dims.push_back(std::move(count));
  return {Type::tensor(accumulator_of(n), dims)};
}

// One result after the other, and for each what its window sees, be it an element or the border. Rounded once
// to Sum, or wrapped around.
template <class Sum, class Wide>
class Windows {
 public:
  explicit Windows(const Call& c)
      : x_(c.in("x")),
        w_(c.in("w")),
        weights_(widen<Wide>(w_)),
        window_(window_of(c.node(), x_.rank() - 2)),
        counts_(count_windows(c.node(), window_, spatial(x_), spatial(w_))),
        groups_(c.attr("groups")),
        border_(static_cast<uint8_t>(c.attr("border").as<int64_t>())) {}

  Tensor sums() const {
    const int64_t filters = w_.extent(0), windows = element_count(counts_);
    Extents extents = {x_.extent(0), filters};
    extents.insert(extents.end(), counts_.begin(), counts_.end());
    Tensor y(dtype_of<Sum>(), extents);
    const std::span<Sum> into = y.mutable_data<Sum>();
    for (int64_t i = 0; i < y.count(); ++i)
      into[static_cast<size_t>(i)] = sum_at(i / windows / filters, i / windows % filters, i % windows);
    return y;
  }

 private:
  Sum sum_at(int64_t image, int64_t filter, int64_t window) const {
    const int64_t channels = x_.extent(1) / groups_, cells = element_count(spatial(w_)),
                  plane = element_count(spatial(x_)),
                  first = image * x_.extent(1) + filter / (w_.extent(0) / groups_) * channels;
    Wide sum = 0;
    for (int64_t cell = 0; cell < cells; ++cell) {
      const std::optional<int64_t> element = element_under(window, cell);
      for (int64_t channel = 0; channel < channels; ++channel) {
        const uint8_t byte =
            element ? x_.data<uint8_t>()[static_cast<size_t>((first + channel) * plane + *element)] : border_;
        sum += static_cast<Wide>(byte) *
               weights_[static_cast<size_t>((filter * channels + channel) * cells + cell)];
      }
    }
    return static_cast<Sum>(sum);
  }

  std::optional<int64_t> element_under(int64_t window, int64_t cell) const {
    const Extents sizes = spatial(x_), kernel = spatial(w_);
    int64_t element = 0, stride = 1;
    bool inside = true;
    for (size_t i = sizes.size(); i-- > 0;) {
      const Slide& slide = window_.slides[i];
      const int64_t at =
          window % counts_[i] * slide.stride + cell % kernel[i] * slide.dilation - slide.before;
      inside = inside && at >= 0 && at < sizes[i];
      element += at * stride;
      stride *= sizes[i];
      window /= counts_[i];
      cell /= kernel[i];
    }
    return inside ? std::optional(element) : std::nullopt;
  }

  const Tensor &x_, &w_;
  const std::vector<Wide> weights_;
  Window window_;
  Extents counts_;
  int64_t groups_;
  uint8_t border_;
};

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &w = c.in("w");
  check_ranks(c.node(), x.rank(), w.rank());
  check(c.node(), x.extent(1), w.extent(0), w.extent(1));
  const DType accumulator = c.attr("accumulator");
  return {accumulator == DType::I32 ? Windows<int32_t, int64_t>(c).sums() : Windows<float, double>(c).sums()};
}

void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x"), w = n.in("w"), y = n.result();
  const Window window = window_of(n, x.rank() - 2);
  const int64_t groups = n.attr("groups");
  if (!w.dim(0).is_constant())
    return;
  const int64_t filters_per_group = std::max<int64_t>(*w.dim(0).constant() / groups, 1);
  const std::vector<Dim> reduced(w.shape().dims().begin() + 1, w.shape().dims().end());
  const Scalar border = Scalar::number(DType::U8, static_cast<uint64_t>(n.attr("border").as<int64_t>()));
  c.define(c.reduce(
      y.shape().dims(), reduced, "+", Scalar::zero(y.dtype()), [&](const Index& at, const Index& over) {
        const SeenElement seen =
            seen_element(window, spatial(x), std::span(at).subspan(2), std::span(over).subspan(1));
        const Dim group = groups == 1 ? Dim(0) : floor_div(at[1].index(), filters_per_group);
        Index of_x{at[0], Scalar::index(group * w.dim(1) + over[0].index())}, of_w{at[1]};
        of_x.insert(of_x.end(), seen.at.begin(), seen.at.end());
        of_w.insert(of_w.end(), over.begin(), over.end());
        const Scalar element = LowerContext::require_equal(x.dim(1), w.dim(1) * groups, c.stored(x, of_x));
        return Scalar::cast(y.dtype(), seen.inside ? select(*seen.inside, element, border) : element) *
               Scalar::cast(y.dtype(), c.stored(w, of_w));
      }));
}

}  // namespace

const Family& widening_conv_ops() {
  static const Family ops = {
      {.name = "widening_conv",
       .doc = "bytes x: [batch, channels, …] correlated with filters, of elements that are converted to the "
              "accumulator's dtype",
       .operands = {{"x", "u8"}, {"w", "T"}},
       .attributes = with_window(
           {accumulator_attribute(),
            {"groups", AttributeKind::Int, "the channels fall into so many groups", 1},
            {"border", AttributeKind::Int, "the byte that stands around x where it is padded", 0}}),
       .results = {{"y", "$accumulator"}},
       .types = {{"T", {DType::U8, DType::I8, DType::F32}}},
       .infer = infer,
       .eval = eval,
       .lower = lower},
  };
  return ops;
}

Value widening_conv(Value x, Value w, DType accumulator, const WideningConvolution& how) {
  std::vector<int64_t> strides, dilations, pads;
  for (const Slide& slide : how.window.slides) {
    strides.push_back(slide.stride);
    dilations.push_back(slide.dilation);
    pads.push_back(slide.before);
  }
  for (const Slide& slide : how.window.slides)
    pads.push_back(slide.after);
  return x.graph()
      .create("widening_conv", {{"x", x}, {"w", w}},
              {{"strides", strides},
               {"dilations", dilations},
               {"pads", pads},
               {"accumulator", accumulator},
               {"groups", how.groups},
               {"border", how.border}})
      ->result();
}

}  // namespace tenon
