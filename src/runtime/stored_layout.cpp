#include "runtime/stored_layout.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/cpu/pack_constant.h"
#include "schedule/cpu/winograd_weights.h"
#include "target/resources.h"
#include "tensor/release_literal.h"

namespace tenon::runtime {
namespace {

using lowering::PackedBLayout;
using lowering::PackedWeights;
using lowering::PermutedLayout;
using lowering::PlainLayout;

constexpr int64_t kLargestExtent = int64_t{1} << 48;
constexpr int64_t kLargestElement = 8;  // in bytes

bool is_permutation(const std::vector<size_t>& order, size_t rank) {
  std::vector<size_t> sorted = order;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != i)
      return false;
  return rank > 0 && sorted.size() == rank;
}

bool fits(const PackedBLayout& order, const Extents& extents) {
  return is_permutation(order.order, extents.size()) && order.reduced < order.order.size() &&
         order.groups > 0 && order.lanes > 0 && extents[order.lane_dim()] % order.groups == 0 &&
         order.lanes <= extents[order.lane_dim()] / order.groups;
}

std::vector<size_t> inverse(const std::vector<size_t>& order) {
  std::vector<size_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[order[i]] = i;
  return inverse;
}

// Of the words, where it is packed into such, and of what its windows become where they are transformed.
Extents packed_extents(const StoredConstant& stored) {
  if (const std::optional<int64_t>& tile = stored.packing.winograd_tile)
    return schedule::transformed_extents(stored.extents, *tile);
  Extents extents = stored.extents;
  if (stored.packing.vnni_dim)
    extents[*stored.packing.vnni_dim] /= info(DType::I32).bytes / info(stored.dtype).bytes;
  return extents;
}

bool has_whole_words(const StoredConstant& stored) {
  const int64_t bytes = info(stored.dtype).bytes;
  return (bytes == 1 || bytes == 2) && *stored.packing.vnni_dim < stored.extents.size() &&
         stored.extents[*stored.packing.vnni_dim] % (info(DType::I32).bytes / bytes) == 0;
}

// Of filters that are transformed.
int64_t lanes_of(const Packing& packing) { return std::get<PackedWeights>(packing.layout).order.lanes; }

// Whether windows that are transformed are in panels as Winograd convolution reads them.
bool has_windows(const StoredConstant& stored) {
  const Extents& extents = stored.extents;
  const auto* packed = std::get_if<PackedWeights>(&stored.packing.layout);
  return schedule::has_winograd_tiles(*stored.packing.winograd_tile) && stored.dtype == DType::F32 &&
         !stored.packing.vnni_dim && extents.size() >= 4 && extents[extents.size() - 2] == 3 &&
         extents.back() == 3 && element_count(extents) > 0 && packed != nullptr && !packed->split &&
         packed->order.lanes > 0 && extents.front() % packed->order.lanes == 0 &&
         packed->order == schedule::winograd_panels(packed->order.lanes);
}

// As it was before it was laid out.
Tensor in_order(const Tensor& elements, const StoredConstant& stored, int threads) {
  const lowering::Layout& layout = stored.packing.layout;
  if (const auto* permuted = std::get_if<PermutedLayout>(&layout))
    return schedule::reordered(elements, inverse(permuted->order));
  const auto* packed = std::get_if<PackedWeights>(&layout);
  if (packed == nullptr)
    return elements;
  const Extents extents = packed_extents(stored);
  const Tensor panels =
      packed->split
          ? schedule::joined_bf16x3(elements, schedule::packed_b_extents(extents, packed->order), threads)
          : elements;
  return schedule::unpacked_b(panels, extents, packed->order, threads);
}

Tensor laid_out(const Tensor& whole, const lowering::Layout& layout, int threads) {
  if (const auto* packed = std::get_if<PackedWeights>(&layout)) {
    Tensor panels = schedule::packed_b({whole}, 0, packed->order, threads);
    return packed->split ? schedule::split_into_bf16x3(panels, threads) : panels;
  }
  if (const auto* permuted = std::get_if<PermutedLayout>(&layout))
    return schedule::reordered(whole, permuted->order);
  return whole;
}

}  // namespace

