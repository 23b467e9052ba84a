#include "runtime/stored_layout.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/cpu/pack_constant.h"
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

// Of the words, where it is packed into such.
Extents packed_extents(const StoredConstant& stored) {
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

}  // namespace

std::optional<TensorShape> packed_shape(const StoredConstant& stored) {
  const int64_t bytes = info(stored.dtype).bytes;
  const bool is_counted = std::ranges::all_of(
      stored.extents, [](int64_t extent) { return extent > 0 && extent <= kLargestExtent; });
  if (!is_counted || bytes == 0 || bytes > kLargestElement ||
      (stored.packing.vnni_dim && !has_whole_words(stored)))
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

Tensor unpacked(const Tensor& elements, const StoredConstant& stored, int threads) {
  Tensor whole = elements;
  const lowering::Layout& layout = stored.packing.layout;
  if (const auto* packed = std::get_if<PackedWeights>(&layout)) {
    const Extents extents = packed_extents(stored);
    if (packed->split)
      whole = schedule::joined_bf16x3(elements, schedule::packed_b_extents(extents, packed->order), threads);
    whole = schedule::unpacked_b(whole, extents, packed->order, threads);
  }
  if (const auto* permuted = std::get_if<PermutedLayout>(&layout))
    whole = schedule::reordered(elements, inverse(permuted->order));
  const std::optional<size_t>& vnni_dim = stored.packing.vnni_dim;
  return vnni_dim ? schedule::vnni_unpacked(whole, *vnni_dim, stored.dtype, threads) : whole;
}

Tensor repacked(const Tensor& elements, const StoredConstant& stored, const Packing& packing, int threads) {
  Tensor whole = unpacked(elements, stored, threads);
  if (packing.vnni_dim)
    whole = schedule::vnni_packed(whole, *packing.vnni_dim, threads);
  if (const auto* packed = std::get_if<PackedWeights>(&packing.layout)) {
    Tensor panels = schedule::packed_b({whole}, 0, packed->order, threads);
    return packed->split ? schedule::split_into_bf16x3(panels, threads) : panels;
  }
  if (const auto* permuted = std::get_if<PermutedLayout>(&packing.layout))
    return schedule::reordered(whole, permuted->order);
  return whole;
}

Tensor RepackedConstant::tensor() const {
  constexpr size_t kLargeBytes = 1 << 20;  // that several threads work on
  const Tensor elements = literal_.tensor();
  const int threads = elements.bytes().size() < kLargeBytes ? 1 : available_cores();
  Tensor made = repacked(elements, stored_, packing_, threads);
  release(literal_);
  return made;
}

}  // namespace tenon::runtime
