#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/size_condition.h"
#include "ops/attention_gradient.h"
#include "ops/elements.h"
#include "ops/rounding.h"
#include "ops/shapes.h"
#include "ops/softmax.h"
#include "ops/words.h"

namespace tenon {
namespace {

enum class Stage : uint8_t { Raw, Capped, Biased, Probabilities };

Stage stage_of(const Node& n) {
  return named<Stage>(n, "stage",
                      {{"raw", Stage::Raw},
                       {"capped", Stage::Capped},
                       {"biased", Stage::Biased},
                       {"probabilities", Stage::Probabilities}});
}

// --- infer ---

void check_rank(const Node& n, std::string_view name) {
  if (n.in(name).rank() != 4)
    throw operand_error(n, fmt::format("{} must have rank 4: batch, heads, sequence, size", name));
}

void check_same(const Node& n, std::string_view a, std::string_view b, int64_t axis, std::string_view what) {
  if (provably_different(n.in(a).dim(axis), n.in(b).dim(axis)))
    throw operand_error(n, fmt::format("{} and {} differ in {}", a, b, what));
}

void check_mask(const Node& n, const Shape& scores) {
  const Value mask = n.in("mask");
  if (mask.dtype() != DType::Bool && mask.dtype() != n.in("q").dtype())
    throw operand_error(n, "mask must be bool or have the dtype of q");
  const bool pad_mask = n.attr("pad_mask");
  bool fits = mask.rank() <= scores.rank();
  for (int64_t axis = -1; fits && axis >= -mask.rank(); --axis) {
    const bool padded = axis == -1 && pad_mask;
    const Dim &given = mask.dim(axis), &wanted = scores[axis];
    if (padded)
      assume_at_most(given, wanted);
    else
      assume_fills(given, wanted);
    if (given.is_constant() && wanted.is_constant())
      fits = padded ? *given.constant() <= *wanted.constant() : given == wanted || given == Dim(1);
  }
  if (!fits || (pad_mask && mask.rank() == 0))
    throw operand_error(n, fmt::format("mask does not broadcast to the scores {}", to_string(scores)));
}

void check_scale(std::string_view op, double scale) {
  if (!(scale >= 0))
    throw user_error("{}: scale is {}, but its root is needed", op, scale);
}

// The shape of the scores, all operands but v having been checked.
Shape infer_scores(const Node& n) {
  check_scale(n.op().name, n.attr("scale"));
  check_rank(n, "q");
  check_rank(n, "k");
  const Value q = n.in("q"), k = n.in("k");
  check_same(n, "q", "k", 0, "their batches");
  check_same(n, "q", "k", 3, "their sizes");
  check_shared_heads(n, q.dim(1), k.dim(1));
  const Shape scores({q.dim(0), q.dim(1), q.dim(2), k.dim(2)});
  if (n.has("mask"))
    check_mask(n, scores);
  for (std::string_view name : {"offset", "lengths"})
    if (const Value value = n.in(name)) {
      const bool one = name == "offset" && (value.rank() == 0 || value.shape() == Shape({1}));
      if (!one && (value.rank() != 1 || provably_different(value.dim(0), q.dim(0))))
        throw operand_error(n, fmt::format("{} must be a number per batch", name));
    }
  return scores;
}

Types infer_attention(const Node& n) {
  const Shape scores = infer_scores(n);
  check_rank(n, "v");
  check_same(n, "k", "v", 0, "their batches");
  check_same(n, "k", "v", 1, "their heads");
  check_same(n, "k", "v", 2, "the number of keys");
  return {Type::tensor(n.in("q").dtype(), {scores[0], scores[1], scores[2], n.in("v").dim(3)})};
}

Types infer_attention_scores(const Node& n) {
  stage_of(n);
  return {Type::tensor(n.in("q").dtype(), infer_scores(n))};
}

// --- eval ---

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the bias of a key that is not seen

// The mask as a bias, read by batch, head, query and key.
class MaskBias {
 public:
  MaskBias(const Call& c, const Extents& scores) {
    if (!c.has("mask"))
      return;
    const Tensor& mask = c.in("mask");
    values_ = widen<double>(mask);
    if (mask.dtype() == DType::Bool)
      for (double& value : values_)
        value = value != 0 ? 0 : kNever;
    // Padding is not stored: there are no values beyond the keys that the mask has.
    Extents given = mask.extents(), wanted = scores;
    keys_ = scores[3];
    if (c.attr("pad_mask")) {
      if (given.empty() || given.back() > keys_)
        throw user_error("{}: a mask of shape [{}] is not for {} keys", c.node().op().name,
                         fmt::join(given, ","), keys_);
      keys_ = given.back();
      wanted[3] = given.back();
    }
    if (broadcast_extents(c.node().op().name, given, wanted) != wanted)
      throw user_error("{}: a mask of shape [{}] does not broadcast to the scores [{}]", c.node().op().name,
                       fmt::join(given, ","), fmt::join(scores, ","));
    strides_ = broadcast_strides(given, wanted);
  }

