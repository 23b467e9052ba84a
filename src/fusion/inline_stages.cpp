#include <algorithm>
#include <functional>

#include "base/error.h"
#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "fusion/fused_attention.h"
#include "fusion/index_constants.h"

namespace tenon::fusion {

using loops::Definition;
using loops::Scalar;
using lowering::BufferId;
using lowering::BufferTable;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Stage;

namespace {

bool mentions(const std::vector<Scalar>& at, const std::string& variable) {
  return std::any_of(at.begin(), at.end(),
                     [&](const Scalar& index) { return loops::mentions(index, variable); });
}

// Whether an index is injective in the loops that it mentions; overlapping windows of an image are not.
bool is_injective(const Scalar& index, const std::vector<loops::Axis>& axes) {
  std::vector<std::pair<int64_t, Dim>> steps;  // of the index, and the iterations of their loops
  for (const loops::Axis& axis : axes)
    if (loops::mentions(index, axis.variable)) {
      if (index.kind() != Scalar::Kind::Index)
        return false;
      const auto with = [&](const Dim& value) { return index.index().substitute({{axis.variable, value}}); };
      steps.emplace_back(std::abs((with(1) - with(0)).constant().value_or(0)), axis.size);
    }
  if (steps.size() < 2)
    return true;
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    if (steps[i].first == 0 ||
        steps[i + 1].first < (steps[i].first * steps[i].second).constant().value_or(INT64_MAX))
      return false;
  return true;
}

// Whether a consumer reads each element once, not in every iteration of another loop.
bool reads_once(const Definition& consumer, const Scalar& load) {
  std::vector<loops::Axis> axes = consumer.axes;
  axes.insert(axes.end(), consumer.reduced.begin(), consumer.reduced.end());
  return std::all_of(axes.begin(), axes.end(),
                     [&](const loops::Axis& axis) {
                       return axis.size == Dim(1) || mentions(load.operands(), axis.variable);
                     }) &&
         std::all_of(load.operands().begin(), load.operands().end(),
                     [&](const Scalar& index) { return is_injective(index, axes); });
}

// Whether the index is not affine in the iterations of a sum, as in an image mirrored at its edges: its
// stride is not constant.
bool searches_in_sum(const Scalar& formula, const Definition& sum) {
  bool searches = false;
  loops::for_each_index(formula, [&](const Dim& index) {
    for (const loops::Axis& axis : sum.reduced) {
      const Dim next = index.substitute({{axis.variable, Dim::symbol(axis.variable) + 1}});
      searches = searches || !(next - index).is_constant();
    }
  });
  return searches;
}

// Whether windows would slide over a transposed image, which is better transposed and padded first.
bool transposes_image(const Scalar& formula, const Scalar& load, const Definition& sum) {
  if (formula.kind() != Scalar::Kind::Load || formula.operands() == load.operands() ||
      !std::ranges::is_permutation(formula.operands(), load.operands()))
    return false;
  return std::ranges::any_of(load.operands(), [&](const Scalar& index) {
    const auto moves = [&](const loops::Axis& axis) { return loops::mentions(index, axis.variable); };
    return std::ranges::any_of(sum.axes, moves) && std::ranges::any_of(sum.reduced, moves);
  });
}

// Where the expression of a stage comes from.
struct Origins {
  explicit Origins(const Stage& stage) : sources(stage.sources), refusing(stage.refusing) {}

  void add(const Stage& producer) {
    add_new(sources, producer.sources);
    add_new(refusing, producer.refusing);
  }
  void move_to(Stage& stage) {
    stage.sources = std::move(sources);
    stage.refusing = std::move(refusing);
  }

  std::vector<std::string> sources, refusing;