std::optional<TensorShape> packed_shape(const StoredConstant& stored) {
  const int64_t bytes = info(stored.dtype).bytes;
  const bool is_counted = std::ranges::all_of(
      stored.extents, [](int64_t extent) { return extent > 0 && extent <= kLargestExtent; });
  if (!is_counted || bytes == 0 || bytes > kLargestElement ||
      (stored.packing.vnni_dim && !has_whole_words(stored)) ||
      (stored.packing.winograd_tile && !has_windows(stored)))
    return std::nullopt;
  const Extents extents = packed_extents(stored);
  TensorShape shape{stored.packing.vnni_dim ? DType::I32 : stored.dtype, {}};
  const lowering::Layout& layout = stored.packing.layout;
  if (std::holds_alternative<PlainLayout>(layout)) {
    shape.extents = extents;
  } else if (const auto* permuted = std::get_if<PermutedLayout>(&layout)) {
    if (!is_permutation(permuted->order, extents.size()))
      return std::nullopt;
    for (size_t dim : permuted->order)
      shape.extents.push_back(extents[dim]);
  } else if (const auto* packed = std::get_if<PackedWeights>(&layout)) {
    if (!fits(packed->order, extents))
      return std::nullopt;
    shape.extents = schedule::packed_b_extents(extents, packed->order);
    if (packed->split) {
      const bool is_whole = shape.dtype == DType::F32 && packed->order.reduced == 1 &&
                            shape.extents[shape.extents.size() - 2] % 2 == 0;
      if (!is_whole)
        return std::nullopt;
      shape = {DType::I32, schedule::bf16x3_extents(shape.extents)};
    }
  } else {
    return std::nullopt;
  }
  return shape;
}

bool needs_corrections(const StoredConstant& stored, const Packing& packing) {
  return stored.packing.winograd_tile && stored.packing.winograd_tile != packing.winograd_tile;
}

Tensor unpacked(const Tensor& elements, const StoredConstant& stored, Corrections corrections, int threads) {
  if (const std::optional<int64_t>& tile = stored.packing.winograd_tile) {
    Tensor windows = schedule::restored_windows(elements, stored.extents, *tile, threads);
    schedule::correct_windows(windows, corrections);
    return windows;
  }
  const Tensor whole = in_order(elements, stored, threads);
  const std::optional<size_t>& dim = stored.packing.vnni_dim;
  return dim ? schedule::vnni_unpacked(whole, *dim, stored.dtype, threads) : whole;
}

Tensor repacked(const Tensor& elements, const StoredConstant& stored, Corrections corrections,
                const Packing& packing, int threads) {
  if (packing.winograd_tile && packing.winograd_tile == stored.packing.winograd_tile)
    return laid_out(in_order(elements, stored, threads), packing.layout, threads);
  Tensor whole = unpacked(elements, stored, corrections, threads);
  if (packing.vnni_dim)
    whole = schedule::vnni_packed(whole, *packing.vnni_dim, threads);
  if (packing.winograd_tile)
    return schedule::transformed_windows(whole, *packing.winograd_tile, lanes_of(packing), threads);
  return laid_out(whole, packing.layout, threads);
}

std::optional<std::vector<std::byte>> find_corrections(const Tensor& elements, const StoredConstant& stored,
                                                       const Tensor& constant, int threads) {
  return schedule::window_corrections(
      schedule::restored_windows(elements, stored.extents, *stored.packing.winograd_tile, threads), constant);
}

Tensor RepackedConstant::tensor() const {
  constexpr size_t kLargeBytes = 1 << 20;  // that several threads work on
  const Tensor elements = literal_.tensor();
  const int threads = elements.bytes().size() < kLargeBytes ? 1 : available_cores();
  const Tensor corrections = corrections_ ? corrections_->tensor() : Tensor();
  Tensor made = repacked(elements, stored_, corrections.bytes(), packing_, threads);
  release(literal_);
  return made;
}

}  // namespace tenon::runtime
