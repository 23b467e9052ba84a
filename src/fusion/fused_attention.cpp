#include "fusion/fused_attention.h"

#include <algorithm>

#include "fusion/attention_tile.h"
#include "loops/contraction.h"

namespace tenon::fusion {

using loops::Axis;
using loops::Definition;
using loops::mentions;
using loops::Scalar;
using lowering::BufferId;
using lowering::BufferTable;
using lowering::KernelNode;

namespace {

bool is_product(const Definition& definition) {
  return match_contraction(definition) && !definition.axes.empty() &&
         factors_of(definition, definition.axes.back()).has_value();
}

// The row-wise stages after one product.
class Finder {
 public:
  Finder(std::span<const KernelNode> nodes, const BufferTable& buffers,
         const std::map<BufferId, std::vector<size_t>>& readers, const std::set<BufferId>& kept, size_t first)
      : nodes_(nodes),
        buffers_(buffers),
        readers_(readers),
        kept_(kept),
        first_(nodes[first].stage->definition) {
    members_.insert(first);
  }

  // Nothing where there is no second product, or others need what is done in between.
  std::optional<FusedAttention> run() {
    std::set<size_t> coming;  // readers of what members produce, in order
    const auto add_readers = [&](size_t node) {
      for (BufferId buffer : nodes_[node].writes) {
        if (kept_.contains(buffer) || !readers_.contains(buffer))
          return false;
        coming.insert(readers_.at(buffer).begin(), readers_.at(buffer).end());
      }
      return !nodes_[node].stays;
    };
    if (!add_readers(*members_.begin()))
      return std::nullopt;
    bool reduces = false;
    while (!coming.empty()) {
      const size_t node = coming.extract(coming.begin()).value();
      if (!nodes_[node].stage || nodes_[node].stage->packed_b)
        return std::nullopt;
      const Definition& definition = nodes_[node].stage->definition;
      if (coming.empty() && reduces && is_second_product(definition)) {
        FusedAttention attention{.nodes = {members_.begin(), members_.end()},
                                 .rows = static_cast<int64_t>(rows())};
        attention.nodes.push_back(node);
        return attention;
      }
      members_.insert(node);
      if (!is_done_by_row(definition) || !add_readers(node))
        return std::nullopt;
      reduces |= definition.reduces();
    }
    return std::nullopt;
  }

 private:
  size_t rows() const { return first_.axes.size() - 1; }
  const Dim& row_length() const { return first_.axes.back().size; }

  bool shares_rows(const Definition& definition) const {
    if (definition.axes.size() < rows())
      return false;
    for (size_t i = 0; i < rows(); ++i)
      if (definition.axes[i].size != first_.axes[i].size)
        return false;
    return true;
  }

  // The axis of a stage that runs along the rows; null where there is none.
  const Axis* along_rows(const Definition& definition) const {
    if (definition.reduces())
      return definition.reduced.size() == 1 && definition.reduced.front().size == row_length()
                 ? &definition.reduced.front()
                 : nullptr;
    return definition.axes.size() == rows() + 1 && definition.axes.back().size == row_length()
               ? &definition.axes.back()
               : nullptr;
  }

  bool is_done_by_row(const Definition& definition) const {
    const bool whole = definition.axes.size() == rows();
    return definition.results.size() == 1 && shares_rows(definition) &&
           (definition.reduces() ? whole && along_rows(definition) != nullptr
                                 : whole || along_rows(definition) != nullptr) &&
           reads_own_rows(definition, definition.values.front());
  }

  bool is_second_product(const Definition& definition) const {
    if (!is_product(definition) || !shares_rows(definition) || definition.axes.size() <= rows() ||
        along_rows(definition) == nullptr)
      return false;
    const Factors factors = *factors_of(definition, definition.axes.back());
    for (size_t i = rows(); i < definition.axes.size(); ++i)
      if (mentions(factors.across, definition.axes[i].variable))
        return false;
    const std::vector<const Definition*> rows_read = makers_of(factors.across);
    return makers_of(factors.along).empty() && rows_read.size() == 1 && !rows_read.front()->reduces() &&
           along_rows(*rows_read.front()) != nullptr && reads_own_rows(definition, factors.across);
  }

  const Definition* maker_of(const std::string& name) const {
    const BufferId buffer = buffers_.id_of(name);
    for (size_t node : members_)
      if (nodes_[node].writes.contains(buffer))
        return &nodes_[node].stage->definition;
    return nullptr;
  }

  // For each load of a member's result.
  std::vector<const Definition*> makers_of(const Scalar& value) const {
    std::vector<const Definition*> makers;
    loops::for_each_load(value, [&](const Scalar& load) {
      if (const Definition* maker = maker_of(load.name()))
        makers.push_back(maker);
    });
    return makers;
  }

  // Whether members are read at the same row and column.
  bool reads_own_rows(const Definition& definition, const Scalar& value) const {
    const Axis* const along = along_rows(definition);
    bool own = true;
    loops::for_each_load(value, [&](const Scalar& load) {
      const Definition* made = maker_of(load.name());
      if (made == nullptr)
        return;
      for (size_t i = 0; i < made->at.size(); ++i) {
        const std::optional<size_t> axis = loops::axis_of(made->axes, made->at[i]);
        const Scalar& index = load.operands()[i];
        if (!axis) {  // a number; or a padded axis, which scores never have
          own = own && made->at[i].index().is_constant() && index == made->at[i];
          continue;
        }
        own = own && (*axis < rows() ? loops::axis_of(definition.axes, index) == axis
                                     : along != nullptr && loops::axis_of({*along}, index).has_value());
      }
    });
    return own;
  }

