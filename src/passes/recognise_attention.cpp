// recognise_attention.cpp — finds softmax(scale · q kᵀ + mask) · v in the ways it is written, and makes one
// attention node of it.
//
// It starts from a product one side of which is a softmax, and peels off, from the softmax inwards, whatever
// leaves the scores what they are but for a scale, a mask or a cap, until it comes to the product of q and
// kᵀ:
//
//   matmul(softmax(add(mul(matmul(q, kt), 0.125), mask)), v)  →  attention(q, transpose(kt), v, mask, 0.125)
//
// All of it may be the other way round: vᵀ · softmax(k qᵀ, along the keys), which is the transpose of the
// result.
#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "passes/passes.h"
#include "rewrite/match.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "attention";
constexpr double kNever = -std::numeric_limits<double>::infinity();
// A score this low, or lower, gives a probability of 0 beside any other.
constexpr double kMasked = -1e9;
// Added to any score it gives itself: a query that sees no key attends to all alike, as where all have one
// low score. It is not the least number there is, which ONNX Runtime's Attention takes for "never".
constexpr double kLowest = -1e30;

// --- the search ---

// One mask as it stands in the model: added, or chosen by a condition instead of the scores.
struct Mask {
  Value value;
  Shape frame = {};                      // of the scores it is added to
  double scale = 1;                      // of what is added
  std::optional<double> otherwise = {};  // the score where the condition does not hold
  bool negated = false;                  // … or where it does
};

// Everything found between the product with v and the product of q and kᵀ.
struct Found {
  Value q, k, v;
  bool q_is_transposed = false, k_is_transposed = false, v_is_transposed = false;  // in the model
  bool scores_are_transposed = false, result_is_transposed = false;                // likewise
  double scale = 1;
  double softcap = 0;
  std::vector<Mask> masks;
  Shape frame;  // of the scores: its leading dimensions are batch and heads
  DType softmax_dtype = DType::F32;
  std::vector<Node*> nodes;
};

// A reshape that keeps the last two dimensions: it only groups batch and heads in another way.
bool regroups(const Node& node) {
  if (!node.is("reshape"))
    return false;
  const Shape &from = node.in("x").shape(), &to = node.result().shape();
  return from.ranked() && to.ranked() && from.rank() >= 2 && to.rank() >= 2 &&
         provably_equal(from[-1], to[-1]) && provably_equal(from[-2], to[-2]);
}

class Search {
 public:
  explicit Search(Node* product) { found_.nodes.push_back(product); }

  // Why a softmax that was found is left alone; empty when none was found.
  const std::string& obstacle() const { return obstacle_; }
  const Found& found() const { return found_; }

  bool run() {
    const Node& product = *found_.nodes.front();
    const bool turns_a = product.attr("transpose_a"), turns_b = product.attr("transpose_b");
    found_.v = product.in("b");
    found_.v_is_transposed = turns_b;
    found_.scores_are_transposed = turns_a;
    if (peel_probabilities(product.in("a"), 1))
      return true;
    if (!obstacle_.empty())
      return false;
    Node* const root = found_.nodes.front();
    found_ = {};
    found_.nodes = {root};
    found_.v = product.in("a");
    found_.v_is_transposed = !turns_a;
    found_.scores_are_transposed = !turns_b;
    found_.result_is_transposed = true;
    return peel_probabilities(product.in("b"), 1);
  }

 private:
  // From the product with v inwards, to the softmax. The value may have so many uses.
  bool peel_probabilities(Value p, int64_t most_uses) {
    if (p.is_input() || !p.shape().ranked())
      return false;
    Node* node = p.node();
    const auto pass_on = [&](Value inner, int64_t uses) {
      found_.nodes.push_back(node);
      return peel_probabilities(inner, uses);
    };
    if (node->is("softmax")) {
      const int64_t axis = node->attr("axis"), keys = found_.scores_are_transposed ? -2 : -1;
      if (axis != keys && axis != p.rank() + keys)
        return false;
      if (p.use_count() > most_uses)
        return stop("the probabilities are used elsewhere too");
      found_.nodes.push_back(node);
      found_.softmax_dtype = p.dtype();
      found_.frame = p.shape();
      return peel_scores(node->in("x"));
    }
    if (p.use_count() > most_uses)
      return false;
    if (node->is("cast") && is_float(node->in("x").dtype()))
      return pass_on(node->in("x"), 1);
    if (regroups(*node))
      return pass_on(node->in("x"), 1);
    // where(is_nan(p), 0, p): a query that sees nothing gets zeros, as attention gives it anyway.
    if (node->is("where"))
      if (const Node* question = maker(node->in("condition"), "is_nan"))
        return question->in("x") == node->in("b") && uniform_number(node->in("a")) == 0.0 &&
               pass_on(node->in("b"), 2);
    return false;
  }

