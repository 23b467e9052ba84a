// literal.h — the value of a constant, held lazily: a splat, an iota, a slice of a mapped file, a dense
// tensor, or what computes one.
//
// A graph holds literals, so that a splat of a billion elements costs nothing and weights stay in their file
// until they are needed.
#pragma once

#include <atomic>
#include <variant>

#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace tenon {

// Elements that are computed when they are first asked for, and then kept.
class DeferredElements {
 public:
  virtual ~DeferredElements() = default;
  virtual Tensor tensor() const = 0;
  // Whether they may be others the next time: then no pass computes with them, and none of its programs gives
  // up what they are prepared from.
  virtual bool varies() const { return false; }
};

class Literal {
 public:
  struct Splat {
    Tensor element;  // rank 0
  };
  struct Iota {  // start, start + step, … along the only dimension; integers, wrapping around in their dtype
    int64_t start, step;
  };
  struct FileSlice {  // bytes of a file, in the file's packing: sub-byte types are packed, low bits first
    std::shared_ptr<const MappedFile> file;
    uint64_t offset, size;
  };

  using Deferred = std::shared_ptr<const DeferredElements>;

  struct GivenUp {};  // elements that were in memory, and that nobody may ask for any longer
  using Form = std::variant<Tensor, Splat, Iota, FileSlice, Deferred, GivenUp>;

  Literal(Tensor dense);  // NOLINT: a tensor is a literal
  static Literal splat(Tensor element, Extents extents);
  static Literal iota(DType dtype, int64_t start, int64_t step, int64_t count);
  // A slice outside the file, or of a size that does not fit the extents, is the user's fault. What is not on
  // disk cannot be named by a text or read again, so that a slice of it is dense.
  static Literal file_slice(DType dtype, Extents extents, std::shared_ptr<const MappedFile> file,
                            uint64_t offset, uint64_t size);

  // `elements` must come out with this dtype and these extents.
  static Literal deferred(DType dtype, Extents extents, Deferred elements);

  DType dtype() const { return dtype_; }
  const Extents& extents() const { return extents_; }
  int64_t count() const { return count_; }
  const Form& form() const { return form_; }
  // Whether its elements lie in memory or in a file, or will; a number that is repeated takes neither.
  bool is_stored() const;
  bool is_deferred() const { return std::holds_alternative<Deferred>(form_); }
  bool varies() const {
    const auto* elements = std::get_if<Deferred>(&form_);
    return elements != nullptr && (*elements)->varies();
  }

  // The dense elements. A slice of a byte-sized type is a view into the mapped file, unless the file does not
  // align its elements.
  Tensor tensor() const;

  // Lets go of elements that lie in memory; those of the other forms can still be read.
  void give_up_elements();

  // Of the elements, whatever the form; computed once and remembered. Of elements that vary, which are equal
  // to themselves alone, it says who they are.
  uint64_t content_hash() const;
  // The same dtype, extents and elements. Equal slices of one file are not read.
  friend bool operator==(const Literal& a, const Literal& b);

 private:
  Literal(DType dtype, Extents extents, Form form);

  DType dtype_;
  Extents extents_;
  int64_t count_;
  Form form_;
  std::shared_ptr<std::atomic<uint64_t>> hash_;  // shared by copies; 0 while unknown
};

}  // namespace tenon
