// stored_layout.h — how the elements of a constant lie in a saved program, and how one layout is made of
// another: targets that read a constant in different layouts have it in the file once.
#pragma once

#include <optional>

#include "lowering/kernel_graph.h"
#include "tensor/literal.h"

namespace tenon::runtime {

// What becomes of a constant, as in KernelBuffer.
struct Packing {
  std::optional<size_t> vnni_dim = {};
  lowering::Layout layout = {};
  // Of weights that are transformed for Winograd convolution before they are laid out.
  std::optional<int64_t> winograd_tile = {};

  friend bool operator==(const Packing&, const Packing&) = default;
};

struct StoredConstant {
  DType dtype = DType::F32;  // before it is packed
  Extents extents = {};
  Packing packing = {};
};

// Among the weights.
struct FilePart {
  uint64_t offset = 0, size = 0;
};

// How a saved program has the elements of a constant: in the layout of the kernels that read them; in
// another; or in another where windows are transformed in one of the two.
enum class StoredAs : uint8_t { Itself, Repacked, RepackedWindows };

struct TensorShape {
  DType dtype;
  Extents extents;

  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};
// Of the elements as they are stored; nothing where no constant of these extents is packed so.
std::optional<TensorShape> packed_shape(const StoredConstant& stored);

// What transformed weights lack to be made again of what they became: see winograd_weights.h.
using Corrections = std::span<const std::byte>;
bool needs_corrections(const StoredConstant& stored, const Packing& packing);

// The constant itself, and its elements packed anew.
Tensor unpacked(const Tensor& elements, const StoredConstant& stored, Corrections corrections, int threads);
Tensor repacked(const Tensor& elements, const StoredConstant& stored, Corrections corrections,
                const Packing& packing, int threads);

// Those of elements that are the constant's, transformed; nothing where there are none.
std::optional<std::vector<std::byte>> find_corrections(const Tensor& elements, const StoredConstant& stored,
                                                       const Tensor& constant, int threads);

// Elements in one layout of those in another.
class RepackedConstant : public DeferredElements {
 public:
  RepackedConstant(Literal literal, StoredConstant stored, std::optional<Literal> corrections,
                   Packing packing)
      : literal_(std::move(literal)),
        stored_(std::move(stored)),
        corrections_(std::move(corrections)),
        packing_(std::move(packing)) {}

  Tensor tensor() const override;

 private:
  Literal literal_;
  StoredConstant stored_;
  std::optional<Literal> corrections_;
  Packing packing_;
};

}  // namespace tenon::runtime