  // From the softmax inwards, to the product of q and kᵀ.
  bool peel_scores(Value s) {
    if (s.is_input() || !s.shape().ranked())
      return false;
    Node* node = s.node();
    found_.nodes.push_back(node);
    if (node->is("matmul")) {
      found_.q = node->in("a");
      found_.k = node->in("b");
      found_.q_is_transposed = node->attr("transpose_a");
      found_.k_is_transposed = !node->attr("transpose_b").as<bool>();
      if (found_.scores_are_transposed) {
        std::swap(found_.q, found_.k);
        std::swap(found_.q_is_transposed, found_.k_is_transposed);
      }
      prefer_frame(s.shape());
      return true;
    }
    if ((node->is("cast") && is_float(node->in("x").dtype())) || regroups(*node))
      return peel_scores(node->in("x"));
    if (node->is("add"))
      return try_mask(s, node->in("a"), {.value = node->in("b")}) ||
             try_mask(s, node->in("b"), {.value = node->in("a")});
    if (node->is("mul"))
      return try_factor(s, node->in("a"), node->in("b")) || try_factor(s, node->in("b"), node->in("a"));
    if (node->is("where"))
      return try_choice(s, node->in("a"),
                        {.value = node->in("condition"), .otherwise = uniform_number(node->in("b"))}) ||
             try_choice(s, node->in("b"),
                        {.value = node->in("condition"),
                         .otherwise = uniform_number(node->in("a")),
                         .negated = true});
    return stop(fmt::format("the scores come from {}, not from a product", node->op().name));
  }

  // One way inwards; what was peeled off on it is put back if it leads nowhere.
  bool attempt(Value inner, const std::function<void()>& peel) {
    const Found before = found_;
    peel();
    if (peel_scores(inner))
      return true;
    found_ = before;
    return false;
  }

  bool try_mask(Value sum, Value inner, Mask mask) {
    if (inner.type() != sum.type() || found_.softcap != 0 || found_.scores_are_transposed ||
        has_choice_of_scores())
      return false;
    mask.scale = found_.scale;
    return attempt(inner, [&] { add(mask, sum); });
  }

  bool try_choice(Value choice, Value inner, Mask mask) {
    if (inner.type() != choice.type() || found_.softcap != 0 || found_.scores_are_transposed ||
        !mask.otherwise || !(*mask.otherwise * found_.scale <= kMasked))
      return false;
    mask.otherwise = *mask.otherwise * found_.scale;
    if (*mask.otherwise > kLowest && adds_to_scores())
      return stop("more is added where a condition has chosen a low score");
    if (chooses_otherwise(*mask.otherwise))
      return stop("two conditions choose different low scores");
    return attempt(inner, [&] { add(mask, choice); });
  }

  // Whether another condition chose a score that is low but not as low: one that becomes lower still would
  // change which of them is the highest.
  bool chooses_otherwise(double low) const {
    return std::any_of(found_.masks.begin(), found_.masks.end(), [&](const Mask& mask) {
      return mask.otherwise && *mask.otherwise != low && std::isfinite(*mask.otherwise) &&
             std::isfinite(low) && std::max(*mask.otherwise, low) > kLowest;
    });
  }

  // Whether what a condition chooses is one part of a sum. A query all of whose keys are masked, by the one
  // or the other, attends to those that come to the highest, which another low score would change.
  bool adds_to_scores() const {
    return std::any_of(found_.masks.begin(), found_.masks.end(),
                       [](const Mask& mask) { return !mask.otherwise; });
  }

  // Whether a condition chose between the scores and one that is low, but not so low that nothing which is
  // added to the others comes below it.
  bool has_choice_of_scores() const {
    return std::any_of(found_.masks.begin(), found_.masks.end(),
                       [](const Mask& mask) { return mask.otherwise && *mask.otherwise > kLowest; });
  }

  void add(Mask mask, Value scores) {
    mask.frame = scores.shape();
    found_.masks.push_back(std::move(mask));
    prefer_frame(scores.shape());
  }

