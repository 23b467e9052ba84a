#include "views/relay_words.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "views/axes.h"
#include "views/constants.h"
#include "views/dtype_words.h"
#include "views/relay_sequences.h"

namespace tenon {
namespace {

using Text = std::optional<std::string>;

std::string number(double value, DType dtype) {
  return float_text(value, dtype, false) + relay_suffix(dtype);
}

std::string list(const std::vector<int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

// Writes calls of functions on x, in its dtype.
struct Formula {
  const RelayWriter& writer;
  std::string x;
  DType dtype;

  Formula(const Node& node, const RelayWriter& with)
      : writer(with), x(with.use(node.in("x"))), dtype(node.in("x").dtype()) {}

  std::string of(double value) const { return number(value, dtype); }
  template <class... Arguments>
  std::string let(std::string_view function, const Arguments&... arguments) const {
    return writer.let(call(function, arguments...));
  }
  template <class... Arguments>
  static std::string call(std::string_view function, const Arguments&... arguments) {
    return fmt::format("{}({})", function, fmt::join(std::vector<std::string>{arguments...}, ", "));
  }
  std::string let_clip(const std::string& value, double low, double high) const {
    return let("clip", value, "a_min=" + of(low), "a_max=" + of(high));
  }
};

// --- activations

Text write_reciprocal(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  return f.call("divide", f.of(1), f.x);
}

Text write_gelu(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  if (node.attr("approximate") == Attribute("none")) {
    const std::string erf = f.let("erf", f.let("multiply", f.x, f.of(std::sqrt(0.5))));
    return f.call("multiply", f.x, f.let("add", f.of(0.5), f.let("multiply", erf, f.of(0.5))));
  }
  const std::string cube = f.let("multiply", f.let("multiply", f.x, f.x), f.x);
  const std::string sum = f.let("add", f.x, f.let("multiply", cube, f.of(0.044715)));
  const std::string tanh = f.let("tanh", f.let("multiply", sum, f.of(std::sqrt(2 / M_PI))));
  const std::string half = f.let("multiply", f.x, f.of(0.5));
  return f.call("multiply", half, f.let("add", tanh, f.of(1)));
}

Text write_hard_sigmoid(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  const std::string line =
      f.let("add", f.let("multiply", f.x, f.of(node.attr("alpha"))), f.of(node.attr("beta")));
  return f.call("clip", line, "a_min=" + f.of(0), "a_max=" + f.of(1));
}

Text write_hard_swish(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  const std::string limited = f.let_clip(f.let("add", f.x, f.of(3)), 0, 6);
  return f.call("multiply", f.x, f.let("divide", limited, f.of(6)));
}

Text write_silu(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  const double alpha = node.attr("alpha");
  const std::string steep = alpha == 1 ? f.x : f.let("multiply", f.x, f.of(alpha));
  return f.call("multiply", f.x, f.let("sigmoid", steep));
}

std::string softplus(const Formula& f) { return f.call("log", f.let("add", f.let("exp", f.x), f.of(1))); }

Text write_softplus(const Node& node, const RelayWriter& writer) { return softplus(Formula(node, writer)); }

Text write_mish(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  return f.call("multiply", f.x, f.let("tanh", writer.let(softplus(f))));
}

// scale · (relu(x) - alpha · relu(1 - exp(input_scale · x)))
Text write_elu(const Node& node, const RelayWriter& writer) {
  const double scale = node.attr("scale"), input_scale = node.attr("input_scale");
  if (input_scale <= 0)  // then the exponential bends the other side
    return std::nullopt;
  const Formula f(node, writer);
  const std::string inner = input_scale == 1 ? f.x : f.let("multiply", f.x, f.of(input_scale));
  const std::string below = f.let("nn.relu", f.let("subtract", f.of(1), f.let("exp", inner)));
  const std::string bent = f.let("multiply", below, f.of(node.attr("alpha")));
  const std::string elu = f.call("subtract", f.let("nn.relu", f.x), bent);
  return scale == 1 ? elu : f.call("multiply", writer.let(elu), f.of(scale));
}

Text write_rms_norm(const Node& node, const RelayWriter& writer) {
  const Value x = node.in("x");
  if (!x.shape().ranked())
    return std::nullopt;
  const Formula f(node, writer);
  const int64_t axis = node.attr("axis");
  std::vector<int64_t> axes;
  for (int64_t i = from_the_front(axis, x.rank()); i < x.rank(); ++i)
    axes.push_back(i);
  const std::string mean =
      f.let("mean", f.let("multiply", f.x, f.x), "axis=" + list(axes), std::string("keepdims=True"));
  const std::string root = f.let("sqrt", f.let("add", mean, f.of(node.attr("epsilon"))));
  const std::string y = f.call("divide", f.x, root);
  return node.has("scale") ? f.call("multiply", writer.let(y), writer.use(node.in("scale"))) : y;
}

// Bounds that are constants are attributes of clip.
Text write_clip(const Node& node, const RelayWriter& writer) {
  const Formula f(node, writer);
  const auto is_constant = [&](std::string_view name) {
    return node.has(name) && literal_of(node.in(name)) != nullptr &&
           literal_of(node.in(name))->extents().empty();
  };
  if (is_constant("min") && is_constant("max"))
    return f.call("clip", f.x, "a_min=" + writer.use(node.in("min")), "a_max=" + writer.use(node.in("max")));
  if (!node.has("min") && !node.has("max"))
    return f.call("copy", f.x);
  if (!node.has("min"))
    return f.call("minimum", f.x, writer.use(node.in("max")));
  const std::string limited = f.call("maximum", f.x, writer.use(node.in("min")));
  return node.has("max") ? f.call("minimum", writer.let(limited), writer.use(node.in("max"))) : limited;
}

// --- binary

Text write_binary(const Node& node, const RelayWriter& writer, std::string_view function) {
  return Formula::call(function, writer.use(node.in("a")), writer.use(node.in("b")));
}

// C's remainder has the sign of the dividend.
Text write_mod(const Node& node, const RelayWriter& writer) {
  return write_binary(node, writer, node.attr("sign_of_dividend") ? "mod" : "floor_mod");
}

Text write_shift(const Node& node, const RelayWriter& writer) {
  return write_binary(node, writer,
                      node.attr("direction") == Attribute("left") ? "left_shift" : "right_shift");
}

// --- parts of tensors

// `value`, after the same number for each of the axes before.
std::string after_axes(int64_t axes, int64_t each, const std::string& value, const RelayWriter& writer) {
  if (axes == 0)
    return value;
  const std::vector<int64_t> before(static_cast<size_t>(axes), each);
  return writer.let(fmt::format("concatenate(({}, {}), axis=0)", list(before), value));
}

// Bounds that the model computes are told for all axes from the first on.
Text write_dynamic_slice(const Node& node, const RelayWriter& writer) {
  const Attribute::Ints& axes = node.attr("axes");
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] < 0 || axes[i] != axes[0] + static_cast<int64_t>(i))
      return std::nullopt;
  const std::string steps =
      node.has("steps") ? writer.use(node.in("steps")) : list(std::vector<int64_t>(axes.size(), 1));
  const std::string begin = after_axes(axes[0], 0, writer.use(node.in("starts")), writer);
  const std::string end = after_axes(axes[0], INT64_MAX, writer.use(node.in("ends")), writer);
  return Formula::call("dyn.strided_slice", writer.use(node.in("x")), begin, end,
                       after_axes(axes[0], 1, steps, writer));
}

Text write_slice(const Node& node, const RelayWriter& writer) {
  if (node.is_late("axes") || node.attr("axes").as<Attribute::Ints>().empty())
    return std::nullopt;
  const Attribute::Ints& axes = node.attr("axes");
  const auto starts = node.in("starts").known_ints(), ends = node.in("ends").known_ints();
  const auto steps = node.has("steps") ? node.in("steps").known_ints() : std::vector<int64_t>(axes.size(), 1);
  if (!starts || !ends || !steps)
    return write_dynamic_slice(node, writer);
  return fmt::format("strided_slice({}, begin={}, end={}, strides={}, axes={})", writer.use(node.in("x")),
                     list(*starts), list(*ends), list(*steps), list(axes));
}

Text write_pad(const Node& node, const RelayWriter& writer) {
  const Value x = node.in("x");
  const auto pads = node.in("pads").known_ints();
  const std::string& mode = node.attr("mode");
  if (!x.shape().ranked() || node.is_late("axes") || !pads || mode == "wrap" ||
      std::ranges::any_of(*pads, [](int64_t pad) { return pad < 0; }))
    return std::nullopt;
  const Attribute::Ints& axes = node.attr("axes");
  std::vector<std::string> widths(static_cast<size_t>(x.rank()), "[0, 0]");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = from_the_front(axes[i], x.rank());
    widths[static_cast<size_t>(axis)] = list({(*pads)[i], (*pads)[axes.size() + i]});
  }
  const std::string value = node.has("value") ? writer.use(node.in("value")) : "0" + relay_suffix(x.dtype());
  return fmt::format("nn.pad({}, {}, pad_width=[{}], pad_mode=\"{}\")", writer.use(x), value,
                     fmt::join(widths, ", "), mode);
}

