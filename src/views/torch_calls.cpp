#include "views/torch_calls.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "views/axes.h"

namespace tenon {
namespace {

using Calls = std::vector<TorchCall>;
using Ints = std::vector<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr std::monostate kNone;

TorchOperand constant(Attribute value) { return value; }

// One element of a list: a constant where it is known, or else the value that has no other.
std::optional<TorchOperand> element(Value list, size_t i) {
  if (const auto known = list.known_ints())
    return constant(known->at(i));
  if (list.type().is_tensor() && list.shape().ranked() && (list.rank() == 0 || list.dim(0) == Dim(1)))
    return OnlyElement{list};
  return std::nullopt;
}

bool is_constant(const TorchOperand& operand, int64_t wanted) {
  const auto* attribute = std::get_if<Attribute>(&operand);
  return attribute != nullptr && attribute->as<int64_t>() == wanted;
}

// x[start:end:step], or flip for x backwards, as PyTorch has no negative steps.
std::optional<TorchCall> call_for_axis(TorchOperand x, int64_t axis, const TorchOperand& start,
                                       const TorchOperand& end, const TorchOperand& step) {
  const auto* known_step = std::get_if<Attribute>(&step);
  if (known_step == nullptr || known_step->as<int64_t>() < 1) {
    const bool is_whole = is_constant(start, -1) && (is_constant(end, kLeast) || is_constant(end, -kMost));
    if (!is_constant(step, -1) || !is_whole)
      return std::nullopt;
    return TorchCall{"torch.flip", "aten::flip", {{"input", x}, {"dims", constant(Ints{axis})}}};
  }
  // What goes to the border is left out.
  const bool from_start = is_constant(start, 0) || is_constant(start, kLeast);
  TorchCall call{"operator.getitem",
                 "aten::slice",
                 {{"input", x},
                  {"start", from_start ? kNone : start},
                  {"end", is_constant(end, kMost) ? kNone : end},
                  {"step", is_constant(step, 1) ? kNone : step}}};
  call.aten_arguments = {{"input", x},
                         {"dim", constant(axis)},
                         {"start", from_start ? constant(0) : start},
                         {"end", end},
                         {"step", step}};
  call.subscript_axis = axis;
  return call;
}

Calls call_slice(const Node& node) {
  const Value x = node.in("x");
  const Ints& axes = node.attr("axes");
  Calls calls;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto start = element(node.in("starts"), i), end = element(node.in("ends"), i);
    const auto step = node.has("steps") ? element(node.in("steps"), i) : constant(1);
    if (!start || !end || !step)
      return {};
    const TorchOperand from = i == 0 ? TorchOperand(x) : EarlierCall{i - 1};
    const auto call = call_for_axis(from, from_the_front(axes[i], x.rank()), *start, *end, *step);
    if (!call)
      return {};
    calls.push_back(*call);
  }
  return calls;
}

// Theirs has no window but the causal one, and that not beside a mask; keys of fewer heads they must be told
// of.
Calls call_attention(const Node& node) {
  const Value q = node.in("q"), k = node.in("k");
  const int64_t before = node.attr("window_before"), after = node.attr("window_after");
  const bool is_causal = after == 0;
  const bool is_plain = !node.has("offset") && !node.has("lengths") && !node.attr("pad_mask") &&
                        before == -1 && node.attr("softcap").as<double>() == 0 &&
                        node.attr("softmax_dtype").as<DType>() == DType::F32;
  if (!is_plain || (after != -1 && !is_causal) || (is_causal && node.has("mask")) || q.rank() < 3 ||
      k.rank() != q.rank())
    return {};
  const TorchOperand mask = node.has("mask") ? TorchOperand(node.in("mask")) : kNone;
  TorchCall call{"torch.nn.functional.scaled_dot_product_attention",
                 "aten::scaled_dot_product_attention",
                 {{"query", q}, {"key", k}, {"value", node.in("v")}, {"attn_mask", mask}},
                 {{"is_causal", constant(is_causal)}, {"scale", constant(node.attr("scale"))}}};
  const bool has_groups = k.dim(k.rank() - 3) != q.dim(q.rank() - 3);
  call.aten_arguments = call.arguments;
  call.aten_arguments.push_back({"dropout_p", constant(0.0)});
  call.aten_arguments.push_back(call.by_name[0]);
  call.aten_arguments.push_back(call.by_name[1]);
  call.aten_arguments.push_back({"enable_gqa", constant(has_groups)});
  if (has_groups)
    call.by_name.push_back({"enable_gqa", constant(true)});
  return {call};
}

// The equation comes first, and the operands one by one; aten has a list of them.
Calls call_einsum(const Node& node) {
  const std::vector<Value> operands = node.ins("x");
  const TorchArgument equation = {"equation", constant(node.attr("equation"))};
  TorchCall call{"torch.einsum", "aten::einsum", {equation}};
  for (Value operand : operands)
    call.arguments.push_back({"operand", operand});
  call.aten_arguments = {equation, {"tensors", TensorList{operands}}, {"path", kNone}};
  return {call};
}

// A word for each way to gather: one index, a table's rows, a list, or anything.
Calls call_gather(const Node& node) {
  const Value x = node.in("x"), indices = node.in("indices");
  const int64_t axis = from_the_front(node.attr("axis"), x.rank());
  if (indices.rank() == 0)
    return {{"torch.select",
             "aten::select",
             {{"input", x}, {"dim", constant(axis)}, {"index", *element(indices, 0)}}}};
  const bool is_weight = x.node() != nullptr && x.node()->is("parameter");
  const auto known = indices.known_ints();
  // An embedding counts no row from the end.
  const bool has_negative =
      known && std::any_of(known->begin(), known->end(), [](int64_t i) { return i < 0; });
  if (is_weight && axis == 0 && x.rank() == 2 && !has_negative)
    return {{"torch.nn.functional.embedding",
             "aten::embedding",
             {{"input", indices}, {"weight", x}},
             {},
             {{"weight", x},
              {"input", indices},
              {"padding_idx", constant(-1)},
              {"scale_grad_by_freq", constant(false)},
              {"sparse", constant(false)}}}};
  TorchCall call{"operator.getitem", "aten::index", {{"input", x}, {"indices", indices}}};
  call.subscript_axis = axis;
  return {call};
}

// x[tuple of indices]
Calls call_gather_nd(const Node& node) {
  if (node.attr("batch_dims").as<int64_t>() != 0)
    return {};
  return {{"torch.unbind", "aten::unbind", {{"input", node.in("indices")}, {"dim", constant(-1)}}},
          {"operator.getitem", "aten::index", {{"input", node.in("x")}, {"indices", EarlierCall{0}}}}};
}

Calls call_div(const Node& node) {
  if (!is_integer(node.in("a").dtype()))
    return {};
  return {{"torch.div",
           "aten::div",
           {{"input", node.in("a")}, {"other", node.in("b")}},
           {{"rounding_mode", constant("trunc")}}}};
}

Calls call_is_inf(const Node& node) {
  const bool positive = node.attr("positive"), negative = node.attr("negative");
  const std::vector<TorchArgument> arguments = {{"input", node.in("x")}};
  if (positive && negative)
    return {{"torch.isinf", "aten::isinf", arguments}};
  if (positive)
    return {{"torch.isposinf", "aten::isposinf", arguments}};
  if (negative)
    return {{"torch.isneginf", "aten::isneginf", arguments}};
  return {};
}

Calls call_shift(const Node& node) {
  const std::vector<TorchArgument> arguments = {{"input", node.in("a")}, {"other", node.in("b")}};
  if (node.attr("direction").as<std::string>() == "left")
    return {{"operator.lshift", "aten::__lshift__", arguments}};
  return {{"operator.rshift", "aten::__rshift__", arguments}};
}

Calls call_mod(const Node& node) {
  const std::vector<TorchArgument> arguments = {{"input", node.in("a")}, {"other", node.in("b")}};
  if (node.attr("sign_of_dividend"))
    return {{"torch.fmod", "aten::fmod", arguments}};
  return {{"torch.remainder", "aten::remainder", arguments}};
}

Calls call_matmul(const Node& node) {
  Calls calls;
  const auto operand = [&](std::string_view name, std::string_view transpose) -> TorchOperand {
    if (!node.attr(transpose))
      return node.in(name);
    calls.push_back({"torch.transpose",
                     "aten::transpose",
                     {{"input", node.in(name)}, {"dim0", constant(-2)}, {"dim1", constant(-1)}}});
    return EarlierCall{calls.size() - 1};
  };
  const TorchOperand a = operand("a", "transpose_a"), b = operand("b", "transpose_b");
  if (!calls.empty())
    calls.push_back({"torch.matmul", "aten::matmul", {{"input", a}, {"other", b}}});
  return calls;
}

// Their list goes from the last axis to the first, and each axis has both its ends side by side.
std::optional<Ints> torch_pads(const Node& node) {
  const auto known = node.in("pads").known_ints();
  if (!known)
    return std::nullopt;
  const Ints& axes = node.attr("axes");
  const int64_t rank = node.in("x").rank();
  Ints pads(static_cast<size_t>(2 * rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto place = static_cast<size_t>(2 * (rank - 1 - from_the_front(axes[i], rank)));
    pads[place] = known->at(i);
    pads[place + 1] = known->at(axes.size() + i);
  }
  while (pads.size() >= 2 && pads[pads.size() - 1] == 0 && pads[pads.size() - 2] == 0)
    pads.resize(pads.size() - 2);
  return pads;
}

Calls call_pad(const Node& node) {
  static const std::map<std::string_view, std::string_view> modes = {
      {"constant", "constant"}, {"edge", "replicate"}, {"reflect", "reflect"}, {"wrap", "circular"}};
  const std::string& mode = node.attr("mode");
  const auto pads = torch_pads(node);
  if (!pads)
    return {};
  const TorchOperand value =
      node.has("value") && mode == "constant" ? TorchOperand(OnlyElement{node.in("value")}) : kNone;
  return {{"torch.nn.functional.pad",
           "aten::pad",
           {{"input", node.in("x")},
            {"pad", constant(*pads)},
            {"mode", constant(modes.at(mode))},
            {"value", value}}}};
}

// With their alpha and beta one word, else clamp(x · alpha + beta, 0, 1).
Calls call_hard_sigmoid(const Node& node) {
  const Value x = node.in("x");
  const double alpha = node.attr("alpha"), beta = node.attr("beta");
  if (static_cast<float>(alpha) == 1.0F / 6 && beta == 0.5)
    return {{"torch.nn.functional.hardsigmoid", "aten::hardsigmoid", {{"input", x}}}};
  return {{"operator.mul", "aten::mul", {{"input", x}, {"other", constant(alpha)}}},
          {"operator.add",
           "aten::add",
           {{"input", EarlierCall{0}}, {"other", constant(beta)}},
           {},
           {{"input", EarlierCall{0}}, {"other", constant(beta)}, {"alpha", constant(1)}}},
          {"torch.clamp",
           "aten::clamp",
           {{"input", EarlierCall{1}}, {"min", constant(0.0)}, {"max", constant(1.0)}}}};
}

// Theirs has a row for each element.
Calls call_nonzero(const Node& node) {
  return {{"torch.nonzero", "aten::nonzero", {{"input", node.in("x")}}},
          {"torch.t", "aten::t", {{"input", EarlierCall{0}}}}};
}

// Theirs reduces one axis at a time; the last first, so that the others keep their numbers.
Calls call_reduce_prod(const Node& node) {
  const Value x = node.in("x");
  Ints axes = node.attr("axes");
  for (int64_t& axis : axes)
    axis = from_the_front(axis, x.rank());
  std::sort(axes.rbegin(), axes.rend());
  Calls calls;
  for (size_t i = 0; i < axes.size(); ++i) {
    const TorchArgument input = {"input", i == 0 ? TorchOperand(x) : EarlierCall{i - 1}};
    const TorchArgument dim = {"dim", constant(axes[i])};
    const TorchArgument keep = {"keepdim", constant(node.attr("keep_dims"))};
    calls.push_back(
        {"torch.prod", "aten::prod", {input, dim, keep}, {}, {input, dim, keep, {"dtype", kNone}}});
  }
  return calls;
}

Calls call_triangle(const Node& node) {
  const std::vector<TorchArgument> arguments = {{"input", node.in("x")},
                                                {"diagonal", constant(node.attr("diagonal"))}};
  if (node.attr("upper"))
    return {{"torch.triu", "aten::triu", arguments}};
  return {{"torch.tril", "aten::tril", arguments}};
}

Calls call_top_k(const Node& node) {
  const auto k = element(node.in("k"), 0);
  if (!k)
    return {};
  return {{"torch.topk",
           "aten::topk",
           {{"input", node.in("x")},
            {"k", *k},
            {"dim", constant(node.attr("axis"))},
            {"largest", constant(node.attr("largest"))},
            {"sorted", constant(node.attr("sorted"))}}}};
}

Calls call_scatter_elements(const Node& node) {
  static const std::map<std::string_view, std::string_view> reductions = {
      {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}};
  std::vector<TorchArgument> arguments = {{"input", node.in("x")},
                                          {"dim", constant(node.attr("axis"))},
                                          {"index", node.in("indices")},
                                          {"src", node.in("updates")}};
  const std::string& reduction = node.attr("reduction");
  if (reduction == "none")
    return {{"torch.scatter", "aten::scatter", arguments}};
  arguments.push_back({"reduce", constant(reductions.at(reduction))});
  return {{"torch.scatter_reduce", "aten::scatter_reduce", arguments, {{"include_self", constant(true)}}}};
}

// A tuple of parts: of one size, of a list of sizes, or one by one.
Calls call_sequence_split(const Node& node) {
  const TorchArgument x = {"input", node.in("x")}, dim = {"dim", constant(node.attr("axis"))};
  if (const Value split = node.in("split")) {
    const TorchOperand sizes = split.rank() == 0 ? TorchOperand(OnlyElement{split}) : AllElements{split};
    return {{"torch.split", "aten::split", {x, {"split_size_or_sections", sizes}, dim}}};
  }
  if (node.attr("keep_dims"))
    return {{"torch.split", "aten::split", {x, {"split_size_or_sections", constant(1)}, dim}}};
  return {{"torch.unbind", "aten::unbind", {x, dim}}};
}

// One word for each number of spatial dimensions, 1 to 3.
using WordsByDims = std::array<std::string_view, 3>;

// Theirs pads both ends alike, by half a window at most. Where the rank of x is unknown, so is how many pads
// make sense.
std::optional<Ints> pool_padding(const Node& node) {
  if (!node.in("x").shape().ranked())
    return std::nullopt;
  const Ints &kernel = node.attr("kernel"), &pads = node.attr("pads");
  if (node.attr("padding").as<std::string>() != "explicit" || kernel.size() > 3)
    return std::nullopt;
  for (size_t i = 0; i < kernel.size(); ++i)
    if (pads[i] != pads[kernel.size() + i] || pads[i] > kernel[i] / 2)
      return std::nullopt;
  return Ints(pads.begin(), pads.begin() + static_cast<int64_t>(kernel.size()));
}

// Their indices count within a plane, not within x.
Calls call_max_pool(const Node& node) {
  static constexpr WordsByDims functions = {
      "torch.nn.functional.max_pool1d", "torch.nn.functional.max_pool2d", "torch.nn.functional.max_pool3d"};
  static constexpr WordsByDims aten = {"aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d"};
  const auto padding = pool_padding(node);
  if (!padding || shown_result_count(node) != 1)
    return {};
  const size_t place = padding->size() - 1;
  return {{functions[place],
           aten[place],
           {{"input", node.in("x")},
            {"kernel_size", constant(node.attr("kernel"))},
            {"stride", constant(node.attr("strides"))},
            {"padding", constant(*padding)},
            {"dilation", constant(node.attr("dilations"))},
            {"ceil_mode", constant(node.attr("round_up"))}}}};
}

Calls call_average_pool(const Node& node) {
  static constexpr WordsByDims functions = {
      "torch.nn.functional.avg_pool1d", "torch.nn.functional.avg_pool2d", "torch.nn.functional.avg_pool3d"};
  static constexpr WordsByDims aten = {"aten::avg_pool1d", "aten::avg_pool2d", "aten::avg_pool3d"};
  const auto padding = pool_padding(node);
  const Ints& dilations = node.attr("dilations");
  if (!padding || std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; }))
    return {};
  TorchCall call{functions[padding->size() - 1],
                 aten[padding->size() - 1],
                 {{"input", node.in("x")},
                  {"kernel_size", constant(node.attr("kernel"))},
                  {"stride", constant(node.attr("strides"))},
                  {"padding", constant(*padding)},
                  {"ceil_mode", constant(node.attr("round_up"))},
                  {"count_include_pad", constant(node.attr("count_padding"))}}};
  if (padding->size() > 1) {
    call.aten_arguments = call.arguments;
    call.aten_arguments.push_back({"divisor_override", kNone});
  }
  return {call};
}