  double at(int64_t batch, int64_t head, int64_t query, int64_t key) const {
    if (strides_.empty())
      return 0;
    if (key >= keys_)
      return kNever;
    return values_[static_cast<size_t>(batch * strides_[0] + head * strides_[1] + query * strides_[2] +
                                       key * strides_[3])];
  }

 private:
  std::vector<double> values_;
  Extents strides_;  // none without a mask
  int64_t keys_ = 0;
};

// Which keys a query may see by its place.
class Window {
 public:
  Window(const Call& c, int64_t batch) : before_(c.attr("window_before")), after_(c.attr("window_after")) {
    offsets_ = read(c, "offset", batch);
    lengths_ = read(c, "lengths", batch);
  }

  bool sees(int64_t batch, int64_t query, int64_t key) const {
    const auto at = static_cast<size_t>(batch);
    const int64_t ahead = key - query - (offsets_.empty() ? 0 : offsets_[at]);
    return (before_ < 0 || -ahead <= before_) && (after_ < 0 || ahead <= after_) &&
           (lengths_.empty() || key < lengths_[at]);
  }

 private:
  // One number per batch; none when the operand is absent.
  static std::vector<int64_t> read(const Call& c, std::string_view name, int64_t batch) {
    if (!c.has(name))
      return {};
    std::vector<int64_t> values = as_ints(c.in(name));
    if (values.size() == 1)
      values.resize(static_cast<size_t>(batch), values.front());
    if (static_cast<int64_t>(values.size()) != batch)
      throw user_error("{}: there are {} {} for a batch of {}", c.node().op().name, values.size(), name,
                       batch);
    // Far beyond any key, and near enough for differences not to overflow.
    constexpr int64_t far = int64_t{1} << 60;
    for (int64_t& value : values)
      value = std::clamp(value, -far, far);
    return values;
  }

