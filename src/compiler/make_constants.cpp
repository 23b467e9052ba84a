#include "compiler/make_constants.h"

#include <algorithm>

#include "base/error.h"
#include "base/run_all.h"
#include "compiler/arrange_weights.h"
#include "ops/data.h"
#include "schedule/winograd.h"
#include "tensor/release_literal.h"

namespace tenon {
namespace {

constexpr uint64_t kLargestCopied = 64 << 10;  // in bytes

const Literal& literal_behind(const LoweredGraph& lowered, const std::string& buffer) {
  const Literal* literal = literal_of(lowered.values.at(buffer));
  CHECK(literal != nullptr, "{} is no constant", buffer);
  return *literal;
}

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

}  // namespace

void make_constants(std::vector<Slot>& slots, const std::vector<size_t>& constants,
                    const LoweredGraph& lowered, const Target& target) {
  run_all(constants.size(), target.cores, [&](size_t i) {
    Slot& slot = slots[constants[i]];
    const auto transformed = lowered.transformed.find(slot.name);
    const auto order = lowered.orders.find(slot.name);
    const Literal& literal = literal_behind(
        lowered, transformed == lowered.transformed.end() ? slot.name : transformed->second.weights);
    if (transformed != lowered.transformed.end())
      slot.constant = winograd_weights(literal.tensor(), transformed->second.tile, target);
    else if (order != lowered.orders.end())
      slot.constant = reordered(literal.tensor(), order->second);
    else
      slot.constant = as_it_is(literal);
    release(literal);
  });
}

}  // namespace tenon