// How interpolate names a way to resize; null where it has no such way.
struct ResizeWord {
  std::string_view mode, positions, round;  // ours; any rounding where it is empty
  WordsByDims theirs, aten;
  std::optional<bool> align_corners;
};

const ResizeWord* find_resize_word(const Node& node, size_t dims) {
  static const WordsByDims linear = {"linear", "bilinear", "trilinear"};
  static const WordsByDims upsample_linear = {"aten::upsample_linear1d", "aten::upsample_bilinear2d",
                                              "aten::upsample_trilinear3d"};
  static const WordsByDims cubic = {"", "bicubic", ""}, upsample_cubic = {"", "aten::upsample_bicubic2d", ""};
  static const std::vector<ResizeWord> words = {
      {"nearest",
       "asymmetric",
       "down",
       {"nearest", "nearest", "nearest"},
       {"aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d"},
       std::nullopt},
      {"linear", "half_pixel", "", linear, upsample_linear, false},
      {"linear", "align_corners", "", linear, upsample_linear, true},
      {"cubic", "half_pixel", "", cubic, upsample_cubic, false},
      {"cubic", "align_corners", "", cubic, upsample_cubic, true},
  };
  const std::string &mode = node.attr("mode"), &positions = node.attr("positions"),
                    &round = node.attr("round");
  const auto it = std::find_if(words.begin(), words.end(), [&](const ResizeWord& word) {
    return word.mode == mode && word.positions == positions && (word.round.empty() || word.round == round) &&
           !word.theirs[dims - 1].empty();
  });
  return it == words.end() ? nullptr : &*it;
}

