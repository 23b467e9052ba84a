// npy_format.h — the .npy format as npy.cpp and npz.cpp share it: a header, then the items.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// No header we accept is longer: NumPy itself refuses those over 10,000 bytes.
inline constexpr uint64_t largest_npy_header = 65536;

enum class NpyText : uint8_t { None, Bytes, CodePoints };

struct NpyHeader {
  DType dtype = DType::F32;
  NpyText text = NpyText::None;  // how strings are stored; their items are padded with zeros
  uint64_t item_size = 0;
  bool big_endian = false;
  bool fortran_order = false;
  Extents extents = {};
  uint64_t data_offset = 0, data_size = 0;  // of the items, in the file
};

// `bytes` may end after the header.
NpyHeader parse_npy_header(std::span<const std::byte> bytes);
std::string format_npy_header(const NpyHeader& header);

// A file of another size than its header says is the user's fault.
void check_npy_size(const NpyHeader& header, uint64_t file_size);

// `items` has just the header's data size. A view of them where they are elements as they stand and `owner`
// is given.
Tensor read_npy_items(const NpyHeader& header, std::span<const std::byte> items,
                      std::shared_ptr<const void> owner);

// A file as its two parts, so that writing one need not copy the elements.
struct NpyImage {
  std::string header;
  Tensor items;  // its bytes are those of the file
};
NpyImage make_npy_image(const Tensor& t);

}  // namespace tenon