  // Scores may be grouped in several ways; attention wants batch and heads.
  void prefer_frame(const Shape& frame) {
    if (frame.rank() <= 4 && (found_.frame.rank() > 4 || found_.frame.rank() < frame.rank()))
      found_.frame = frame;
  }

  bool try_factor(Value product, Value inner, Value factor) {
    const std::optional<double> number = uniform_number(factor);
    if (inner.type() != product.type() || !number || !(*number > 0))
      return false;
    // cap · tanh(scores / cap)
    if (const Node* bounded = maker(inner, "tanh"))
      return found_.scale == 1 && found_.softcap == 0 && attempt(bounded->in("x"), [&] {
               found_.softcap = found_.scale = *number;
               found_.nodes.push_back(inner.node());
             });
    return attempt(inner, [&] { found_.scale *= *number; });
  }

  bool stop(std::string reason) {
    obstacle_ = std::move(reason);
    return false;
  }

  Found found_;
  std::string obstacle_;
};

// --- the replacement ---

// Takes factors that are one number off `value`, through transposes, into `scale`.
Value without_scale(Value value, double& scale) {
  if (const Node* product = maker(value, "mul"))
    for (const auto& [x, factor] :
         {std::pair(product->in("a"), product->in("b")), std::pair(product->in("b"), product->in("a"))})
      if (const auto number = uniform_number(factor); number && *number > 0 && x.type() == value.type()) {
        scale *= *number;
        return without_scale(x, scale);
      }
  if (const Node* turned = maker(value, "transpose")) {
    const Value x = turned->in("x"), rest = without_scale(x, scale);
    return rest == x ? value : transpose(rest, turned->attr("permutation"));
  }
  return value;
}

Value with_last_two_swapped(Value value) {
  if (const Node* turned = maker(value, "transpose")) {
    std::vector<int64_t> permutation = turned->attr("permutation");
    std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    return std::is_sorted(permutation.begin(), permutation.end()) ? turned->in("x")
                                                                  : transpose(turned->in("x"), permutation);
  }
  return transpose_last_two(value);
}

// The sizes for a reshape: at most one may be other than an integer, and is left to be found out.
std::optional<std::vector<int64_t>> reshape_sizes(const Shape& shape) {
  std::vector<int64_t> sizes;
  int64_t open = 0;
  for (const Dim& dim : shape.dims()) {
    sizes.push_back(dim.constant().value_or(-1));
    open += !dim.is_constant();
  }
  return open <= 1 ? std::optional(sizes) : std::nullopt;
}

// Whether the heads share the keys or values x, each of which is multiplied with all of them.
bool is_shared_by_heads(Value x, const Shape& frame) {
  return frame.rank() == 4 && x.shape().ranked() && x.rank() == 4 && x.dim(1) == Dim(1) &&
         x.dim(0) == frame[0];
}

// The same scores of one head.
Shape with_one_head(const Shape& frame) {
  std::vector<Dim> dims = frame.dims();
  dims[1] = 1;
  return Shape(dims);
}

// The frame of the keys and values.
Shape frame_of_keys(const Found& found) {
  return is_shared_by_heads(found.k, found.frame) && is_shared_by_heads(found.v, found.frame)
             ? with_one_head(found.frame)
             : found.frame;
}

// A stack of matrices in the frame: [leading dimensions of the frame…, rows, columns]; nothing if it is not.
std::optional<Shape> shape_in_frame(Value x, const Shape& frame) {
  if (!x.shape().ranked() || x.rank() < 2)
    return std::nullopt;
  std::vector<Dim> dims(frame.dims().begin(), frame.dims().end() - 2);
  dims.push_back(x.dim(-2));
  dims.push_back(x.dim(-1));
  const Shape shape(dims);
  if (x.shape() == shape)
    return shape;
  return provably_equal(x.shape().element_count(), shape.element_count()) && reshape_sizes(shape)
             ? std::optional(shape)
             : std::nullopt;
}

Value reshaped(Value x, const Shape& shape) {
  return x.shape() == shape ? x : reshape(x, *reshape_sizes(shape));
}

// To rank 4: heads, or batch and heads, of one.
Value to_rank_four(Value x) {
  if (x.rank() == 3)
    return unsqueeze(x, {1});
  return x.rank() == 2 ? unsqueeze(x, {0, 1}) : x;
}

