// block_type.h — the types of tensors in GGUF files: plain floats, or blocks of small integers with scales.
//
// The value of an element of a block is, in f32:
//
//   q · s        Q4_0, Q5_0, Q8_0, Q6_K
//   q · s + m    Q4_1, Q5_1
//   q · s - m    Q4_K, Q5_K
//
// In the types whose names end in K, one block holds several smaller blocks, whose scales s and minima m are
// small integers with scales of their own: s = s6 · d and m = m6 · dmin.
#pragma once

#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "tensor/literal.h"

namespace tenon::gguf {

// Integers or f16 that each block holds as many of.
struct Field {
  DType dtype = DType::U8;
  int64_t per_block = 0;                                              // 0 where the type has no such field
  void (*unpack)(const uint8_t* block, uint8_t* elements) = nullptr;  // one to a byte, but f16
};

struct BlockType {
  uint32_t id;
  std::string_view name;
  int64_t elements, bytes;          // of a block
  std::optional<DType> plain = {};  // what its elements are where it is no block of integers
  Field quants = {}, scales = {}, minima = {};
  Field scales_of_scales = {}, scales_of_minima = {};
};

// A number that stands for a type that is not read, or for none, is an error that names what it stands for.
const BlockType& find_block_type(uint32_t id);

// One field of all blocks of a tensor, `extents` in all, unpacked from the file whenever it is asked for.
// `bytes` are whole blocks of the file.
Literal field_of_blocks(const BlockType& type, const Field& field, Extents extents,
                        const std::shared_ptr<const MappedFile>& file, std::span<const std::byte> bytes);

}  // namespace tenon::gguf
