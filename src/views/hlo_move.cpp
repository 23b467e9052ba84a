#include "views/hlo_move.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "views/axes.h"
#include "views/hlo_types.h"

namespace tenon {
namespace {

using Ints = std::vector<int64_t>;

std::string size_text(const Dim& dim) { return dim.is_constant() ? dim.to_string() : "?"; }

Ints count_up(int64_t begin, int64_t end) {
  Ints numbers(static_cast<size_t>(std::max<int64_t>(0, end - begin)));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

Ints axes_but(int64_t axis, int64_t rank) {
  Ints axes = count_up(0, rank);
  axes.erase(axes.begin() + axis);
  return axes;
}

// slice={[0:2], [0:8:2]}, every axis whole at first.
class Bounds {
 public:
  explicit Bounds(const Shape& shape) : shape_(shape) {
    for (const Dim& dim : shape.dims())
      texts_.push_back(fmt::format("[0:{}]", size_text(dim)));
  }

  // Whether the size of the axis is known, as it must be, and the step positive.
  bool limit(int64_t axis, int64_t start, int64_t end, int64_t step) {
    if (!shape_[axis].is_constant() || step < 1)
      return false;
    const int64_t size = *shape_[axis].constant();
    const auto clamp = [&](int64_t bound) {
      return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size);
    };
    start = clamp(start);
    end = std::max(start, clamp(end));
    texts_[static_cast<size_t>(axis)] =
        step == 1 ? fmt::format("[{}:{}]", start, end) : fmt::format("[{}:{}:{}]", start, end, step);
    return true;
  }

  std::string of(const std::string& x) const {
    return fmt::format("slice({}), slice={{{}}}", x, fmt::join(texts_, ", "));
  }

 private:
  const Shape& shape_;
  std::vector<std::string> texts_;
};

// The sizes of the result must be known, and the starts a single one each.
bool write_dynamic_slice(HloComputation& out, const Node& node) {
  const Value x = node.in("x"), starts = node.in("starts"), y = node.result();
  const auto steps = node.has("steps") ? node.in("steps").known_ints() : Ints{1};
  const Ints& axes = node.attr("axes");
  const std::vector<Dim>& dims = y.shape().dims();
  const auto is_known = [](const Dim& dim) { return dim.is_constant(); };
  if (axes.size() != 1 || !steps || steps->at(0) != 1 || !std::all_of(dims.begin(), dims.end(), is_known))
    return false;
  const std::string start =
      out.emit("reshape", Type::tensor(DType::I64, {}), fmt::format("reshape({})", out.use(starts)));
  std::vector<std::string> places(dims.size(), "s64[] constant(0)"), sizes;
  places[static_cast<size_t>(from_the_front(axes[0], x.rank()))] = start;
  for (const Dim& dim : dims)
    sizes.push_back(dim.to_string());
  out.define(y, out.emit("dynamic-slice", y.type(),
                         fmt::format("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", out.use(x),
                                     fmt::join(places, ", "), fmt::join(sizes, ","))));
  return true;
}

bool is_whole_backwards(int64_t start, int64_t end, int64_t step) {
  return start == -1 && step == -1 && end < std::numeric_limits<int64_t>::min() / 2;
}

bool write_slice(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const Ints& axes = node.attr("axes");
  const auto starts = node.in("starts").known_ints(), ends = node.in("ends").known_ints();
  const auto steps = node.has("steps") ? node.in("steps").known_ints() : std::optional(Ints(axes.size(), 1));
  if (!starts || !ends || !steps)
    return write_dynamic_slice(out, node);
  Bounds bounds(x.shape());
  Ints reversed;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = from_the_front(axes[i], x.rank());
    if (is_whole_backwards((*starts)[i], (*ends)[i], (*steps)[i]))
      reversed.push_back(axis);
    else if (!bounds.limit(axis, (*starts)[i], (*ends)[i], (*steps)[i]))
      return false;
  }
  std::string y = out.use(x);
  if (!reversed.empty())
    y = out.emit("reverse", x.type(), fmt::format("reverse({}), dimensions={}", y, hlo_list(reversed)));
  if (reversed.size() != axes.size())
    y = out.emit("slice", node.result().type(), bounds.of(y));
  out.define(node.result(), y);
  return true;
}

bool write_split(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const auto sizes = node.in("sizes").known_ints();
  const int64_t axis = from_the_front(node.attr("axis"), x.rank());
  if (!sizes || !x.dim(axis).is_constant())
    return false;
  const std::string operand = out.use(x);
  int64_t start = 0;
  for (Value part : node.results()) {
    const int64_t end = start + sizes->at(static_cast<size_t>(part.index()));
    Bounds bounds(x.shape());
    bounds.limit(axis, start, end, 1);
    out.define(part, out.emit("slice", part.type(), bounds.of(operand)));
    start = end;
  }
  return true;
}

// Sizes that are not known are asked for one by one.
bool write_shape(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  if (const auto known = node.result().known_ints()) {
    out.define(node.result(), out.emit("constant", node.result().type(),
                                       fmt::format("constant({{{}}})", fmt::join(*known, ", "))));
    return true;
  }
  const Type one = Type::tensor(DType::I64, {Dim(1)});
  std::vector<std::string> sizes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (x.dim(i).is_constant()) {
      sizes.push_back(fmt::format("s64[1] constant({{{}}})", x.dim(i).to_string()));
      continue;
    }
    const std::string size =
        out.emit("get-dimension-size", Type::tensor(DType::I32, {}),
                 fmt::format("get-dimension-size({}), dimensions={{{}}}", out.use(x), i));
    const std::string wide =
        out.emit("convert", Type::tensor(DType::I64, {}), fmt::format("convert({})", size));
    sizes.push_back(out.emit("reshape", one, fmt::format("reshape({})", wide)));
  }
  out.define(node.result(), sizes.size() == 1 ? sizes[0]
                                              : out.emit("concatenate", node.result().type(),
                                                         fmt::format("concatenate({}), dimensions={{0}}",
                                                                     fmt::join(sizes, ", "))));
  return true;
}

