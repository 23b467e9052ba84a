#include "ops/select.h"

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ops/binary.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/shapes.h"
#include "ops/unary.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- where ---

namespace where_op {

Types infer(const Node& n) { return {Type::tensor(n.in("a").dtype(), broadcast_operands(n, n.operands()))}; }

// With it Where(Equal(shape, -1), ones, shape), as exporters write Expand, is known element by element.
std::optional<std::vector<Dim>> content(const Node& n) {
  return map_known_dims(n, [](std::span<const Dim> x) {
    if (x[0].is_constant())
      return x[0] == Dim(0) ? x[2] : x[1];
    return x[1] == x[2] ? x[1] : Dim();
  });
}

Data eval(const Call& c) {
  const Tensor &condition = c.in("condition"), &a = c.in("a"), &b = c.in("b");
  const Extents extents =
      broadcast_extents("where", broadcast_extents("where", condition.extents(), a.extents()), b.extents());
  Tensor y(a.dtype(), extents);
  with_storage(a.dtype(), [&]<class T>(T) {
    const std::span<const uint8_t> holds = condition.data<uint8_t>();
    const std::span<const T> from_a = stored<T>(a), from_b = stored<T>(b);
    auto to = mutable_stored<T>(y).begin();
    walk<3>(extents,
            {broadcast_strides(condition.extents(), extents), broadcast_strides(a.extents(), extents),
             broadcast_strides(b.extents(), extents)},
            [&](const std::array<int64_t, 3>& at) {
              *to++ = holds[static_cast<size_t>(at[0])] != 0 ? from_a[static_cast<size_t>(at[1])]
                                                             : from_b[static_cast<size_t>(at[2])];
            });
  });
  return {y};
}

std::vector<Operand> grad(const GradContext& n) {
  const Value condition = n.in("condition");
  return {{"a", keep_where(condition, n.dy())}, {"b", keep_where(logical_not(condition), n.dy())}};
}

void lower(LowerContext& c) {
  c.define([&](const Index& at) {
    return select(c.broadcast("condition", at), c.broadcast("a", at), c.broadcast("b", at));
  });
}

}  // namespace where_op

// --- clip ---

namespace clip_op {

Types infer(const Node& n) { return {Type::tensor(n.in("x").dtype(), broadcast_operands(n, n.operands()))}; }

std::optional<std::vector<Dim>> content(const Node& n) {
  return map_known_dims(n, [&n](std::span<const Dim> x) {
    Dim y = x[0];
    if (n.has("min"))
      y = max(y, x[1]);
    if (n.has("max"))
      y = min(y, x.back());
    return y;
  });
}

// The upper bound comes last, so it wins where the bounds cross. A NaN in x stays.
Data eval(const Call& c) {
  Tensor y = c.in("x");
  with_wide(y.dtype(), [&]<class T>(T) {
    if (c.has("min"))
      y = zip<T>("clip", y, c.in("min"), y.dtype(), [](T x, T min) { return x < min ? min : x; });
    if (c.has("max"))
      y = zip<T>("clip", y, c.in("max"), y.dtype(), [](T x, T max) { return max < x ? max : x; });
  });
  return {y};
}

// x has it also where it is equal to a bound; else the bound that won.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), min = n.in("min"), max = n.in("max"), dy = n.dy();
  if (!min && !max)
    return {{"x", dy}};
  const Value low = min ? less(x, min) : Value(), high = max ? greater(x, max) : Value();
  if (!max)
    return {{"x", keep_where(logical_not(low), dy)}, {"min", keep_where(low, dy)}};
  if (!min)
    return {{"x", keep_where(logical_not(high), dy)}, {"max", keep_where(high, dy)}};
  const Value crossed = greater(min, max);
  return {{"x", keep_where(logical_not(logical_or(low, high)), dy)},
          {"min", keep_where(logical_and(low, logical_not(crossed)), dy)},
          {"max", keep_where(logical_or(high, logical_and(low, crossed)), dy)}};
}

void lower(LowerContext& c) {
  c.define([&](const Index& at) {
    Scalar y = c.broadcast("x", at);
    if (c.node().has("min")) {
      const Scalar min = c.broadcast("min", at);
      y = select(less(y, min), min, y);
    }
    if (c.node().has("max")) {
      const Scalar max = c.broadcast("max", at);
      y = select(less(max, y), max, y);
    }
    return y;
  });
}

}  // namespace clip_op

// --- cast ---