// Relay has the tuples of indices in the first dimension.
Text let_indices(Value indices, const RelayWriter& writer) {
  if (!indices.shape().ranked() || indices.rank() == 0)
    return std::nullopt;
  if (indices.rank() == 1)
    return writer.use(indices);
  std::vector<int64_t> axes = {indices.rank() - 1};
  for (int64_t i = 0; i + 1 < indices.rank(); ++i)
    axes.push_back(i);
  return writer.let(fmt::format("transpose({}, axes={})", writer.use(indices), list(axes)));
}

Text write_gather_nd(const Node& node, const RelayWriter& writer) {
  const Text indices = let_indices(node.in("indices"), writer);
  if (!indices)
    return std::nullopt;
  return fmt::format("gather_nd({}, {}, batch_dims={})", writer.use(node.in("x")), *indices,
                     node.attr("batch_dims").as<int64_t>());
}

std::string reduction(const Node& node) {
  const std::string& name = node.attr("reduction");
  return name == "none" ? "update" : name;
}

Text write_scatter_nd(const Node& node, const RelayWriter& writer) {
  const Text indices = let_indices(node.in("indices"), writer);
  if (!indices)
    return std::nullopt;
  return fmt::format("scatter_nd({}, {}, {}, mode=\"{}\")", writer.use(node.in("x")), *indices,
                     writer.use(node.in("updates")), reduction(node));
}