bool has_negative(Value indices) {
  const auto known = indices.known_ints();
  return known && std::any_of(known->begin(), known->end(), [](int64_t i) { return i < 0; });
}

// Whether indices that count from the end can be made to count from the front, as HLO wants them: the sizes
// of the axes must be known.
bool can_count(Value x, Value indices, const Ints& axes) {
  const auto is_known = [&](int64_t axis) { return x.dim(axis).is_constant(); };
  return !has_negative(indices) || std::all_of(axes.begin(), axes.end(), is_known);
}

// The indices along `axes`, one number after the other, as numbers from the front.
std::string count_from_the_front(HloComputation& out, Value x, Value indices, const Ints& axes) {
  const std::string given = out.use(indices);
  std::vector<Dim> sizes;
  for (const int64_t axis : axes)
    sizes.push_back(x.dim(axis));
  const bool is_plain = indices.known_ints() && !has_negative(indices);
  if (is_plain ||
      !std::all_of(sizes.begin(), sizes.end(), [](const Dim& size) { return size.is_constant(); }))
    return given;
  const Type &type = indices.type(), flags = Type::tensor(DType::Bool, indices.shape());
  std::string size;
  if (sizes.size() == 1) {
    size = hlo_splat(static_cast<double>(*sizes[0].constant()), type);
  } else {
    const Type row = Type::tensor(indices.dtype(), {Dim(static_cast<int64_t>(sizes.size()))});
    size = out.emit("sizes", type,
                    fmt::format("broadcast({} constant({{{}}})), dimensions={{{}}}", hlo_type(row),
                                fmt::join(sizes, ", "), indices.rank() - 1));
  }
  const std::string is_negative =
      out.emit("compare", flags, fmt::format("compare({}, {}), direction=LT", given, hlo_splat(0, type)));
  const std::string shifted = out.emit("add", type, fmt::format("add({}, {})", given, size));
  return out.emit("indices", type, fmt::format("select({}, {}, {})", is_negative, shifted, given));
}