namespace cast_op {

ScaleRounding rounding_of(const Node& n) {
  return named<ScaleRounding>(
      n, "scale_rounding",
      {{"up", ScaleRounding::Up}, {"down", ScaleRounding::Down}, {"nearest", ScaleRounding::Nearest}});
}

Types infer(const Node& n) {
  const DType to = n.attr("to");
  if (kind(to) == DTypeKind::Complex)
    throw user_error("cast: numbers cannot become {}", to);
  rounding_of(n);
  return {Type::tensor(to, n.in("x").shape())};
}

// What a size is after conversion to a number or bool; sizes of 2³¹ and more do not occur, so f32 and f64
// only differ from it where a model would not work either.
Dim converted(const Dim& size, DType to) {
  if (to == DType::F32 || to == DType::F64)
    return size;
  const auto least = size.lower_bound();
  if (to == DType::U64 && !(least && *least >= 0))
    return Dim();  // what is negative wraps around to more than a size can be
  if (const auto number = size.constant())
    return as_int(narrow<int64_t>(to, {}, std::span(&*number, 1)));
  if (to == DType::Bool)
    return least && *least > 0 ? 1 : Dim();
  const bool fits = info(to).bits == 64 || to == DType::I32 || (to == DType::U32 && least && *least >= 0);
  return fits ? size : Dim();
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const DType to = n.attr("to");
  if (!is_integer(to) && to != DType::Bool && to != DType::F32 && to != DType::F64)
    return std::nullopt;
  return map_known_dims(n, [to](std::span<const Dim> x) { return converted(x[0], to); });
}

// In plain notation, with as many digits as tell the number apart from its neighbours.
std::string text_of(double value, DType dtype) {
  if (value != value)
    return "NaN";
  if (std::isinf(value))
    return value < 0 ? "-INF" : "INF";
  std::array<char, 512> text;  // the longest double in plain notation has fewer than 400 characters
  const auto end = dtype == DType::F64 ? std::to_chars(text.data(), text.data() + text.size(), value,
                                                       std::chars_format::fixed)
                                       : std::to_chars(text.data(), text.data() + text.size(),
                                                       static_cast<float>(value), std::chars_format::fixed);
  return {text.data(), end.ptr};
}
std::string text_of(int64_t value, DType) { return std::to_string(value); }
std::string text_of(uint64_t value, DType) { return std::to_string(value); }

// What a float is that is too large or too small for a double: infinity or zero.
double round_out_of_range(std::string_view text) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", locale_t{});
  return ::strtod_l(std::string(text).c_str(), nullptr, plain);
}

// The whole text as a number, or nothing. from_chars knows scientific notation, inf and nan in any case.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size())
    return std::nullopt;
  if (std::is_same_v<T, double> && problem == std::errc::result_out_of_range)
    return static_cast<T>(round_out_of_range(text));
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

// Integers are read exactly; another number that is to become an integer is truncated.
template <class T>
T number_of(const std::string& text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks), last = text.find_last_not_of(blanks);
  std::string_view digits;
  if (first != std::string::npos)
    digits = std::string_view(text).substr(first, last - first + 1);
  if (digits.starts_with('+') && !digits.starts_with("+-"))
    digits.remove_prefix(1);
  if (const auto number = parse_number<T>(digits))
    return *number;
  if (const auto number = parse_number<double>(digits))
    return widen<T>(Tensor::scalar(*number)).front();
  throw user_error("cast: \"{}\" is not a number", text);
}

Tensor to_strings(const Tensor& x) {
  std::vector<std::string> texts;
  with_wide(x.dtype(), [&]<class T>(T) {
    for (T value : widen<T>(x))
      texts.push_back(text_of(value, x.dtype()));
  });
  return Tensor::strings(std::move(texts), x.extents());
}

Tensor from_strings(const Tensor& x, DType to, Overflow overflow) {
  return with_wide(to, [&]<class T>(T) {
    std::vector<T> values;
    for (const std::string& text : x.strings())
      values.push_back(number_of<T>(text));
    return narrow<T>(to, x.extents(), values, overflow);
  });
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const DType to = c.attr("to");
  const Overflow overflow = c.attr("saturate") ? Overflow::Saturate : Overflow::Natural;
  if (x.dtype() == DType::String)
    return {to == DType::String ? x : from_strings(x, to, overflow)};
  if (to == DType::String)
    return {to_strings(x)};
  if (to == DType::F8E8M0)
    return {narrow_to_scales(x.extents(), widen<double>(x), overflow, rounding_of(c.node()))};
  return with_wide(x.dtype(),
                   [&]<class T>(T) -> Data { return {narrow<T>(to, x.extents(), widen<T>(x), overflow)}; });
}