// Of images to sizes that are known, with nothing that interpolate has no word for.
Calls call_resize(const Node& node) {
  const Value x = node.in("x"), y = node.result();
  const bool is_plain = !node.attr("antialias") && !node.attr("exclude_outside") &&
                        node.attr("cubic_a").as<double>() == -0.75 &&
                        node.attr("aspect").as<std::string>() == "stretch";
  if (!is_plain || !node.has("sizes") || x.rank() < 3 || x.rank() > 5 || !y.shape().ranked() ||
      x.dim(0) != y.dim(0) || x.dim(1) != y.dim(1))
    return {};
  Ints sizes;
  for (int64_t i = 2; i < y.rank(); ++i) {
    if (!y.dim(i).is_constant())
      return {};
    sizes.push_back(*y.dim(i).constant());
  }
  const ResizeWord* word = find_resize_word(node, sizes.size());
  if (word == nullptr)
    return {};
  const TorchArgument input = {"input", x}, size = {"output_size", constant(sizes)};
  const TorchArgument mode = {"mode", constant(word->theirs[sizes.size() - 1])};
  TorchCall call{
      "torch.nn.functional.interpolate", word->aten[sizes.size() - 1], {input, size}, {mode}, {input, size}};
  if (word->align_corners) {
    call.by_name.push_back({"align_corners", constant(*word->align_corners)});
    call.aten_arguments.push_back(call.by_name.back());
  }
  call.aten_arguments.push_back({"scale_factors", kNone});
  return {call};
}

}  // namespace