  std::span<const KernelNode> nodes_;
  const BufferTable& buffers_;
  const std::map<BufferId, std::vector<size_t>>& readers_;
  const std::set<BufferId>& kept_;
  const Definition& first_;
  std::set<size_t> members_;
};

Dim product(const std::vector<Axis>& axes) {
  Dim size = 1;
  for (const Axis& axis : axes)
    size = size * axis.size;
  return size;
}

// Whether several rows share keys and values, so that blocks of rows pay.
bool shares_columns(const Definition& product) {
  const Factors factors = *factors_of(product, product.axes.back());
  return std::any_of(product.axes.begin(), product.axes.end(), [&](const Axis& axis) {
    return mentions(factors.across, axis.variable) && !mentions(factors.along, axis.variable);
  });
}

// Whether fusing is faster. Each thread packs the keys that the rows of a block share, which the product by
// itself does once; where few blocks share them, that may take longer than storing and reloading the rows.
bool pays(std::span<const KernelNode> nodes, const FusedAttention& attention, const Target& target) {
  constexpr int64_t kRowsTogether = 8, kMovesPerRow = 4;  // written and read, before and after the reductions
  constexpr double kPackingPerMove = 10;                  // strided reads take longer
  const Definition &first = nodes[attention.nodes.front()].stage->definition,
                   &second = nodes[attention.nodes.back()].stage->definition;
  const std::vector<Axis> rows(first.axes.begin(), first.axes.end() - 1);
  const std::optional<size_t> block = find_block_axis(first, second);
  if (!block)
    return product(rows).constant().value_or(target.cores) >= target.cores && !shares_columns(first) &&
           !shares_columns(second);
  std::vector<Axis> others = rows;
  others.erase(others.begin() + static_cast<int64_t>(*block));
  const Scalar shared = factors_of(first, first.axes.back())->along;
  const int64_t iterations = product(others).constant().value_or(target.cores);
  if (iterations * ceil_div(rows[*block].size, kRowsTogether).constant().value_or(target.cores) <
      target.cores)
    return false;
  if (iterations >= target.cores && std::any_of(others.begin(), others.end(), [&](const Axis& axis) {
        return mentions(shared, axis.variable);
      }))
    return true;
  const std::optional<int64_t> moved = rows[*block].size.constant(),
                               packed = product(first.reduced).constant();
  const double times =
      static_cast<double>(std::max<int64_t>(target.cores / std::max<int64_t>(iterations, 1), 1));
  return moved && packed &&
         static_cast<double>(*moved * kMovesPerRow) >= times * kPackingPerMove * static_cast<double>(*packed);
}

// Why three kernels are better, or all there can be; empty where one is.
std::string obstacle_on_gpu(std::span<const KernelNode> nodes, const FusedAttention& attention,
                            const Gpu& gpu, NumericsBudget numerics) {
  if (numerics == NumericsBudget::Strict)
    return "online softmax reassociates: numerics are strict";
  std::vector<Definition> definitions;
  for (const size_t node : attention.nodes)
    definitions.push_back(nodes[node].stage->definition);
  const std::optional<OnlineAttention> online =
      match_online_attention(definitions, static_cast<size_t>(attention.rows));
  if (!online)
    return "it is no softmax of rows that share keys and values, of at most 256 elements each";
  const std::optional<RatedAttentionTile> tile = choose_attention_tile(*online, gpu);
  if (!tile)
    return "a thread block has no room for its tiles";
  const double apart = nanoseconds_apart(*online, gpu);
  if (tile->nanoseconds > apart)
    return fmt::format("by estimate it takes {:.1f} µs as one kernel, and {:.1f} µs as three",
                       tile->nanoseconds * 1e-3, apart * 1e-3);
  return "";
}

}  // namespace

std::optional<Factors> factors_of(const Definition& product, const Axis& axis) {
  const std::optional<loops::Product> factors = loops::match_product(product.values.front());
  if (!factors || !factors->multiplies())
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Scalar &along = factors->operand(i), &across = factors->operand(1 - i);
    if (mentions(along, axis.variable) && !mentions(across, axis.variable))
      return Factors{along, across};
  }
  return std::nullopt;
}

std::optional<size_t> find_block_axis(const Definition& first, const Definition& second) {
  const Scalar one = factors_of(first, first.axes.back())->along,
               other = factors_of(second, second.axes.back())->along;
  for (size_t i = first.axes.size() - 1; i-- > 0;)
    if (!mentions(one, first.axes[i].variable) && !mentions(other, second.axes[i].variable))
      return i;
  return std::nullopt;
}

FoundAttention find_fused_attention(std::span<const KernelNode> nodes, const BufferTable& buffers,
                                    const std::set<BufferId>& kept, const Target& target,
                                    NumericsBudget numerics) {
  std::map<BufferId, std::vector<size_t>> readers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::set<BufferId>* needed : {&nodes[i].reads, &nodes[i].after})
      for (BufferId buffer : *needed)
        readers[buffer].push_back(i);
  FoundAttention found;
  std::set<size_t> taken;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].stage || nodes[i].stage->packed_b || !is_product(nodes[i].stage->definition) ||
        taken.contains(i))
      continue;
    std::optional<FusedAttention> attention = Finder(nodes, buffers, readers, kept, i).run();
    if (!attention || std::any_of(attention->nodes.begin(), attention->nodes.end(),
                                  [&](size_t node) { return taken.contains(node); }))
      continue;
    if (target.gpu)
      attention->obstacle = obstacle_on_gpu(nodes, *attention, *target.gpu, numerics);
    else if (!pays(nodes, *attention, target))
      continue;
    if (!attention->obstacle.empty()) {
      found.declined.push_back(std::move(*attention));
      continue;
    }
    taken.insert(attention->nodes.begin(), attention->nodes.end());
    found.fused.push_back(std::move(*attention));
  }
  return found;
}

}  // namespace tenon::fusion