  int64_t before_, after_;
  std::vector<int64_t> offsets_, lengths_;
};

struct Sizes {
  int64_t batch, heads, queries, size, key_heads, keys;
  Extents scores() const { return {batch, heads, queries, keys}; }
  // Which of the key heads, counted over all batches, serves a query head.
  int64_t key_head(int64_t b, int64_t h) const { return b * key_heads + h / (heads / key_heads); }
};

Sizes read_sizes(const Call& c) {
  const std::string_view op = c.node().op().name;
  const Tensor &q = c.in("q"), &k = c.in("k");
  if (q.rank() != 4 || k.rank() != 4)
    throw user_error("{}: q and k must have rank 4, not {} and {}", op, q.rank(), k.rank());
  const Sizes s = {q.extent(0), q.extent(1), q.extent(2), q.extent(3), k.extent(1), k.extent(2)};
  if (k.extent(0) != s.batch || k.extent(3) != s.size)
    throw user_error("{}: q [{}] and k [{}] differ in batch or size", op, fmt::join(q.extents(), ","),
                     fmt::join(k.extents(), ","));
  check_shared_heads(c.node(), s.heads, s.key_heads);
  return s;
}

// q or k times the root of the scale, which is kinder to small floats than scaling their product.
std::vector<double> read_scaled(const Call& c, std::string_view name) {
  const Tensor& x = c.in(name);
  check_scale(c.node().op().name, c.attr("scale"));
  double root = std::sqrt(c.attr("scale").as<double>());
  round_step(x.dtype(), {&root, 1});
  std::vector<double> values = widen<double>(x);
  for (double& value : values)
    value *= root;
  round_step(x.dtype(), values);
  return values;
}

void apply_softcap(std::span<double> row, double softcap, DType dtype) {
  const auto step = [&](auto&& formula) {
    for (double& score : row)
      score = formula(score);
    round_step(dtype, row);
  };
  step([&](double score) { return score / softcap; });
  step([](double score) { return std::tanh(score); });
  step([&](double score) { return score * softcap; });
}

// Calls use(batch, head, row) with each row of the scores at this stage, in order.
template <class F>
void for_each_row(const Call& c, const Sizes& s, Stage stage, F&& use) {
  const DType dtype = c.in("q").dtype(), softmax_dtype = c.attr("softmax_dtype");
  const double softcap = c.attr("softcap");
  const MaskBias mask(c, s.scores());
  const Window window(c, s.batch);
  const std::vector<double> q = read_scaled(c, "q"), k = read_scaled(c, "k");
  std::vector<double> row(static_cast<size_t>(s.keys));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const double* query = q.data() + ((b * s.heads + h) * s.queries + i) * s.size;
        const double* key = k.data() + s.key_head(b, h) * s.keys * s.size;
        for (double& score : row) {
          score = 0;
          for (int64_t d = 0; d < s.size; ++d)
            score += query[d] * key[d];
          key += s.size;
        }
        round_step(dtype, row);
        if (stage >= Stage::Capped && softcap != 0)
          apply_softcap(row, softcap, dtype);
        bool seen = false;
        for (int64_t j = 0; stage >= Stage::Biased && j < s.keys; ++j) {
          const double bias = mask.at(b, h, i, j) + (window.sees(b, i, j) ? 0 : kNever);
          seen |= bias != kNever;
          row[static_cast<size_t>(j)] += bias;
        }
        round_step(dtype, row);
        if (stage == Stage::Probabilities) {
          if (seen)
            apply_softmax(row, softmax_dtype);
          else
            std::fill(row.begin(), row.end(), 0);
          round_step(dtype, row);
        }
        use(b, h, row);
      }
}

Data eval_attention_scores(const Call& c) {
  const Sizes s = read_sizes(c);
  Tensor scores(DType::F64, s.scores());
  if (scores.count() == 0)
    return {Tensor(c.in("q").dtype(), s.scores())};
  auto into = scores.mutable_data<double>().begin();
  for_each_row(c, s, stage_of(c.node()), [&](int64_t, int64_t, const std::vector<double>& row) {
    into = std::copy(row.begin(), row.end(), into);
  });
  return {narrow<double>(c.in("q").dtype(), s.scores(), scores.data<double>())};
}

Data eval_attention(const Call& c) {
  const Sizes s = read_sizes(c);
  const Tensor& v = c.in("v");
  if (v.rank() != 4 || v.extent(0) != s.batch || v.extent(1) != s.key_heads || v.extent(2) != s.keys)
    throw user_error("attention: k [{}] and v [{}] differ in batch, heads or keys",
                     fmt::join(c.in("k").extents(), ","), fmt::join(v.extents(), ","));
  const int64_t size = v.extent(3);
  const Extents extents = {s.batch, s.heads, s.queries, size};
  const std::vector<double> values = widen<double>(v);
  Tensor sums(DType::F64, extents);
  if (sums.count() == 0)
    return {Tensor(c.in("q").dtype(), extents)};
  double* y = sums.mutable_data<double>().data();
  for_each_row(c, s, Stage::Probabilities, [&](int64_t b, int64_t h, const std::vector<double>& row) {
    const double* value = values.data() + s.key_head(b, h) * s.keys * size;
    for (double probability : row) {
      for (int64_t d = 0; d < size; ++d)
        y[d] += probability * value[d];
      value += size;
    }
    y += size;
  });
  return {narrow<double>(c.in("q").dtype(), extents, sums.data<double>())};
}

// --- the declarations ---

OpDef declare(std::string_view name, std::string_view doc, std::vector<OperandDecl> operands,
              InferFunction infer, EvalFunction eval, GradFunction grad, DecomposeFunction decompose) {
  operands.insert(operands.end(), {{"mask", "M", Arity::Optional},
                                   {"offset", "i64", Arity::Optional},
                                   {"lengths", "i64", Arity::Optional}});
  return {
      .name = name,
      .doc = doc,
      .operands = std::move(operands),
      .attributes = {{"scale", AttributeKind::Float, "what the products q kᵀ are multiplied by"},
                     {"softcap", AttributeKind::Float, "the bound that scores approach; 0 for none", 0.0},
                     {"softmax_dtype", AttributeKind::DType,
                      "the steps of the softmax round to this, if it has 16 bits or fewer", DType::F32},
                     {"pad_mask", AttributeKind::Bool,
                      "keys beyond the mask's last dimension are masked; else that one may broadcast", false},
                     {"window_before", AttributeKind::Int,
                      "how many keys before its own place a query sees; -1 for all", -1},
                     {"window_after", AttributeKind::Int,
                      "how many keys after its own place a query sees: 0 is causal, -1 for all", -1}},
      .results = {{"y", "T"}},
      .types = {{"T", Floats}, {"M", Floats | DTypeSet{DType::Bool}}},
      .traits = {.rounds_steps = true},
      .infer = infer,
      .eval = eval,
      .grad = grad,
      .decompose = decompose};
}

Family make_ops() {
  OpDef scores =
      declare("attention_scores", "how much each query attends to each key, at one stage of attention",
              {{"q", "T"}, {"k", "T"}}, infer_attention_scores, eval_attention_scores, grad_attention_scores,
              decompose_attention_scores);
  scores.attributes.push_back({"stage", AttributeKind::String, "raw, capped, biased or probabilities"});
  return {
      declare("attention", "softmax(scale · q kᵀ + bias) · v, per head", {{"q", "T"}, {"k", "T"}, {"v", "T"}},
              infer_attention, eval_attention, grad_attention, decompose_attention),
      scores};
}

Value apply(std::string_view op, std::vector<Operand> operands, Attributes attributes,
            const AttentionOptions& options) {
  Graph& graph = operands.front().values.front().graph();
  operands.insert(operands.end(),
                  {{"mask", options.mask}, {"offset", options.offset}, {"lengths", options.lengths}});
  attributes.insert({{"scale", options.scale},
                     {"softcap", options.softcap},
                     {"softmax_dtype", options.softmax_dtype},
                     {"pad_mask", options.pad_mask},
                     {"window_before", options.window_before},
                     {"window_after", options.window_after}});
  return graph.create(op, std::move(operands), std::move(attributes))->result();
}

}  // namespace

const Family& attention_ops() {
  static const Family ops = make_ops();
  return ops;
}

Value attention(Value q, Value k, Value v, const AttentionOptions& options) {
  return apply("attention", {{"q", q}, {"k", k}, {"v", v}}, {}, options);
}

Value attention_scores(Value q, Value k, std::string_view stage, const AttentionOptions& options) {
  return apply("attention_scores", {{"q", q}, {"k", k}}, {{"stage", stage}}, options);
}

}  // namespace tenon
