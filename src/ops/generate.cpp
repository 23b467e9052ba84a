#include "ops/generate.h"

#include <algorithm>
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// --- range ---

namespace range_op {

double count_elements(double start, double limit, double delta) {
  return std::max(std::ceil((limit - start) / delta), 0.0);
}

template <class T>
double count_elements(T start, T limit, T delta) {
  const bool up = delta > 0;
  if (up ? limit <= start : limit >= start)
    return 0;
  // Unsigned, so that the distance between two integers never overflows.
  const auto distance = static_cast<uint64_t>(up ? limit : start) - static_cast<uint64_t>(up ? start : limit);
  const auto step = up ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  return 1 + static_cast<double>((distance - 1) / step);
}

// The numbers a range is made of, of the type they are computed in.
template <class T>
struct Progression {
  T start, limit, delta;

  Progression(const Tensor& start, const Tensor& limit, const Tensor& delta)
      : start(only(start, "start")), limit(only(limit, "limit")), delta(only(delta, "delta")) {
    if (this->delta == 0)
      throw user_error("range: delta is 0");
  }
  static T only(const Tensor& t, std::string_view name) {
    if (t.count() != 1)
      throw user_error("range: {} must be one number, but is {}", name, type_of(t));
    return widen<T>(t).front();
  }
  int64_t count() const {
    const double count = count_elements(start, limit, delta);
    if (!(count < 1e18))
      throw user_error("range: from {} to {} in steps of {} there is no end", start, limit, delta);
    return static_cast<int64_t>(count);
  }
  T operator[](int64_t i) const { return sum_of(start, product_of(static_cast<T>(i), delta)); }
};

// The only element of an integer operand, as far as it is known.
Dim known_dim(Value value) {
  const auto dims = value.known_dims();
  return dims && dims->size() == 1 ? dims->front() : Dim();
}

Dim known_count(Value start, Value limit, Value delta) {
  const Tensor *from = start.known_tensor(), *to = limit.known_tensor(), *step = delta.known_tensor();
  if (from && to && step)
    return with_wide(from->dtype(),
                     [&]<class T>(T) -> Dim { return Progression<T>(*from, *to, *step).count(); });
  const Dim stride = known_dim(delta);
  if (!stride.is_constant() || stride == Dim(0))
    return Dim();
  return max(ceil_div(known_dim(limit) - known_dim(start), stride), 0);
}

Types infer(const Node& n) {
  for (std::string_view name : {"start", "limit", "delta"})
    known_number(n, name);
  return {Type::tensor(n.in("start").dtype(), {known_count(n.in("start"), n.in("limit"), n.in("delta"))})};
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const Dim start = known_number(n, "start"), delta = known_number(n, "delta");
  if (start.is_unknown() || delta.is_unknown())
    return std::nullopt;
  std::vector<Dim> dims;
  for (int64_t i = 0; i < n.result().dim(0).constant().value_or(0); ++i)
    dims.push_back(start + i * delta);
  return dims;
}

Data eval(const Call& c) {
  const DType dtype = c.in("start").dtype();
  return with_wide(dtype, [&]<class T>(T) -> Data {
    const Progression<T> progression(c.in("start"), c.in("limit"), c.in("delta"));
    const Tensor y(dtype, {progression.count()});  // refuses more than the machine can hold
    std::vector<T> values(static_cast<size_t>(y.count()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = progression[static_cast<int64_t>(i)];
    return {narrow<T>(dtype, y.extents(), values)};
  });
}

// Floats in f64, so that the last of many is as exact as the first.
void lower(LowerContext& c) {
  const Value start = c.node().in("start"), delta = c.node().in("delta");
  const DType dtype = is_float(start.dtype()) ? DType::F64 : start.dtype();
  if (start.shape().element_count() != Dim(1) || delta.shape().element_count() != Dim(1))
    return;
  const auto only = [&](Value value) {
    return Scalar::cast(dtype, c.stored(value, Index(static_cast<size_t>(value.rank()), Scalar::index(0))));
  };
  c.define([&](const Index& at) { return only(start) + Scalar::cast(dtype, at[0]) * only(delta); });
}

// The limit only says how many there are.
std::vector<Operand> grad(const GradContext& n) {
  const auto like = [](Value gradient, Value operand) { return reshape(gradient, shape_of(operand)); };
  const Value counts = cast(positions_in(n.out()), n.out().dtype());
  return {{"start", like(reduce_sum(n.dy(), {0}), n.in("start"))},
          {"delta", like(reduce_sum(n.dy() * counts, {0}), n.in("delta"))}};
}

}  // namespace range_op

// --- eye and triangle ---

namespace eye_op {

Types infer(const Node& n) {
  const std::vector<Dim> shape = vector_dims(n, "shape", 2);
  check_sizes(n, "shape", shape);
  return {Type::tensor(n.attr("dtype"), shape)};
}

Data eval(const Call& c) {
  const std::vector<int64_t> shape = read_vector(c, "shape", 2);
  const int64_t diagonal = c.attr("diagonal");
  Tensor y(c.node().attr("dtype"), shape);
  const Tensor one = filled(y.dtype(), {}, 1);
  if (diagonal <= -shape[0] || diagonal >= shape[1])
    return {y};  // the diagonal does not meet the matrix
  with_storage(y.dtype(), [&]<class T>(T) {
    const std::span<T> to = mutable_stored<T>(y);
    for (int64_t row = std::max<int64_t>(0, -diagonal); row < std::min(shape[0], shape[1] - diagonal); ++row)
      to[static_cast<size_t>(row * shape[1] + row + diagonal)] = stored<T>(one).front();
  });
  return {y};
}

void lower(LowerContext& c) {
  const DType dtype = c.node().result().dtype();
  const Scalar diagonal = Scalar::number(DType::I64, c.node().attr("diagonal").as<int64_t>());
  c.define([&](const Index& at) {
    return select(equal(at[1] - at[0], diagonal), loops::constant(dtype, 1), Scalar::zero(dtype));
  });
}

}  // namespace eye_op

namespace triangle_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.shape().ranked() && x.rank() < 2)
    throw operand_error(n, "x must be a matrix, or a stack of them");
  return {x.type()};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (x.rank() < 2)
    throw user_error("triangle: x must be a matrix, or a stack of them, but is {}", type_of(x));
  const int64_t rows = x.extent(x.rank() - 2), columns = x.extent(x.rank() - 1);
  const int64_t diagonal = c.attr("diagonal");
  const bool upper = c.attr("upper");
  Tensor y(x.dtype(), x.extents());
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    const std::span<T> to = mutable_stored<T>(y);
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i) % columns,
                    row = static_cast<int64_t>(i) / columns % rows;
      if (upper ? column - row >= diagonal : column - row <= diagonal)
        to[i] = from[i];
    }
  });
  return {y};
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x");
  const Scalar diagonal = Scalar::number(DType::I64, c.node().attr("diagonal").as<int64_t>());
  const bool upper = c.node().attr("upper");
  c.define([&](const Index& at) {
    const Scalar distance = at[at.size() - 1] - at[at.size() - 2];
    return select(upper ? less_equal(diagonal, distance) : less_equal(distance, diagonal), c.stored(x, at),
                  Scalar::zero(x.dtype()));
  });
}

