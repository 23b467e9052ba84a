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

  friend bool operator==(const Packing&, const Packing&) = default;
};

struct StoredConstant {
  DType dtype = DType::F32;  // before it is packed
  Extents extents = {};
  Packing packing = {};
};

struct TensorShape {
  DType dtype;
  Extents extents;

  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};
// Of the elements as they are stored; nothing where no constant of these extents is packed so.
std::optional<TensorShape> packed_shape(const StoredConstant& stored);

// The constant itself, and its elements packed anew.
Tensor unpacked(const Tensor& elements, const StoredConstant& stored, int threads);
Tensor repacked(const Tensor& elements, const StoredConstant& stored, const Packing& packing, int threads);

// Elements in one layout of those in another.
class RepackedConstant : public DeferredElements {
 public:
  RepackedConstant(Literal literal, StoredConstant stored, Packing packing)
      : literal_(std::move(literal)), stored_(std::move(stored)), packing_(std::move(packing)) {}

  Tensor tensor() const override;

 private:
  Literal literal_;
  StoredConstant stored_;
  Packing packing_;
};

}  // namespace tenon::runtime