Text write_scatter_elements(const Node& node, const RelayWriter& writer) {
  return fmt::format("scatter_elements({}, {}, {}, axis={}, reduction=\"{}\")", writer.use(node.in("x")),
                     writer.use(node.in("indices")), writer.use(node.in("updates")),
                     node.attr("axis").as<int64_t>(), reduction(node));
}

Text write_nonzero(const Node& node, const RelayWriter& writer) {
  const std::string places = writer.let(Formula::call("argwhere", writer.use(node.in("x"))));
  return fmt::format("transpose({}, axes=[1, 0])", places);
}

Text write_triangle(const Node& node, const RelayWriter& writer) {
  const std::string diagonal = node.is_late("diagonal")
                                   ? writer.use(node.late("diagonal"))
                                   : fmt::format("{}", node.attr("diagonal").as<int64_t>());
  return fmt::format("trilu({}, {}, upper={})", writer.use(node.in("x")), diagonal,
                     node.attr("upper") ? "True" : "False");
}

Text write_top_k(const Node& node, const RelayWriter& writer) {
  const auto known = node.in("k").known_ints();
  const std::string k =
      known && known->size() == 1 ? fmt::format("k={}", known->front()) : writer.use(node.in("k"));
  return fmt::format("topk({}, {}, axis={}, ret_type=\"both\", is_ascend={}, dtype=\"int64\")",
                     writer.use(node.in("x")), k, node.attr("axis").as<int64_t>(),
                     node.attr("largest") ? "False" : "True");
}