std::vector<Operand> grad(const GradContext& n) { return {{"x", n.repeat({{"x", n.dy()}})}}; }

}  // namespace triangle_op

Value triangle(Value x, bool upper, int64_t diagonal) {
  return x.graph().create("triangle", {{"x", x}}, {{"upper", upper}, {"diagonal", diagonal}})->result();
}

}  // namespace

const Family& generate_ops() {
  static const Family ops = {
      {.name = "range",
       .doc = "start, start + delta, … before limit",
       .category = Category::Data,
       .operands = {{"start", "T"}, {"limit", "T"}, {"delta", "T"}},
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .traits = {.takes_unranked = true},
       .infer = range_op::infer,
       .content = range_op::content,
       .eval = range_op::eval,
       .lower = range_op::lower,
       .grad = range_op::grad},
      {.name = "eye",
       .doc = "a matrix with ones on a diagonal, and zeros",
       .category = Category::Data,
       .operands = {{"shape", "i64"}},
       .attributes = {{"dtype", AttributeKind::DType, "of the result"},
                      {"diagonal", AttributeKind::Int, "0 is the main diagonal, 1 the next above it", 0}},
       .results = {{"y", "$dtype"}},
       .traits = {.takes_unranked = true},
       .infer = eye_op::infer,
       .eval = eye_op::eval,
       .lower = eye_op::lower},
      {.name = "triangle",
       .doc = "the elements of matrices on one side of a diagonal, which counts; zeros elsewhere",
       .operands = {{"x", "T"}},
       .attributes = {{"upper", AttributeKind::Bool, "whether the elements above are kept, or those below"},
                      {"diagonal", AttributeKind::Int, "0 is the main diagonal, 1 the next above it", 0,
                       Binding::Late}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = triangle_op::infer,
       .eval = triangle_op::eval,
       .lower = triangle_op::lower,
       .grad = triangle_op::grad},
  };
  return ops;
}

Value fill(Value shape, const Tensor& element) {
  if (element.count() != 1)
    throw user_error("fill: the value must be one element, but is {}", type_of(element));
  Graph& graph = shape.graph();
  const Tensor scalar = element.reshaped({});
  if (const auto extents = shape.known_ints())
    return constant(graph, Literal::splat(scalar, *extents));
  return broadcast_to(constant(graph, scalar), shape);
}

Value range(Value start, Value limit, Value delta) {
  Graph& graph = start.graph();
  const Dim first = range_op::known_dim(start), step = range_op::known_dim(delta);
  const Dim count = range_op::known_count(start, limit, delta);
  if (is_integer(start.dtype()) && first.is_constant() && step.is_constant() && count.is_constant())
    return constant(graph,
                    Literal::iota(start.dtype(), *first.constant(), *step.constant(), *count.constant()));
  return graph.create("range", {{"start", start}, {"limit", limit}, {"delta", delta}})->result();
}

Value eye(Value shape, DType dtype, int64_t diagonal) {
  return shape.graph()
      .create("eye", {{"shape", shape}}, {{"dtype", dtype}, {"diagonal", diagonal}})
      ->result();
}

Value upper_triangle(Value x, int64_t diagonal) { return triangle(x, true, diagonal); }
Value lower_triangle(Value x, int64_t diagonal) { return triangle(x, false, diagonal); }

}  // namespace tenon