// Whether each of so many heads in a row is a copy: reshape(broadcast(x)), with x: [batch, key heads, 1,
// keys, size] broadcast along dimension 2, which is then merged with the one before.
bool repeats_heads(Value x) {
  const Node* merged = maker(x, "reshape");
  const Node* repeated = merged == nullptr ? nullptr : maker(merged->in("x"), "broadcast");
  if (repeated == nullptr)
    return false;
  const Value once = repeated->in("x"), all = merged->in("x");
  if (!once.shape().ranked() || once.rank() != 5 || all.rank() != 5 || once.dim(2) != Dim(1))
    return false;
  for (int64_t axis : {0, 1, 3, 4})
    if (!provably_equal(once.dim(axis), all.dim(axis)))
      return false;
  return x.shape() == Shape({all.dim(0), all.dim(1) * all.dim(2), all.dim(3), all.dim(4)});
}

Value unrepeated(Value x) { return x.node()->in("x").node()->in("x"); }
Dim unrepeated_heads(Value x) { return unrepeated(x).dim(1); }
Value without_repeats(Value x) { return squeeze(unrepeated(x), {2}); }

// --- masks ---

// Leading dimensions of one frame that become some of another, with the same number of elements.
struct Group {
  int64_t from, from_end, to, to_end;
};