Text write_range(const Node& node, const RelayWriter& writer) {
  return fmt::format("arange({}, {}, {})", writer.use(node.in("start")), writer.use(node.in("limit")),
                     writer.use(node.in("delta")));
}

// Relay's regions begin with the number of their image.
Text write_roi_align(const Node& node, const RelayWriter& writer) {
  if (node.attr("half_pixel") || node.attr("mode") != Attribute("mean"))
    return std::nullopt;
  const Formula f(node, writer);
  const std::string images =
      f.let("cast", writer.use(node.in("images")), fmt::format("dtype=\"{}\"", words_for(f.dtype).torch));
  const std::string column = f.let("expand_dims", images, std::string("axis=1"));
  const std::string regions =
      writer.let(fmt::format("concatenate(({}, {}), axis=1)", column, writer.use(node.in("regions"))));
  const int64_t samples = node.attr("samples");
  return fmt::format("vision.roi_align({}, {}, pooled_size={}, spatial_scale={}, sample_ratio={})", f.x,
                     regions, list(node.attr("size")), node.attr("scale").as<double>(),
                     samples == 0 ? -1 : samples);
}

// From the end to the front: reversed before and after.
Text write_cumulative(const Node& node, const RelayWriter& writer) {
  if (node.is_late("axis") || !node.attr("reverse"))
    return std::nullopt;
  const int64_t axis = node.attr("axis");
  const std::string reversed =
      writer.let(fmt::format("reverse({}, axis={})", writer.use(node.in("x")), axis));
  const std::string sums = writer.let(fmt::format("{}({}, axis={}, exclusive={})",
                                                  node.is("cumulative_sum") ? "cumsum" : "cumprod", reversed,
                                                  axis, node.attr("exclusive") ? "True" : "False"));
  return fmt::format("reverse({}, axis={})", sums, axis);
}

// --- quantization

bool is_plainly_quantized(const Node& node, DType dtype) {
  return is_integer(dtype) && node.in("scale").dtype() == DType::F32 &&
         node.attr("block_size") == Attribute(0);
}

// Relay's zero points are i32.
std::string let_zero_point(const Node& node, const RelayWriter& writer) {
  if (!node.has("zero_point"))
    return "0i32";
  return writer.let(fmt::format("cast({}, dtype=\"int32\")", writer.use(node.in("zero_point"))));
}

Text write_quantize(const Node& node, const RelayWriter& writer) {
  const DType to = node.attr("to");
  if (!is_plainly_quantized(node, to) || node.in("x").dtype() != DType::F32)
    return std::nullopt;
  const std::string zero_point = let_zero_point(node, writer);
  return fmt::format("qnn.quantize({}, {}, {}, out_dtype=\"{}\", axis={})", writer.use(node.in("x")),
                     writer.use(node.in("scale")), zero_point, words_for(to).torch,
                     node.attr("axis").as<int64_t>());
}

Text write_dequantize(const Node& node, const RelayWriter& writer) {
  if (!is_plainly_quantized(node, node.in("x").dtype()) || node.attr("to") != Attribute(DType::F32))
    return std::nullopt;
  const std::string zero_point = let_zero_point(node, writer);
  return fmt::format("qnn.dequantize({}, {}, {}, axis={})", writer.use(node.in("x")),
                     writer.use(node.in("scale")), zero_point, node.attr("axis").as<int64_t>());
}

// --- matrices

constexpr int64_t kRest = -1;

// What a reshape takes: at most one size that is not known.
std::optional<std::vector<int64_t>> sizes_of(const std::vector<Dim>& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims)
    sizes.push_back(dim.constant().value_or(kRest));
  if (std::ranges::count(sizes, kRest) > 1)
    return std::nullopt;
  return sizes;
}

std::string reshape(const std::string& x, const std::vector<int64_t>& sizes) {
  return fmt::format("reshape({}, newshape={})", x, list(sizes));
}

