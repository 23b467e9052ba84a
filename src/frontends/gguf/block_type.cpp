#include "frontends/gguf/block_type.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/pages.h"

namespace tenon::gguf {
namespace {

constexpr int kShort = 32, kLong = 256;  // elements of a block

template <int offset>
void unpack_f16(const uint8_t* block, uint8_t* element) {
  std::memcpy(element, block + offset, 2);
}

// The low halves of 16 bytes, then the high ones.
template <int offset>
void unpack_u4(const uint8_t* block, uint8_t* elements) {
  for (int i = 0; i < 16; ++i) {
    elements[i] = block[offset + i] & 15;
    elements[16 + i] = block[offset + i] >> 4;
  }
}

template <int offset>
void unpack_i4(const uint8_t* block, uint8_t* elements) {
  unpack_u4<offset>(block, elements);
  for (int i = 0; i < kShort; ++i)
    elements[i] = static_cast<uint8_t>(elements[i] - 8);
}

// The fifth bits of all elements stand in the 4 bytes before the others.
template <int offset>
void unpack_u5(const uint8_t* block, uint8_t* elements) {
  unpack_u4<offset + 4>(block, elements);
  for (int i = 0; i < kShort; ++i)
    elements[i] |= static_cast<uint8_t>((block[offset + i / 8] >> (i % 8) & 1) << 4);
}

template <int offset>
void unpack_i5(const uint8_t* block, uint8_t* elements) {
  unpack_u5<offset>(block, elements);
  for (int i = 0; i < kShort; ++i)
    elements[i] = static_cast<uint8_t>(elements[i] - 16);
}

template <int offset>
void unpack_i8(const uint8_t* block, uint8_t* elements) {
  std::memcpy(elements, block + offset, kShort);
}

// 64 elements after 64: the low halves of 32 bytes, then the high ones.
template <int offset>
void unpack_long_u4(const uint8_t* block, uint8_t* elements) {
  for (int group = 0; group < kLong / 64; ++group)
    for (int i = 0; i < 32; ++i) {
      const uint8_t pair = block[offset + group * 32 + i];
      elements[group * 64 + i] = pair & 15;
      elements[group * 64 + 32 + i] = pair >> 4;
    }
}

// Bit g of byte i is the fifth bit of element i of the 32 in group g.
template <int bits, int offset>
void unpack_long_u5(const uint8_t* block, uint8_t* elements) {
  unpack_long_u4<offset>(block, elements);
  for (int i = 0; i < kLong; ++i)
    elements[i] |= static_cast<uint8_t>((block[bits + i % 32] >> (i / 32) & 1) << 4);
}

// 128 elements after 128: four low bits in the halves of 64 bytes, two high ones in the quarters of 32.
void unpack_long_i6(const uint8_t* block, uint8_t* elements) {
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 128; ++i) {
      const int low = block[half * 64 + i % 64] >> (i / 64 * 4) & 15;
      const int high = block[128 + half * 32 + i % 32] >> (i / 32 * 2) & 3;
      elements[half * 128 + i] = static_cast<uint8_t>((low | high << 4) - 32);
    }
}

void unpack_scales_of_i6(const uint8_t* block, uint8_t* elements) { std::memcpy(elements, block + 192, 16); }

// Eight scales and eight minima of 6 bits in 12 bytes: six bits of the first four of each, above which two
// bits of the last four are, whose other four stand in the last four bytes, those of a minimum above those of
// a scale.
void unpack_scales_u6(const uint8_t* block, uint8_t* elements) {
  const uint8_t* packed = block + 4;
  for (int i = 0; i < 4; ++i) {
    elements[i] = packed[i] & 63;
    elements[4 + i] = static_cast<uint8_t>((packed[8 + i] & 15) | packed[i] >> 6 << 4);
  }
}
void unpack_minima_u6(const uint8_t* block, uint8_t* elements) {
  const uint8_t* packed = block + 4;
  for (int i = 0; i < 4; ++i) {
    elements[i] = packed[4 + i] & 63;
    elements[4 + i] = static_cast<uint8_t>(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
  }
}

template <int offset>
constexpr Field kF16 = {DType::F16, 1, unpack_f16<offset>};
constexpr Field kScales6 = {DType::U8, 8, unpack_scales_u6}, kMinima6 = {DType::U8, 8, unpack_minima_u6};

constexpr BlockType kTypes[] = {
    {0, "F32", 1, 4, DType::F32},
    {1, "F16", 1, 2, DType::F16},
    {30, "BF16", 1, 2, DType::BF16},
    {2, "Q4_0", kShort, 18, {}, {DType::I4, kShort, unpack_i4<2>}, kF16<0>},
    {3, "Q4_1", kShort, 20, {}, {DType::U4, kShort, unpack_u4<4>}, kF16<0>, kF16<2>},
    {6, "Q5_0", kShort, 22, {}, {DType::I8, kShort, unpack_i5<2>}, kF16<0>},
    {7, "Q5_1", kShort, 24, {}, {DType::U8, kShort, unpack_u5<4>}, kF16<0>, kF16<2>},
    {8, "Q8_0", kShort, 34, {}, {DType::I8, kShort, unpack_i8<2>}, kF16<0>},
    {12,
     "Q4_K",
     kLong,
     144,
     {},
     {DType::U4, kLong, unpack_long_u4<16>},
     kScales6,
     kMinima6,
     kF16<0>,
     kF16<2>},
    {13,
     "Q5_K",
     kLong,
     176,
     {},
     {DType::U8, kLong, unpack_long_u5<16, 48>},
     kScales6,
     kMinima6,
     kF16<0>,
     kF16<2>},
    {14,
     "Q6_K",
     kLong,
     210,
     {},
     {DType::I8, kLong, unpack_long_i6},
     {DType::I8, 16, unpack_scales_of_i6},
     {},
     kF16<208>},
};

struct OtherType {
  uint32_t id;
  std::string_view name;
};
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"},     {10, "Q2_K"},  {11, "Q3_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"}, {39, "MXFP4"},
};

class FieldOfBlocks : public DeferredElements {
 public:
  FieldOfBlocks(const BlockType& type, const Field& field, Extents extents,
                std::shared_ptr<const MappedFile> file, std::span<const std::byte> bytes)
      : type_(type), field_(field), extents_(std::move(extents)), file_(std::move(file)), bytes_(bytes) {}

