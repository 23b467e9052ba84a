#include "compiler/make_constants.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "base/error.h"
#include "base/run_all.h"
#include "ops/data.h"
#include "passes/target/constant_pieces.h"
#include "schedule/cpu/pack_constant.h"
#include "schedule/cpu/winograd.h"
#include "tensor/release_literal.h"

namespace tenon::compiler {

using lowering::LoweredGraph;
using lowering::PackedBLayout;
using runtime::Slot;
using schedule::empty_packed_b;
using schedule::pack_b_panels;
using schedule::reordered;
using schedule::split_into_bf16x3;
using schedule::winograd_weights;

namespace {

constexpr uint64_t kLargestCopied = 64 << 10;  // in bytes
constexpr int64_t kLargeBytes = 4 << 20;       // of a constant that all threads work on

// Small constants are copied: reading one where it lies in a file would bring megabytes around it along.
Tensor as_it_is(const Literal& literal) {
  Tensor tensor = literal.tensor();
  const auto* slice = std::get_if<Literal::FileSlice>(&literal.form());
  if (slice == nullptr || slice->size > kLargestCopied)
    return tensor;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), copy.mutable_bytes().begin());
  return copy;
}

// Packed into panels. Pieces that are joined along the lanes are packed one by one.
Tensor pack_pieces(const Pieces& pieces, const Extents& extents, const PackedBLayout& order, int threads) {
  std::vector<std::pair<Tensor, int64_t>> parts;  // and the lanes that they begin at
  if (pieces.dim == order.lane_dim()) {
    int64_t first = 0;
    for (const Literal* literal : pieces.literals) {
      parts.emplace_back(literal->tensor(), first);
      first += literal->extents()[pieces.dim];
    }
  } else {
    parts.emplace_back(join(pieces), 0);
  }
  Tensor panels = empty_packed_b(parts.front().first.dtype(), extents, order);
  const int64_t count = panels.extents()[order.order.size() - 1 - order.reduced],
                each = (count + threads - 1) / threads;
  run_all(static_cast<size_t>(threads), threads, [&](size_t i) {
    const int64_t begin = std::min(static_cast<int64_t>(i) * each, count),
                  end = std::min(begin + each, count);
    for (const auto& [part, first] : parts)
      pack_b_panels(panels, extents, order, part, first, begin, end);
  });
  return panels;
}

class ConstantMaker {
 public:
  ConstantMaker(const std::vector<Slot>& slots, const std::vector<size_t>& constants,
                const LoweredGraph& lowered, const Target& target)
      : lowered_(lowered), target_(target) {
    for (size_t slot : constants)
      for (const Node* holder : holders_of(source_of(slots[slot])))
        ++to_make_[holder];
  }

  void make(Slot& slot, int threads) {
    const Value source = source_of(slot);
    const Pieces pieces = *pieces_of(source);
    if (const auto packed = lowered_.packed.find(slot.name); packed != lowered_.packed.end()) {
      slot.constant = pack_pieces(pieces, *source.shape().extents(), packed->second.order, threads);
      if (packed->second.split)
        slot.constant = split_into_bf16x3(slot.constant, threads);
    } else if (const auto of = lowered_.transformed.find(slot.name); of != lowered_.transformed.end())
      slot.constant = winograd_weights(join(pieces), of->second.tile, target_);
    else if (const auto order = lowered_.orders.find(slot.name); order != lowered_.orders.end())
      slot.constant = reordered(join(pieces), order->second);
    else
      slot.constant = pieces.literals.size() == 1 ? as_it_is(*pieces.literals.front()) : join(pieces);
    for (Node* holder : holders_of(source)) {
      release(*literal_of(*holder));
      if (--to_make_.at(holder) == 0)
        holder->give_up_elements();
    }
  }

  // Whether it gives memory back that was taken before.
  bool is_computed(const Slot& slot) const {
    const Pieces pieces = *pieces_of(source_of(slot));
    return std::holds_alternative<Tensor>(pieces.literals.front()->form());
  }

  bool is_large(const Slot& slot) const {
    return lowered_.packed.contains(slot.name) &&
           element_count(*slot.type.as_tensor().shape.extents()) * info(slot.type.as_tensor().dtype).bytes >=
               kLargeBytes;
  }

 private:
  // What a constant is made of, which may be itself.
  Value source_of(const Slot& slot) const {
    if (const auto packed = lowered_.packed.find(slot.name); packed != lowered_.packed.end())
      return lowered_.values.at(packed->second.weights);
    const auto transformed = lowered_.transformed.find(slot.name);
    return lowered_.values.at(transformed == lowered_.transformed.end() ? slot.name
                                                                        : transformed->second.weights);
  }

  const LoweredGraph& lowered_;
  const Target& target_;
  std::map<const Node*, std::atomic<int>> to_make_;  // constants that are made of what these hold
};

}  // namespace

void make_constants(std::vector<Slot>& slots, const std::vector<size_t>& constants,
                    const LoweredGraph& lowered, const Target& target) {
  ConstantMaker maker(slots, constants, lowered, target);
  // Large ones sequentially, so that not all of them are in memory twice; first those that free
  // memory.
  std::vector<size_t> large, others;
  for (size_t slot : constants)
    (maker.is_large(slots[slot]) ? large : others).push_back(slot);
  std::ranges::stable_partition(large, [&](size_t slot) { return maker.is_computed(slots[slot]); });
  for (size_t slot : large)
    maker.make(slots[slot], target.cores);
  run_all(others.size(), target.cores, [&](size_t i) { maker.make(slots[others[i]], 1); });
}

}  // namespace tenon::compiler