// What a gather says of its dimensions. Those of `axes` are looked up and vanish, those of `batch` run along
// with the indices, and the rest stand in the result at `offset_dims`.
struct GatherDims {
  Ints offset_dims, axes, batch;
  int64_t index_vector_dim;
};

void emit_gather(HloComputation& out, const Node& node, const GatherDims& dims) {
  const Value x = node.in("x");
  std::vector<std::string> sizes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const auto has = [&](const Ints& list) { return std::find(list.begin(), list.end(), i) != list.end(); };
    sizes.push_back(has(dims.axes) || has(dims.batch) ? "1" : size_text(x.dim(i)));
  }
  std::string batch;
  if (!dims.batch.empty())
    batch = fmt::format("operand_batching_dims={0}, start_indices_batching_dims={0}, ", hlo_list(dims.batch));
  const std::string indices = count_from_the_front(out, x, node.in("indices"), dims.axes);
  out.define(node.result(),
             out.emit("gather", node.result().type(),
                      fmt::format("gather({}, {}), offset_dims={}, collapsed_slice_dims={}, "
                                  "start_index_map={}, {}index_vector_dim={}, slice_sizes={{{}}}",
                                  out.use(x), indices, hlo_list(dims.offset_dims), hlo_list(dims.axes),
                                  hlo_list(dims.axes), batch, dims.index_vector_dim, fmt::join(sizes, ","))));
}

// One index that is known is a slice without the axis.
bool write_gather(HloComputation& out, const Node& node) {
  const Value x = node.in("x"), indices = node.in("indices"), y = node.result();
  const int64_t axis = from_the_front(node.attr("axis"), x.rank());
  const auto known = indices.known_ints();
  if (known && known->size() == 1 && x.dim(axis).is_constant()) {
    const int64_t start = from_the_front(known->front(), *x.dim(axis).constant());
    Bounds bounds(x.shape());
    bounds.limit(axis, start, start + 1, 1);
    std::vector<Dim> dims = x.shape().dims();
    dims[static_cast<size_t>(axis)] = 1;
    std::string part = out.emit("slice", Type::tensor(x.dtype(), dims), bounds.of(out.use(x)));
    if (y.shape() != Shape(dims))
      part = out.emit("reshape", y.type(), fmt::format("reshape({})", part));
    out.define(y, part);
    return true;
  }
  if (!can_count(x, indices, {axis}))
    return false;
  Ints offset_dims = count_up(0, axis);
  for (const int64_t dim : count_up(axis + indices.rank(), y.rank()))
    offset_dims.push_back(dim);
  emit_gather(out, node, {offset_dims, {axis}, {}, indices.rank()});
  return true;
}

bool write_gather_nd(HloComputation& out, const Node& node) {
  const Value indices = node.in("indices"), y = node.result();
  const Dim& length = indices.dim(indices.rank() - 1);
  if (!length.is_constant())
    return false;
  const int64_t batch = node.attr("batch_dims");
  const Ints axes = count_up(batch, batch + *length.constant());
  if (!can_count(node.in("x"), indices, axes))
    return false;
  emit_gather(out, node,
              {count_up(indices.rank() - 1, y.rank()), axes, count_up(0, batch), indices.rank() - 1});
  return true;
}

// Whether the other axes are whole in the indices, as they must be to run along with them.
bool runs_along(Value x, Value indices, const Ints& others) {
  const auto is_whole = [&](int64_t other) { return x.dim(other) == indices.dim(other); };
  return std::all_of(others.begin(), others.end(), is_whole);
}

bool write_gather_elements(HloComputation& out, const Node& node) {
  const Value x = node.in("x"), indices = node.in("indices");
  const int64_t axis = from_the_front(node.attr("axis"), x.rank());
  const Ints others = axes_but(axis, x.rank());
  if (!runs_along(x, indices, others) || !can_count(x, indices, {axis}))
    return false;
  emit_gather(out, node, {{}, {axis}, others, x.rank()});
  return true;
}