int64_t shown_result_count(const Node& node) {
  const bool gives_values = node.is("max_pool") && node.result(1).use_count() == 0 && pool_padding(node);
  return gives_values ? 1 : node.result_count();
}

Calls torch_calls(const Node& node) {
  static const std::map<std::string_view, Calls (*)(const Node&)> functions = {
      {"attention", call_attention},
      {"average_pool", call_average_pool},
      {"div", call_div},
      {"einsum", call_einsum},
      {"gather", call_gather},
      {"gather_nd", call_gather_nd},
      {"hard_sigmoid", call_hard_sigmoid},
      {"is_inf", call_is_inf},
      {"matmul", call_matmul},
      {"max_pool", call_max_pool},
      {"mod", call_mod},
      {"nonzero", call_nonzero},
      {"pad", call_pad},
      {"reduce_prod", call_reduce_prod},
      {"resize", call_resize},
      {"scatter_elements", call_scatter_elements},
      {"sequence_split", call_sequence_split},
      {"shift", call_shift},
      {"slice", call_slice},
      {"top_k", call_top_k},
      {"triangle", call_triangle},
  };
  const auto it = functions.find(node.op().name);
  const std::vector<Value> operands = node.operands();
  const auto is_ranked = [](Value v) { return !v.type().is_tensor() || v.shape().ranked(); };
  if (it == functions.end() || !node.late_names().empty() ||
      !std::all_of(operands.begin(), operands.end(), is_ranked))
    return {};
  return it->second(node);
}

}  // namespace tenon
