#include "ops/lower_resize.h"

#include <algorithm>
#include <cmath>

#include "ops/interpolate.h"
#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

Scalar number(double value) { return loops::constant(DType::F64, value); }

// One dimension, as a formula sees it. Positions are f64, as those of eval are: in a narrower float the last
// bit may make it another element.
struct LoweredStretch {
  Dim size_dim, count_dim;
  Scalar scale;
  std::optional<double> known_scale;
  Scalar start, end;
  Scalar size = Scalar::cast(DType::F64, Scalar::index(size_dim));
  Scalar count = Scalar::cast(DType::F64, Scalar::index(count_dim));
  Scalar exact_count = scale * size;

  // Whether all elements stay where they are: known, or nothing where dynamic.
  std::optional<bool> is_known_to_stay() const {
    if (known_scale && *known_scale != 1)
      return false;
    if (size_dim == count_dim)
      return true;
    return provably_different(size_dim, count_dim) ? std::optional(false) : std::nullopt;
  }
  Scalar stays() const { return equal(Scalar::index(size_dim), Scalar::index(count_dim)); }
};

using LoweredPosition = Scalar (*)(const LoweredStretch&, const Scalar& index);

constexpr std::pair<std::string_view, LoweredPosition> kLoweredPositions[] = {
    {"half_pixel", [](const LoweredStretch& s, const Scalar& i) { return (i + 0.5) / s.scale - 0.5; }},
    {"half_pixel_or_first",
     [](const LoweredStretch& s, const Scalar& i) {
       return select(less(number(1), s.exact_count), (i + 0.5) / s.scale - 0.5, number(0));
     }},
    {"half_pixel_symmetric",
     [](const LoweredStretch& s, const Scalar& i) {
       return s.size / 2 * (1 - s.count / s.exact_count) + ((i + 0.5) / s.scale - 0.5);
     }},
    {"shifted", [](const LoweredStretch& s, const Scalar& i) { return (i + 0.5) / s.scale; }},
    {"asymmetric", [](const LoweredStretch& s, const Scalar& i) { return i / s.scale; }},
    {"align_corners",
     [](const LoweredStretch& s, const Scalar& i) {
       return select(equal(s.exact_count, number(1)), number(0), i * (s.size - 1) / (s.exact_count - 1));
     }},
    {"crop",
     [](const LoweredStretch& s, const Scalar& i) {
       const Scalar last = s.size - 1;
       return select(equal(s.exact_count, number(1)), (s.start + s.end) / 2 * last,
                     s.start * last + i * (s.end - s.start) * last / (s.exact_count - 1));
     }},
};

using LoweredRound = Scalar (*)(const Scalar&);

constexpr std::pair<std::string_view, LoweredRound> kLoweredRounds[] = {
    {"half_down", [](const Scalar& x) { return loops::ceil(x - 0.5); }},
    {"half_up", [](const Scalar& x) { return loops::floor(x + 0.5); }},
    {"down", [](const Scalar& x) { return loops::floor(x); }},
    {"up", [](const Scalar& x) { return loops::ceil(x); }},
};

// The filter at a distance; Keys 1981 with the parameter a.
Scalar lowered_weight(const Scalar& distance, Filter filter, double a) {
  const Scalar d = abs(distance);
  if (filter == Filter::Linear)
    return select(less(d, number(1)), 1 - d, number(0));
  const Scalar near = ((d * (a + 2)) - (a + 3)) * d * d + 1, far = ((d - 5) * d + 8) * d * a - 4 * a;
  return select(less_equal(d, number(1)), near, select(less(d, number(2)), far, number(0)));
}

// What the elements along one dimension of the result are made of, as tables: [elements, taps].
struct LoweredTaps {
  int64_t axis = 0, count = 1;  // of the taps
  int64_t home = 0;             // the tap that is the element itself, where all stay
  LowerContext::Formula index;
  LowerContext::Formula weight = nullptr;      // none: 1
  std::optional<Scalar> stays = std::nullopt;  // whether only the tap `home` counts
  LowerContext::Formula inside = nullptr;      // none: always; [elements]
};

class LoweredResize {
 public:
  explicit LoweredResize(LowerContext& c) : c_(c), n_(c.node()), x_(n_.in("x")), y_(n_.result()) {}

  void run() {
    std::vector<int64_t> axes = n_.attr("axes").as<Attribute::Ints>();
    for (int64_t& axis : axes)
      axis = checked_axis("resize", axis, x_.rank());
    const auto stretches = find_stretches(axes);
    if (!stretches || (blends() && !std::isfinite(n_.attr("outside_value").as<double>())))
      return;
    std::vector<LoweredTaps> taps;
    for (size_t i = 0; i < axes.size(); ++i) {
      if ((*stretches)[i].is_known_to_stay() == true && !crops())
        continue;
      if (n_.attr("antialias") && !(*stretches)[i].known_scale)
        return;
      taps.push_back(find_taps((*stretches)[i], axes[i]));
    }
    blends() ? blend(taps) : move(taps);
  }