bool write_scatter_elements(HloComputation& out, const Node& node) {
  static const std::map<std::string_view, std::string_view> instructions = {
      {"add", "add"}, {"mul", "multiply"}, {"max", "maximum"}, {"min", "minimum"}};
  const Value x = node.in("x"), indices = node.in("indices");
  const int64_t axis = from_the_front(node.attr("axis"), x.rank());
  const Ints others = axes_but(axis, x.rank());
  if (!runs_along(x, indices, others) || !can_count(x, indices, {axis}))
    return false;
  const std::string& reduction = node.attr("reduction");
  HloModule& module = out.module();
  const std::string combine = reduction == "none"
                                  ? module.second_of_two(x.dtype())
                                  : module.scalar_computation(instructions.at(reduction), x.dtype());
  const std::string operand = out.use(x), places = count_from_the_front(out, x, indices, {axis}),
                    updates = out.use(node.in("updates"));
  out.define(node.result(),
             out.emit("scatter", x.type(),
                      fmt::format("scatter({0}, {1}, {2}), update_window_dims={{}}, "
                                  "inserted_window_dims={{{3}}}, scatter_dims_to_operand_dims={{{3}}}, "
                                  "input_batching_dims={4}, scatter_indices_batching_dims={4}, "
                                  "index_vector_dim={5}, to_apply={6}",
                                  operand, places, updates, axis, hlo_list(others), x.rank(), combine)));
  return true;
}

// HLO has no zero of these.
bool is_no_real_number(Value x) {
  return x.dtype() == DType::String || kind(x.dtype()) == DTypeKind::Complex;
}

bool write_pad(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  if (is_no_real_number(x))
    return false;
  const auto pads = node.in("pads").known_ints();
  if (!pads || node.attr("mode").as<std::string>() != "constant")
    return false;
  const Ints& axes = node.attr("axes");
  std::vector<std::string> texts(static_cast<size_t>(x.rank()), "0_0");
  for (size_t i = 0; i < axes.size(); ++i)
    texts[static_cast<size_t>(from_the_front(axes[i], x.rank()))] =
        fmt::format("{}_{}", (*pads)[i], (*pads)[axes.size() + i]);
  const Type scalar = Type::tensor(x.dtype(), {});
  const std::string value = node.has("value") ? out.use(node.in("value")) : hlo_splat(0, scalar);
  out.define(node.result(),
             out.emit("pad", node.result().type(),
                      fmt::format("pad({}, {}), padding={}", out.use(x), value, fmt::join(texts, "x"))));
  return true;
}

// Rows and columns are numbered, and compared.
bool write_triangle(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  if (is_no_real_number(x))
    return false;
  const Type numbers = Type::tensor(DType::I64, x.shape()), flags = Type::tensor(DType::Bool, x.shape());
  const auto iota = [&](int64_t axis) {
    return out.emit("iota", numbers, fmt::format("iota(), iota_dimension={}", axis));
  };
  std::string row = iota(x.rank() - 2);
  const std::string column = iota(x.rank() - 1);
  if (const int64_t diagonal = node.attr("diagonal"); diagonal != 0)
    row = out.emit("add", numbers,
                   fmt::format("add({}, {})", row, hlo_splat(static_cast<double>(diagonal), numbers)));
  const std::string is_kept =
      out.emit("compare", flags,
               fmt::format("compare({}, {}), direction={}", column, row, node.attr("upper") ? "GE" : "LE"));
  out.define(node.result(),
             out.emit("select", x.type(),
                      fmt::format("select({}, {}, {})", is_kept, out.use(x), hlo_splat(0, x.type()))));
  return true;
}

}  // namespace

bool write_hlo_move(HloComputation& out, const Node& node) {
  static const std::map<std::string_view, bool (*)(HloComputation&, const Node&)> functions = {
      {"gather", write_gather},
      {"gather_elements", write_gather_elements},
      {"gather_nd", write_gather_nd},
      {"pad", write_pad},
      {"scatter_elements", write_scatter_elements},
      {"shape", write_shape},
      {"slice", write_slice},
      {"split", write_split},
      {"triangle", write_triangle},
  };
  const auto it = functions.find(node.op().name);
  return it != functions.end() && it->second(out, node);
}

}  // namespace tenon