std::vector<Operand> grad(const GradContext& n) { return {{"x", tenon::cast(n.dy(), n.in("x").dtype())}}; }

// Straight from the element as it is stored, so that it is rounded once.
// What saturates is left to eval: mostly floats of 8 bits, which have no code anyway.
void lower(LowerContext& c) {
  if (!c.node().attr("saturate"))
    c.define([&](const Index& at) { return c.stored(c.node().in("x"), at); });
}

}  // namespace cast_op

// --- bit_cast ---

namespace bit_cast_op {

Types infer(const Node& n) {
  const DType from = n.in("x").dtype(), to = n.attr("to");
  if (from == DType::String || to == DType::String)
    throw operand_error(n, fmt::format("{} has no fixed width", DType::String));
  if (info(from).bits != info(to).bits)
    throw operand_error(
        n, fmt::format("{} has {} bits, but {} has {}", from, info(from).bits, to, info(to).bits));
  return {Type::tensor(to, n.in("x").shape())};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const DType to = c.attr("to");
  Tensor y(to, x.extents());
  std::ranges::copy(x.bytes(), y.mutable_bytes().begin());
  // A number narrower than its byte fills the byte with its sign, or with zeros.
  if (const int unused = 8 - info(to).bits; unused > 0)
    for (uint8_t& byte : y.mutable_data<uint8_t>()) {
      const auto raised = static_cast<uint8_t>(byte << unused);
      byte = is_signed(to) ? static_cast<uint8_t>(static_cast<int8_t>(raised) >> unused)
                           : static_cast<uint8_t>(raised >> unused);
    }
  return {y};
}

}  // namespace bit_cast_op

}  // namespace

const Family& select_ops() {
  static const Family ops = {
      {.name = "where",
       .doc = "a where the condition holds, else b",
       .operands = {{"condition", "bool"}, {"a", "T"}, {"b", "T"}},
       .results = {{"y", "T"}},
       .traits = {.elementwise = true},
       .infer = where_op::infer,
       .content = where_op::content,
       .eval = where_op::eval,
       .lower = where_op::lower,
       .grad = where_op::grad},
      {.name = "clip",
       .doc = "min(max(x, min), max); a NaN in x stays",
       .operands = {{"x", "T"}, {"min", "T", Arity::Optional}, {"max", "T", Arity::Optional}},
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .traits = {.elementwise = true},
       .infer = clip_op::infer,
       .content = clip_op::content,
       .eval = clip_op::eval,
       .lower = clip_op::lower,
       .grad = clip_op::grad},
      {.name = "cast",
       .doc = "the same numbers in another dtype, rounded to nearest even; floats truncate to integers",
       .operands = {{"x", "T"}},
       .attributes =
           {{"to", AttributeKind::DType, "the dtype to convert to"},
            {"saturate", AttributeKind::Bool,
             "a number out of range becomes the nearest there is; else infinity or NaN, and integers "
             "wrap around",
             false},
            {"scale_rounding", AttributeKind::String,
             "how f8e8m0 rounds: up, down, or nearest (halfway goes up)", "up"}},
       .results = {{"y", "$to"}},
       .types = {{"T", NumbersAndBool | DTypeSet{DType::String}}},
       .traits = {.elementwise = true, .takes_unranked = true},
       .infer = cast_op::infer,
       .content = cast_op::content,
       .eval = cast_op::eval,
       .lower = cast_op::lower,
       .grad = cast_op::grad},
      {.name = "bit_cast",
       .doc = "the same bits read as another dtype of the same width",
       .operands = {{"x", "T"}},
       .attributes = {{"to", AttributeKind::DType, "the dtype to read them as"}},
       .results = {{"y", "$to"}},
       .traits = {.elementwise = true, .takes_unranked = true},
       .infer = bit_cast_op::infer,
       .eval = bit_cast_op::eval,
       .grad = no_gradient},
  };
  return ops;
}

Value where(Value condition, Value a, Value b) {
  return a.graph().create("where", {{"condition", condition}, {"a", a}, {"b", b}})->result();
}
Value clip(Value x, Value min, Value max) {
  return x.graph().create("clip", {{"x", x}, {"min", min}, {"max", max}})->result();
}
Value cast(Value x, DType to) { return x.graph().create("cast", {{"x", x}}, {{"to", to}})->result(); }
Value in_dtype(Value x, DType dtype) { return !x || x.dtype() == dtype ? x : cast(x, dtype); }
Value bit_cast(Value x, DType to) { return x.graph().create("bit_cast", {{"x", x}}, {{"to", to}})->result(); }

}  // namespace tenon