  Tensor tensor() const override {
    Tensor elements(field_.dtype, extents_);
    auto* to = reinterpret_cast<uint8_t*>(elements.mutable_bytes().data());
    const auto* block = reinterpret_cast<const uint8_t*>(bytes_.data());
    const int64_t step = field_.per_block * info(field_.dtype).bytes;
    for (const auto* end = block + bytes_.size(); block != end; block += type_.bytes, to += step)
      field_.unpack(block, to);
    if (file_->is_on_disk())
      release_pages(bytes_);
    return elements;
  }

 private:
  const BlockType& type_;
  const Field& field_;
  Extents extents_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
};

}  // namespace

const BlockType& find_block_type(uint32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &BlockType::id);
  if (found != std::end(kTypes))
    return *found;
  std::vector<std::string_view> names;
  for (const BlockType& type : kTypes)
    names.push_back(type.name);
  const auto* const other = std::ranges::find(kOtherTypes, id, &OtherType::id);
  if (other == std::end(kOtherTypes))
    throw user_error("unknown tensor type {}", id);
  throw unsupported("type {}\n  hint: those that are read are {}", other->name, fmt::join(names, " "));
}

Literal field_of_blocks(const BlockType& type, const Field& field, Extents extents,
                        const std::shared_ptr<const MappedFile>& file, std::span<const std::byte> bytes) {
  CHECK(bytes.size() % static_cast<size_t>(type.bytes) == 0 &&
            static_cast<int64_t>(bytes.size()) / type.bytes * field.per_block == element_count(extents),
        "{} bytes of {} for {}", bytes.size(), type.name, describe(field.dtype, extents));
  const auto elements = std::make_shared<const FieldOfBlocks>(type, field, extents, file, bytes);
  return Literal::deferred(field.dtype, std::move(extents), elements);
}

}  // namespace tenon::gguf