// The leading dimensions as one.
std::optional<std::vector<int64_t>> flattened(const Shape& shape, int64_t matrix_rank) {
  std::vector<int64_t> sizes = {kRest};
  for (int64_t i = shape.rank() - matrix_rank; i < shape.rank(); ++i) {
    if (!shape[i].is_constant())
      return std::nullopt;
    sizes.push_back(*shape[i].constant());
  }
  return sizes;
}

bool has_equal_batches(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank())
    return false;
  for (int64_t i = 0; i + 2 < a.rank(); ++i)
    if (a[i] != b[i])
      return false;
  return true;
}

// Relay multiplies matrices, or batches of them along one dimension: more are first made one.
Text write_matmul(const Node& node, const RelayWriter& writer) {
  const Value a = node.in("a"), b = node.in("b");
  if (!a.shape().ranked() || !b.shape().ranked() || b.rank() < 2 || a.rank() < 3)
    return std::nullopt;
  const bool is_batched = has_equal_batches(a.shape(), b.shape()) && a.rank() > 3;
  const bool is_of_one_matrix = b.rank() == 2 && !node.attr("transpose_a");
  const int64_t rank = is_batched ? 2 : 1;
  const auto left = flattened(a.shape(), rank), right = flattened(b.shape(), rank),
             whole = sizes_of(node.result().shape().dims());
  if ((!is_batched && !is_of_one_matrix) || !left || !whole || (is_batched && !right))
    return std::nullopt;
  const std::string flat_a = writer.let(reshape(writer.use(a), *left));
  const std::string flat_b = is_batched ? writer.let(reshape(writer.use(b), *right)) : writer.use(b);
  const auto flag = [&](std::string_view name) { return node.attr(name) ? "True" : "False"; };
  const std::string product = writer.let(fmt::format("{}({}, {}, transpose_a={}, transpose_b={})",
                                                     is_batched ? "nn.batch_matmul" : "nn.matmul", flat_a,
                                                     flat_b, flag("transpose_a"), flag("transpose_b")));
  return reshape(product, *whole);
}

using Write = Text (*)(const Node&, const RelayWriter&);

const std::unordered_map<std::string_view, Write>& forms() {
  static const std::unordered_map<std::string_view, Write> forms = {
      {"clip", write_clip},
      {"cumulative_prod", write_cumulative},
      {"cumulative_sum", write_cumulative},
      {"dequantize", write_dequantize},
      {"elu", write_elu},
      {"gather_nd", write_gather_nd},
      {"gelu", write_gelu},
      {"hard_sigmoid", write_hard_sigmoid},
      {"hard_swish", write_hard_swish},
      {"matmul", write_matmul},
      {"mish", write_mish},
      {"mod", write_mod},
      {"nonzero", write_nonzero},
      {"pad", write_pad},
      {"quantize", write_quantize},
      {"range", write_range},
      {"reciprocal", write_reciprocal},
      {"rms_norm", write_rms_norm},
      {"roi_align", write_roi_align},
      {"scatter_elements", write_scatter_elements},
      {"scatter_nd", write_scatter_nd},
      {"sequence_at", write_sequence_at},
      {"sequence_concat", write_sequence_concat},
      {"sequence_construct", write_sequence_construct},
      {"sequence_split", write_sequence_split},
      {"shift", write_shift},
      {"silu", write_silu},
      {"slice", write_slice},
      {"softplus", write_softplus},
      {"top_k", write_top_k},
      {"triangle", write_triangle},
  };
  return forms;
}

}  // namespace

std::string relay_suffix(DType dtype) {
  if (dtype == DType::F32)
    return "f";
  if (dtype == DType::Bool || dtype == DType::String)
    return "";
  return std::string(name(dtype));
}

std::optional<std::string> written_in_relay(const Node& node, const RelayWriter& writer) {
  const auto it = forms().find(node.op().name);
  return it == forms().end() ? std::nullopt : it->second(node, writer);
}

}  // namespace tenon