 private:
  bool crops() const { return n_.attr("positions").as<std::string>() == "crop"; }
  bool keeps_aspect() const { return n_.attr("aspect").as<std::string>() != "stretch"; }
  bool blends() const { return filter_ != Filter::Nearest; }

  std::optional<std::vector<LoweredStretch>> find_stretches(const std::vector<int64_t>& axes) const {
    const Tensor* scales = n_.has("scales") ? n_.in("scales").known_tensor() : nullptr;
    if (n_.has("scales") && scales == nullptr)
      return std::nullopt;
    const Value region = n_.in("region");
    if (crops() && (!region || region.rank() != 1 || region.dim(0) != Dim(std::ssize(axes) * 2)))
      return std::nullopt;
    const auto corner = [&](size_t i) {
      return crops() ? Scalar::cast(DType::F64, c_.stored(region, {Scalar::index(static_cast<int64_t>(i))}))
                     : number(0);
    };
    const std::optional<double> common = common_scale(axes);
    if (!scales && keeps_aspect() && !common)
      return std::nullopt;
    std::vector<LoweredStretch> result;
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim size = x_.dim(axes[i]), count = y_.dim(axes[i]);
      std::optional<double> scale = common;
      if (scales)
        scale = static_cast<double>(scales->data<float>()[i]);
      else if (!common && size.is_constant() && count.is_constant() && *size.constant() > 0)
        scale = static_cast<double>(*count.constant()) / static_cast<double>(*size.constant());
      result.push_back({.size_dim = size,
                        .count_dim = count,
                        .scale = scale ? number(*scale)
                                       : Scalar::cast(DType::F64, Scalar::index(count)) /
                                             Scalar::cast(DType::F64, Scalar::index(size)),
                        .known_scale = scale,
                        .start = corner(i),
                        .end = corner(axes.size() + i)});
    }
    return result;
  }

  // Where the aspect is kept, and all sizes are known.
  std::optional<double> common_scale(const std::vector<int64_t>& axes) const {
    const auto wanted = n_.has("sizes") ? n_.in("sizes").known_ints() : std::nullopt;
    if (!keeps_aspect() || !wanted)
      return std::nullopt;
    std::optional<double> scale;
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::optional<int64_t> size = x_.dim(axes[i]).constant();
      if (!size || *size == 0)
        return std::nullopt;
      const double own = static_cast<double>((*wanted)[i]) / static_cast<double>(*size);
      const bool smaller = n_.attr("aspect").as<std::string>() == "not_larger";
      scale = !scale ? own : smaller ? std::min(*scale, own) : std::max(*scale, own);
    }
    return scale;
  }

  LoweredTaps find_taps(const LoweredStretch& stretch, int64_t axis) {
    const auto position = named<LoweredPosition>(n_, "positions", kLoweredPositions);
    const std::optional<bool> known = stretch.is_known_to_stay();
    const auto place = [&](const Scalar& i) {
      const Scalar index = Scalar::cast(DType::F64, i), at = position(stretch, index);
      return known || crops() ? at : select(stretch.stays(), index, at);
    };
    LoweredTaps taps{.axis = axis, .index = nullptr};
    const std::vector<Dim> elements = {stretch.count_dim};
    if (crops())
      taps.inside = c_.keep(elements, [&](const Index& at) {
        const Scalar p = place(at[0]);
        return less_equal(number(0), p) && less_equal(p, stretch.size - 1);
      });
    const auto outside = crops() ? taps.inside : nullptr;
    // Where there is no place, any will do: it is not read.
    const auto safe = [&](const Index& at) {
      return outside ? select(outside({at[0]}), place(at[0]), number(0)) : place(at[0]);
    };
    if (!blends()) {
      const auto round = named<LoweredRound>(n_, "round", kLoweredRounds);
      taps.index =
          c_.keep(elements, [&](const Index& at) { return clamped(round(safe(at)), stretch.size_dim); });
      return taps;
    }
    find_blend(stretch, safe, taps);
    if (!known && !crops())
      taps.stays = stretch.stays();
    return taps;
  }

  void find_blend(const LoweredStretch& stretch, const LowerContext::Formula& place, LoweredTaps& taps) {
    const double widening = n_.attr("antialias") ? std::max(1.0, 1 / stretch.known_scale.value_or(1)) : 1.0;
    const double reach = (filter_ == Filter::Linear ? 1 : 2) * widening, a = n_.attr("cubic_a");
    const auto first = static_cast<int64_t>(std::floor(-reach)) + 1;
    taps.count = 2 - 2 * first;
    taps.home = -first;
    const std::vector<Dim> elements = {stretch.count_dim}, table = {stretch.count_dim, taps.count};
    const auto positions = c_.keep(elements, place);
    const auto base = [=](const Index& at) { return loops::floor(positions({at[0]})); };
    const auto tap = [=](const Index& at) {
      return Scalar::cast(DType::F64, at[1]) + static_cast<double>(first);
    };
    taps.index =
        c_.keep(table, [&](const Index& at) { return clamped(base(at) + tap(at), stretch.size_dim); });
    auto weight = c_.keep(table, [&](const Index& at) {
      const Scalar ratio = positions({at[0]}) - base(at);
      return lowered_weight((tap(at) - ratio) / widening, filter_, a);
    });
    weight = normalised(weight, table, false);
    if (n_.attr("exclude_outside")) {
      weight = c_.keep(table, [&](const Index& at) {
        const Scalar index = base(at) + tap(at);
        return select(less(index, number(0)) || less_equal(stretch.size, index), number(0), weight(at));
      });
      weight = normalised(weight, table, true);
    }
    taps.weight = weight;
  }

  // Weights that add up to one; those that are all 0 may stay.
  LowerContext::Formula normalised(const LowerContext::Formula& weight, const std::vector<Dim>& table,
                                   bool zeros_stay) {
    const auto sum =
        c_.reduce({table[0]}, {table[1]}, "+", number(0), [&](const Index& at, const Index& over) {
          return weight({at[0], over[0]});
        });
    return c_.keep(table, [&](const Index& at) {
      const Scalar whole = sum({at[0]});
      return weight(at) / (zeros_stay ? select(equal(whole, number(0)), number(1), whole) : whole);
    });
  }

  // The nearest index of an element. There must be one.
  Scalar clamped(const Scalar& index, const Dim& size) const {
    const Scalar zero = Scalar::zero(DType::I64), last = Scalar::index(size - 1);
    const Scalar whole = minimum(maximum(Scalar::cast(DType::I64, index), zero), last);
    return size.lower_bound().value_or(0) > 0 ? whole : require(less_equal(zero, last), whole);
  }

  std::optional<Scalar> is_inside(const std::vector<LoweredTaps>& taps, const Index& at) const {
    std::optional<Scalar> inside;
    for (const LoweredTaps& each : taps)
      if (each.inside) {
        const Scalar own = each.inside({at[static_cast<size_t>(each.axis)]});
        inside = inside ? *inside && own : own;
      }
    return inside;
  }

  void move(const std::vector<LoweredTaps>& taps) {
    const DType dtype = x_.dtype();
    c_.define([&](const Index& at) {
      Index from = at;
      for (const LoweredTaps& each : taps) {
        Scalar& index = from[static_cast<size_t>(each.axis)];
        index = each.index({index});
      }
      const Scalar element = c_.stored(x_, from);
      const std::optional<Scalar> inside = is_inside(taps, at);
      const Scalar outside = Scalar::cast(dtype, number(n_.attr("outside_value")));
      return inside ? select(*inside, element, outside) : element;
    });
  }

  void blend(const std::vector<LoweredTaps>& taps) {
    const DType dtype = wide_dtype(x_.dtype());
    std::vector<Dim> counts;
    for (const LoweredTaps& each : taps)
      counts.emplace_back(each.count);
    const Scalar zero = Scalar::zero(dtype);
    const auto value = [&](const Index& at, const Index& over) {
      Index from = at;
      Scalar weight = loops::constant(dtype, 1);
      std::optional<Scalar> nothing;
      for (size_t i = 0; i < taps.size(); ++i) {
        Scalar& index = from[static_cast<size_t>(taps[i].axis)];
        const Index place = {index, over[i]};
        const Scalar own = Scalar::cast(dtype, taps[i].weight(place));
        weight = i == 0 ? own : weight * own;
        index = taps[i].index(place);
        if (taps[i].stays) {
          const Scalar other = *taps[i].stays && !equal(over[i], Scalar::index(taps[i].home));
          nothing = nothing ? *nothing || other : other;
        }
      }
      const Scalar element = weight * Scalar::cast(dtype, c_.stored(x_, from));
      return nothing ? select(*nothing, zero, element) : element;
    };
    if (taps.empty())
      return c_.define([&](const Index& at) { return c_.stored(x_, at); });
    const auto sum = c_.reduce(y_.shape().dims(), counts, "+", zero, value);
    c_.define([&](const Index& at) {
      const std::optional<Scalar> inside = is_inside(taps, at);
      const Scalar outside = loops::constant(dtype, n_.attr("outside_value").as<double>());
      return inside ? select(*inside, sum(at), outside) : sum(at);
    });
  }

  LowerContext& c_;
  const Node& n_;
  Value x_, y_;
  Filter filter_ = filter_of(n_);
};

}  // namespace

// Between integers, the last bit of a weight may make a difference of 1.
void lower_resize(LowerContext& c) {
  if (filter_of(c.node()) == Filter::Nearest || is_float(c.node().in("x").dtype()))
    LoweredResize(c).run();
}

}  // namespace tenon