 private:
  static void add_new(std::vector<std::string>& to, const std::vector<std::string>& from) {
    for (const std::string& source : from)
      if (std::find(to.begin(), to.end(), source) == to.end())
        to.push_back(source);
  }
};

class Inliner {
 public:
  Inliner(KernelGraph& graph, const Target& target)
      : nodes_(graph.nodes),
        buffers_(graph.buffers),
        kept_(graph.kept()),
        rates_(rates_of(target)),
        stores_halves_(target.gpu.has_value()) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].stage) {
        for (BufferId buffer : nodes_[i].reads)
          reads_[buffer] += kManyReads;  // all of it is read, so it must be stored
        continue;
      }
      for (BufferId buffer : nodes_[i].writes)
        makers_.emplace(buffer, i);
      const Definition& definition = nodes_[i].stage->definition;
      for (const Scalar& value : definition.values)
        loops::for_each_load(value, [&](const Scalar& load) {
          ++reads_[loaded(load)];
          if (!reads_once(definition, load))
            read_often_.insert(loaded(load));
        });
    }
  }

  void run() {
    for (KernelNode& node : nodes_)
      if (node.stage) {
        take_in(*node.stage);
        update_reads(node, buffers_);
      }
    drop_unneeded();
  }

  // Fused attention stores the operands of its first product before multiplying, so that a scale is applied
  // there and not recomputed for each product. On a GPU it has masks that are made of indices in its rows,
  // which then say what they leave out.
  void run_on(const std::vector<FusedAttention>& all, bool on_gpu) {
    for (const FusedAttention& attention : all) {
      take_in_if(nodes_[attention.nodes.front()], [&](BufferId buffer) { return can_be_factor(buffer); });
      for (size_t i = 1; on_gpu && i + 1 < attention.nodes.size(); ++i)
        take_in_if(nodes_[attention.nodes[i]], [&](BufferId buffer) { return is_made_of_indices(buffer); });
    }
    drop_unneeded();
  }

 private:
  static constexpr int64_t kManyReads = 1000;
  static constexpr int64_t kMostPartsOfMask = 40;

  BufferId loaded(const Scalar& load) const { return buffers_.id_of(load.name()); }

  void drop_unneeded() {
    // Backwards, so that what only dropped stages read is dropped too (DCE).
    std::vector<KernelNode> left;
    std::set<BufferId> needed = kept_;
    for (size_t i = nodes_.size(); i-- > 0;) {
      KernelNode& node = nodes_[i];
      if (!node.stays && std::none_of(node.writes.begin(), node.writes.end(),
                                      [&](BufferId each) { return needed.contains(each); }))
        continue;
      needed.insert(node.reads.begin(), node.reads.end());
      left.push_back(std::move(node));
    }
    std::reverse(left.begin(), left.end());
    nodes_ = std::move(left);
  }

  // Inlines the expressions of what the stage reads.
  void take_in(Stage& stage) {
    if (stores_halves_ && widens_a_half(stage.definition))
      return;
    for (Scalar& value : stage.definition.values) {
      std::map<BufferId, std::vector<std::pair<std::vector<Scalar>, Scalar>>>
          done;  // what is read twice is shared
      const FormulaCost before = cost_of(value);
      Origins origins(stage);
      const Scalar whole = loops::replace_loads(value, [&](const Scalar& load) {
        auto& places = done[loaded(load)];
        for (const auto& [at, formula] : places)
          if (at == load.operands())
            return formula;
        Scalar formula = formula_for(load, stage.definition, before, origins).value_or(load);
        places.emplace_back(load.operands(), formula);
        return formula;
      });
      if (cost_of(whole).parts > kLargestFormula)
        continue;
      value = whole;
      origins.move_to(stage);
    }
  }

  // Nothing where loading the element is better; adds the origins of the expression to these.
  std::optional<Scalar> formula_for(const Scalar& load, const Definition& consumer, const FormulaCost& around,
                                    Origins& origins) {
    const Definition* definition = find_formula(loaded(load));
    if (definition == nullptr || !pays(*definition, around))
      return std::nullopt;
    Origins with_own = origins;
    std::optional<Scalar> formula = formula_of(load, with_own);
    if (!formula || transposes_image(*formula, load, consumer) ||
        (read_often_.contains(loaded(load)) &&
         (searches_in_sum(*formula, consumer) || (!stores_halves_ && widens_halves(*formula)))))
      return std::nullopt;
    origins = std::move(with_own);
    return formula;
  }

  // Whether a stage only converts what another one computed to f32, for sums that read it often. On a GPU
  // they convert it themselves: stored are halves, which tensor cores multiply.
  bool widens_a_half(const Definition& definition) const {
    const Scalar& value = definition.values.front();
    return definition.results.size() == 1 &&
           read_often_.contains(buffers_.id_of(definition.results.front().name)) &&
           value.kind() == Scalar::Kind::Apply && value.operands().front().kind() == Scalar::Kind::Load &&
           widens_halves(value);
  }

  // Whether a computed element would be converted to f32 repeatedly; constants are half as large unconverted.
  bool widens_halves(const Scalar& formula) const {
    if (formula.kind() != Scalar::Kind::Apply || formula.function() != loops::Function::Cast)
      return false;
    const DType from = formula.operands().front().dtype();
    bool was_computed = false;
    loops::for_each_load(
        formula, [&](const Scalar& load) { was_computed = was_computed || makers_.contains(loaded(load)); });
    return was_computed && (from == DType::F16 || from == DType::BF16);
  }

  // The stage that defines a buffer by one expression; null where there is none.
  const Definition* find_formula(BufferId buffer) const {
    const auto maker = makers_.find(buffer);
    if (maker == makers_.end())
      return nullptr;
    const Definition& definition = nodes_[maker->second].stage->definition;
    return definition.reduces() || definition.results.size() != 1 ? nullptr : &definition;
  }

  template <class F>
  void take_in_if(KernelNode& node, F&& f) {
    Scalar& value = node.stage->definition.values.front();
    Origins origins(*node.stage);
    value = loops::replace_loads(value, [&](const Scalar& load) {
      return f(loaded(load)) ? formula_of(load, origins).value_or(load) : load;
    });
    origins.move_to(*node.stage);
    update_reads(node, buffers_);
  }

  bool is_made_of_indices(BufferId buffer) const {
    const Definition* definition = find_formula(buffer);
    if (definition == nullptr)
      return false;
    const FormulaCost cost = cost_of(definition->values.front());
    return cost.loads == 0 && cost.parts <= kMostPartsOfMask;
  }

  // A value with one reader that costs no more than scaling an element: few rows recompute it.
  bool can_be_factor(BufferId buffer) {
    const Definition* definition = find_formula(buffer);
    if (definition == nullptr || reads_[buffer] != 1 || kept_.contains(buffer))
      return false;
    const FormulaCost cost = cost_of(definition->values.front());
    return cost.loads <= 1 && cost.operations <= 1;
  }

  // The expression of a loaded element; nothing where it must be loaded.
  std::optional<Scalar> formula_of(const Scalar& load, Origins& origins) {
    const Stage& producer = *nodes_[makers_.at(loaded(load))].stage;
    const Definition& definition = producer.definition;
    std::map<std::string, Scalar> replacements;
    for (size_t i = 0; i < definition.at.size(); ++i) {
      if (const std::optional<size_t> axis = loops::axis_of(definition.axes, definition.at[i]))
        replacements.emplace(definition.axes[*axis].variable, load.operands()[i]);
      else if (load.operands()[i].kind() != Scalar::Kind::Index)
        return std::nullopt;  // it may be out of range, which would go unnoticed
    }
    std::optional<Scalar> formula = loops::substitute(definition.values.front(), replacements);
    if (formula)
      origins.add(producer);
    return formula;
  }

  // Whether recomputing an element where it is read is cheaper than storing and loading it.
  bool pays(const Definition& producer, const FormulaCost& around) {
    const FormulaCost cost = cost_of(producer.values.front());
    if (cost.parts + around.parts > kLargestFormula)
      return false;
    if (cost.operations == 0 && cost.loads <= 1)  // a copy, or a broadcast constant
      return true;
    const loops::Buffer& result = producer.results.front();
    const BufferId buffer = buffers_.id_of(result.name);
    if (read_often_.contains(buffer))  // so it is stored anyway
      return false;
    const auto readers = static_cast<double>(reads_[buffer]);
    const double times = readers + (kept_.contains(buffer) ? 1 : 0);  // that it would be computed
    const auto bytes = static_cast<double>(info(result.dtype).bytes);
    const double read = bytes_read(producer, false), summed = bytes_read(producer, true);
    const double kept = nanoseconds(read - summed + bytes + readers * bytes, cost, 1);
    const double inlined = nanoseconds(times * read + summed + (times - readers) * bytes, cost, times);
    return inlined <= kept;
  }

  // Loads per element; what a whole row shares, such as its mean, stays in a register. With `sums`, only of
  // sums with no other reader: where the stage stays, it is their epilogue and reads them from registers.
  double bytes_read(const Definition& definition, bool sums) {
    int64_t bytes = 0;
    loops::for_each_load(definition.values.front(), [&](const Scalar& load) {
      if (!definition.axes.empty() && !mentions(load.operands(), definition.axes.back().variable))
        return;
      const BufferId buffer = loaded(load);
      const auto maker = makers_.find(buffer);
      if (!sums || (maker != makers_.end() && nodes_[maker->second].stage->definition.reduces() &&
                    reads_[buffer] == 1 && !kept_.contains(buffer)))
        bytes += info(load.dtype()).bytes;
    });
    return static_cast<double>(bytes);
  }

  // A stored value is read from a cache at best, so recomputation must pay against that.
  double nanoseconds(double bytes, const FormulaCost& cost, double times) const {
    return bytes / rates_.bytes_from_cache + times * static_cast<double>(cost.operations) / rates_.operations;
  }

  std::vector<KernelNode>& nodes_;
  const BufferTable& buffers_;
  const std::set<BufferId> kept_;
  Rates rates_;
  const bool stores_halves_;
  std::map<BufferId, size_t> makers_;
  std::map<BufferId, int64_t> reads_;
  std::set<BufferId> read_often_;  // element by element, repeatedly
};

}  // namespace

void inline_stages(KernelGraph& graph, const Target& target, NumericsBudget numerics) {
  if (target.gpu)
    index_constants(graph);
  Inliner(graph, target).run();
  const std::vector<FusedAttention> attention =
      find_fused_attention(graph.nodes, graph.buffers, graph.kept(), target, numerics).fused;
  Inliner(graph, target).run_on(attention, target.gpu.has_value());
}

}  // namespace tenon::fusion