// How the leading dimensions of one frame become those of another; nothing where a size is not known.
std::optional<std::vector<Group>> regrouping(const Shape& from, const Shape& to) {
  const auto known = [](const Shape& shape) {
    return std::all_of(shape.dims().begin(), shape.dims().end() - 2,
                       [](const Dim& dim) { return dim.constant().value_or(0) > 0; });
  };
  if (!known(from) || !known(to))
    return std::nullopt;
  std::vector<Group> groups;
  int64_t i = 0, j = 0;
  while (i < from.rank() - 2 || j < to.rank() - 2) {
    Group group = {.from = i, .from_end = i, .to = j, .to_end = j};
    int64_t left = 1, right = 1;
    do {
      if (i < from.rank() - 2 && (left <= right || j == to.rank() - 2))
        left *= *from[i++].constant();
      else if (j < to.rank() - 2)
        right *= *to[j++].constant();
      else
        return std::nullopt;
    } while (left != right);
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

bool fits_frame(const Mask& mask, const Shape& frame) {
  return mask.frame == frame || mask.value.rank() <= 2 ||
         (regrouping(mask.frame, frame) && reshape_sizes(mask.value.shape()));
}

// A mask that is added in another frame. Where it is the same for all of a group it stays one; elsewhere it
// is repeated as the scores of its own frame are.
Value in_frame(const Mask& mask, const Shape& frame) {
  if (mask.frame == frame || mask.value.rank() <= 2)
    return mask.value;
  Value value = mask.value;
  for (int64_t rank = value.rank(); rank < mask.frame.rank(); ++rank)
    value = unsqueeze(value, {0});
  std::vector<Dim> repeated = value.shape().dims(), regrouped;
  const std::vector<Group> groups = *regrouping(mask.frame, frame);
  for (const Group& group : groups) {
    const auto first = repeated.begin() + group.from, last = repeated.begin() + group.from_end;
    const bool is_one = std::all_of(first, last, [](const Dim& dim) { return dim == Dim(1); });
    if (!is_one)
      std::copy(mask.frame.dims().begin() + group.from, mask.frame.dims().begin() + group.from_end, first);
    for (int64_t axis = group.to; axis < group.to_end; ++axis)
      regrouped.push_back(is_one ? Dim(1) : frame[axis]);
  }
  regrouped.insert(regrouped.end(), repeated.end() - 2, repeated.end());
  const Value all = broadcast_to(value, int_vector(value.graph(), *reshape_sizes(Shape(repeated))));
  return reshaped(all, Shape(regrouped));
}

Value as_bias(Value seen, DType dtype) {
  Graph& graph = seen.graph();
  return where(seen, scalar(graph, dtype, 0), scalar(graph, dtype, kNever));
}

// The masks as one, with rank 4 or less: from the scores outwards, so that what a condition chooses is all
// that is left of what was added before.
Value merged_mask(const Found& found) {
  const bool is_only = found.masks.size() == 1;  // else a score may be low by another mask too
  const DType dtype = found.q.dtype();
  Value merged;
  for (const Mask& mask : std::views::reverse(found.masks)) {
    Graph& graph = mask.value.graph();
    Value next = in_frame(mask, found.frame);
    if (found.frame.rank() == 3 && next.rank() == 3)
      next = unsqueeze(next, {1});
    if (!mask.otherwise) {
      if (mask.scale != 1)
        next = next * mask.scale;
      if (next.dtype() != dtype)
        next = cast(next, dtype);
    } else if (*mask.otherwise == kNever) {
      next = mask.negated ? logical_not(next) : next;
    } else {
      Value seen = merged ? merged : scalar(graph, dtype, 0);
      if (seen.dtype() == DType::Bool)
        seen = as_bias(seen, dtype);
      const Value low = scalar(graph, dtype, is_only ? kLowest : std::min(*mask.otherwise, kLowest));
      merged = mask.negated ? where(next, low, seen) : where(next, seen, low);
      continue;
    }
    if (!merged)
      merged = next;
    else if (merged.dtype() == DType::Bool && next.dtype() == DType::Bool)
      merged = logical_and(next, merged);
    else
      merged = (next.dtype() == DType::Bool ? as_bias(next, dtype) : next) +
               (merged.dtype() == DType::Bool ? as_bias(merged, dtype) : merged);
  }
  return merged;
}

// Whether all masks are constants that, broadcast to each other and added, hold more numbers than they do.
bool grow_as_one(const std::vector<Mask>& masks) {
  int64_t apart = 0;
  Extents together;  // from the last dimension on
  for (const Mask& mask : masks) {
    const std::optional<Extents> extents = mask.value.shape().extents();
    if (!is_fixed(mask.value) || !extents)
      return false;
    apart += element_count(*extents);
    together.resize(std::max(together.size(), extents->size()), 1);
    for (size_t i = 0; i < extents->size(); ++i)
      together[i] = std::max(together[i], (*extents)[extents->size() - 1 - i]);
  }
  return masks.size() > 1 && element_count(together) > apart;
}

// Why no attention node can stand for what was found; empty when one can.
std::string why_not(const Found& found) {
  if (found.q.dtype() != found.k.dtype() || found.q.dtype() != found.v.dtype())
    return "q, k and v have different dtypes";
  if (found.frame.rank() > 4)
    return fmt::format("the scores have rank {}", found.frame.rank());
  for (const Mask& mask : found.masks)
    if (mask.otherwise && *mask.otherwise != kNever && found.q.dtype() == DType::F16)
      return "f16 has no number as low as the score that is chosen";
  const Shape keys = frame_of_keys(found);
  for (const auto& [x, frame] : {std::pair(found.q, found.frame), {found.k, keys}, {found.v, keys}})
    if (!shape_in_frame(x, frame))
      return fmt::format("{} does not have the batch and heads of the scores {}", x.type(), to_string(frame));
  for (const Mask& mask : found.masks)
    if (!fits_frame(mask, found.frame))
      return fmt::format("a mask of scores {} cannot be regrouped for scores {}", to_string(mask.frame),
                         to_string(found.frame));
  if (grow_as_one(found.masks))
    return "its masks are constants, and as one would hold more numbers";
  if (!reshape_sizes(found.nodes.front()->result().shape()) &&
      found.nodes.front()->result().rank() != found.frame.rank())
    return "its shape has several dynamic sizes";
  return "";
}

// The result of attention in the shape of the product that it replaces, but for its transposition.
Value as_product(Value y, const Found& found) {
  std::vector<Dim> dims = found.nodes.front()->result().shape().dims();
  if (found.result_is_transposed)
    std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  const Shape shape(dims);
  if (y.shape() == shape)
    return y;
  return found.frame.rank() < 4 && shape.rank() == found.frame.rank()
             ? squeeze(y, found.frame.rank() == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{0, 1})
             : reshape(y, *reshape_sizes(shape));
}

Value make_attention(Found found) {
  AttentionOptions options{
      .scale = found.scale, .softcap = found.softcap, .softmax_dtype = found.softmax_dtype};
  const auto operand = [&](Value x, bool is_transposed, const Shape& frame) {
    if (is_transposed)
      x = with_last_two_swapped(x);
    return to_rank_four(reshaped(x, *shape_in_frame(x, frame)));
  };
  const Shape keys = frame_of_keys(found);
  const Value q = operand(without_scale(found.q, options.scale), found.q_is_transposed, found.frame);
  const Value k = operand(without_scale(found.k, options.scale), found.k_is_transposed, keys),
              v = operand(found.v, found.v_is_transposed, keys);
  options.mask = merged_mask(found);
  const Value y = as_product(attention(q, k, v, options), found);
  return found.result_is_transposed ? transpose_last_two(y) : y;
}

// --- what attention nodes can do without ---

AttentionOptions options_of(const Node& node) {
  return {.scale = node.attr("scale"),
          .softcap = node.attr("softcap"),
          .softmax_dtype = node.attr("softmax_dtype"),
          .mask = node.in("mask"),
          .pad_mask = node.attr("pad_mask"),
          .window_before = node.attr("window_before"),
          .window_after = node.attr("window_after"),
          .offset = node.in("offset"),
          .lengths = node.in("lengths")};
}

// Key heads that were copied for several query heads: attention shares them itself.
Value without_copies(Node& node) {
  const Value k = node.in("k"), v = node.in("v");
  if (!repeats_heads(k) || !repeats_heads(v) || unrepeated_heads(k) != unrepeated_heads(v))
    return {};
  const Value one_k = without_repeats(k), one_v = without_repeats(v);
  return attention(node.in("q"), one_k, one_v, options_of(node));
}

// A mask that is known: does it hide nothing, or all keys after the query's own place?
enum class Hides : uint8_t { Something, Nothing, TheFuture };

Hides hidden_by(const Tensor& mask) {
  const int64_t rank = mask.rank(), keys = rank == 0 ? 1 : mask.extent(rank - 1),
                queries = rank < 2 ? 1 : mask.extent(rank - 2);
  const bool is_bool = mask.dtype() == DType::Bool;
  bool nothing = true, future = queries == keys && keys * queries == mask.count();
  const std::vector<double> elements = widen<double>(mask);
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto query = static_cast<int64_t>(i) / keys, key = static_cast<int64_t>(i) % keys;
    const bool seen = is_bool ? elements[i] != 0 : elements[i] == 0,
               hidden = is_bool ? elements[i] == 0 : elements[i] <= kMasked;
    nothing &= seen;
    future &= key <= query ? seen : hidden;
  }
  return nothing ? Hides::Nothing : future ? Hides::TheFuture : Hides::Something;
}

std::optional<Tensor> elements_of(Value value) {
  if (const Tensor* known = known_elements(value))
    return *known;
  const Node* node = maker(value, "constant");
  return node == nullptr ? std::nullopt : std::optional(node->attr("value").as<Literal>().tensor());
}

Value without_mask(Node& node) {
  AttentionOptions options = options_of(node);
  const bool is_windowed = options.window_before >= 0 || options.window_after >= 0;
  if (!options.mask || options.pad_mask || options.offset || is_windowed)
    return {};
  const std::optional<Tensor> mask = elements_of(options.mask);
  const Hides hides = mask && mask->count() > 0 ? hidden_by(*mask) : Hides::Something;
  if (hides == Hides::Something)
    return {};
  if (hides == Hides::TheFuture)
    options.window_after = 0;
  options.mask = {};
  return attention(node.in("q"), node.in("k"), node.in("v"), options);
}

void simplify_attention(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("attention") || !journal.is_open())
      continue;
    using Simpler = std::pair<std::string_view, Value (*)(Node&)>;
    for (const auto& [rule, simpler] :
         {Simpler("attention-shared-heads", without_copies), Simpler("attention-known-mask", without_mask)}) {
      const InsertBefore here(node);
      const Value y = simpler(*node);
      if (!y)
        continue;
      journal.applied(rule, {node}, Numerics::Reassociates);
      Node* next = y.node();
      graph.replace(node, {y});
      node = next;
    }
  }
}

void recognise(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("matmul") || node->result().use_count() == 0)
      continue;
    if (!journal.is_open())
      return;
    Search search(node);
    std::string obstacle;
    if (search.run())
      obstacle = why_not(search.found());
    else if (obstacle = search.obstacle(); obstacle.empty())
      continue;
    if (!obstacle.empty()) {
      journal.declined(kRule, *node, obstacle);
      continue;
    }
    const WithSources sources(graph, sources_of(search.found().nodes));
    const InsertBefore here(node);
    const Value y = make_attention(search.found());
    journal.applied(kRule, search.found().nodes, Numerics::Reassociates);
    graph.replace(node, {y});
  }
}

}  // namespace

void recognise_attention(Graph& graph, Journal& journal) {
  if (!journal.allows(Numerics::Reassociates))
    return;
  for_each_graph(graph, [&](Graph& each) {
    recognise(each, journal);
    simplify_attention(each, journal);
  });
  remove_dead(graph, journal);
}

}  // namespace tenon
