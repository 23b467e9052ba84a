#include "tensor/literal.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/hash.h"
#include "tensor/packing.h"
#include "tensor/release_literal.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// The bits of an integer that count: what two numbers of one dtype differ by is only known modulo its range.
uint64_t low_bits(DType dtype) { return ~uint64_t{0} >> (64 - info(dtype).bits); }

Tensor integer_element(DType dtype, int64_t value) {
  return narrow<int64_t>(dtype, {}, std::span<const int64_t>(&value, 1));
}

// Elements that follow from the first: all the same, or, along the only dimension of an integer tensor, each
// the one before plus a step modulo the range of its dtype. It is found in dense elements too, so that every
// form of the same elements has one description, and a huge splat or iota is compared and hashed without its
// elements.
struct Progression {
  Tensor first;
  uint64_t step;
};

template <class Storage>
std::optional<uint64_t> find_step(std::span<const std::byte> bytes, uint64_t mask, bool may_step) {
  const size_t count = bytes.size() / sizeof(Storage);
  const auto at = [&](size_t i) {  // a slice of a file need not be aligned
    Storage value;
    std::memcpy(&value, bytes.data() + i * sizeof(Storage), sizeof(Storage));
    return value;
  };
  const uint64_t step = count < 2 ? 0 : (uint64_t{at(1)} - uint64_t{at(0)}) & mask;
  if (step != 0 && !may_step)
    return std::nullopt;
  for (size_t i = 1; i < count; ++i)
    if (((uint64_t{at(i)} - uint64_t{at(i - 1)}) & mask) != step)
      return std::nullopt;
  return step;
}

std::optional<uint64_t> find_step(DType dtype, size_t rank, std::span<const std::byte> bytes) {
  const bool may_step = is_integer(dtype) && rank == 1;
  const uint64_t mask = may_step ? low_bits(dtype) : ~uint64_t{0};
  switch (info(dtype).bytes) {
    case 1:
      return find_step<uint8_t>(bytes, mask, may_step);
    case 2:
      return find_step<uint16_t>(bytes, mask, may_step);
    case 4:
      return find_step<uint32_t>(bytes, mask, may_step);
    case 8:
      return find_step<uint64_t>(bytes, mask, may_step);
    default:  // c128: pairs of equal words
      for (size_t i = 16; i < bytes.size(); i += 16)
        if (std::memcmp(bytes.data(), bytes.data() + i, 16) != 0)
          return std::nullopt;
      return 0;
  }
}

std::span<const std::byte> slice_bytes(const Literal::FileSlice& slice) {
  return slice.file->bytes().subspan(slice.offset, slice.size);
}

// Whether the bytes in the file are the elements as we hold them.
bool is_plain(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::Bool)
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
  return info(dtype).bits >= 8;
}

// The elements of a dense tensor or a slice, not always aligned, and what keeps them alive where they were
// unpacked.
struct ElementBytes {
  Tensor unpacked;
  std::span<const std::byte> bytes;
};

ElementBytes element_bytes(const Literal& literal) {
  if (const auto* dense = std::get_if<Tensor>(&literal.form()))
    return {*dense, dense->bytes()};
  if (literal.is_deferred()) {
    const Tensor computed = literal.tensor();
    return {computed, computed.bytes()};
  }
  const std::span<const std::byte> bytes = slice_bytes(std::get<Literal::FileSlice>(literal.form()));
  if (is_plain(literal.dtype(), bytes))
    return {Tensor(), bytes};
  const Tensor unpacked = unpack(literal.dtype(), literal.extents(), bytes);
  return {unpacked, unpacked.bytes()};
}

bool is_generated(const Literal& literal) {
  return std::holds_alternative<Literal::Splat>(literal.form()) ||
         std::holds_alternative<Literal::Iota>(literal.form());
}

// Of a literal that has elements.
std::optional<Progression> find_progression(const Literal& literal) {
  if (const auto* splat = std::get_if<Literal::Splat>(&literal.form()))
    return Progression{splat->element, 0};
  if (const auto* iota = std::get_if<Literal::Iota>(&literal.form())) {
    const uint64_t step =
        literal.count() < 2 ? 0 : static_cast<uint64_t>(iota->step) & low_bits(literal.dtype());
    return Progression{integer_element(literal.dtype(), iota->start), step};
  }
  if (literal.dtype() == DType::String) {
    const auto& strings = std::get<Tensor>(literal.form()).strings();
    if (std::any_of(strings.begin(), strings.end(), [&](const std::string& s) { return s != strings[0]; }))
      return std::nullopt;
    return Progression{Tensor::strings({strings[0]}, {}), 0};
  }
  const ElementBytes elements = element_bytes(literal);
  const std::optional<uint64_t> step = find_step(literal.dtype(), literal.extents().size(), elements.bytes);
  if (!step)
    return std::nullopt;
  Tensor first(literal.dtype(), {});
  std::memcpy(first.mutable_bytes().data(), elements.bytes.data(), first.bytes().size());
  return Progression{first, *step};
}

uint64_t hash_element(const Tensor& element) {
  return element.dtype() == DType::String ? hash_string(element.strings()[0]) : hash_bytes(element.bytes());
}

uint64_t hash_elements(const Literal& literal) {
  if (literal.count() == 0)
    return 0;
  if (const std::optional<Progression> progression = find_progression(literal))
    return hash_combine(hash_element(progression->first), progression->step);
  if (literal.dtype() != DType::String)
    return hash_bytes(element_bytes(literal).bytes);
  uint64_t hash = 0;
  for (const std::string& text : std::get<Tensor>(literal.form()).strings())
    hash = hash_combine(hash, hash_string(text));
  return hash;
}

}  // namespace

Literal::Literal(DType dtype, Extents extents, Form form)
    : dtype_(dtype),
      extents_(std::move(extents)),
      count_(element_count(extents_)),
      form_(std::move(form)),
      hash_(std::make_shared<std::atomic<uint64_t>>(0)) {}

Literal::Literal(Tensor dense) : Literal(dense.dtype(), dense.extents(), dense) {}

Literal Literal::splat(Tensor element, Extents extents) {
  CHECK(element.rank() == 0, "a splat of {}", describe(element.dtype(), element.extents()));
  const DType dtype = element.dtype();
  return {dtype, std::move(extents), Splat{std::move(element)}};
}

Literal Literal::iota(DType dtype, int64_t start, int64_t step, int64_t count) {
  CHECK(is_integer(dtype), "an iota of {}", dtype);
  return {dtype, {count}, Iota{start, step}};
}

Literal Literal::file_slice(DType dtype, Extents extents, std::shared_ptr<const MappedFile> file,
                            uint64_t offset, uint64_t size) {
  const std::string path = file->path().string();
  if (dtype == DType::String)
    throw user_error("{}: str elements cannot be read from a slice of a file", path);
  const uint64_t length = file->bytes().size();
  if (offset > length || size > length - offset)
    throw user_error("{}: a slice of {} bytes at offset {} reaches outside the file of {} bytes", path, size,
                     offset, length);
  const uint64_t wanted = packed_size(dtype, element_count(extents));
  if (size != wanted)
    throw user_error("{}: {} takes {} bytes, but its slice at offset {} has {}", path,
                     describe(dtype, extents), wanted, offset, size);
  const bool is_on_disk = file->is_on_disk();
  Literal slice(dtype, std::move(extents), FileSlice{std::move(file), offset, size});
  return is_on_disk ? slice : Literal(slice.tensor());
}

Literal Literal::deferred(DType dtype, Extents extents, Deferred elements) {
  CHECK(dtype != DType::String, "deferred strings");
  return {dtype, std::move(extents), std::move(elements)};
}

bool Literal::is_stored() const {
  return std::holds_alternative<Tensor>(form_) || std::holds_alternative<FileSlice>(form_) || is_deferred();
}

void Literal::give_up_elements() {
  if (std::holds_alternative<Tensor>(form_))
    form_ = GivenUp{};
}

Tensor Literal::tensor() const {
  if (const auto* dense = std::get_if<Tensor>(&form_))
    return *dense;
  if (const auto* splat = std::get_if<Splat>(&form_))
    return repeat(splat->element, extents_);
  if (const auto* iota = std::get_if<Iota>(&form_)) {
    Tensor wide(DType::I64, extents_);
    auto value = static_cast<uint64_t>(iota->start);  // unsigned: it may wrap around
    for (int64_t& element : wide.mutable_data<int64_t>()) {
      element = static_cast<int64_t>(value);
      value += static_cast<uint64_t>(iota->step);
    }
    return dtype_ == DType::I64 ? wide : narrow(dtype_, extents_, wide.data<int64_t>());
  }
  if (const auto* elements = std::get_if<Deferred>(&form_)) {
    Tensor computed = (*elements)->tensor();
    CHECK(computed.dtype() == dtype_ && computed.extents() == extents_, "a literal of {} came out as {}",
          describe(dtype_, extents_), describe(computed.dtype(), computed.extents()));
    return computed;
  }
  CHECK(!std::holds_alternative<GivenUp>(form_), "the elements of a literal were given up");
  const auto& slice = std::get<FileSlice>(form_);
  const std::span<const std::byte> bytes = slice_bytes(slice);
  return is_plain(dtype_, bytes) ? Tensor(dtype_, extents_, slice.file, bytes)
                                 : unpack(dtype_, extents_, bytes);
}

uint64_t Literal::content_hash() const {
  uint64_t hash = *hash_;
  if (hash == 0) {
    hash = static_cast<uint64_t>(dtype_);
    for (const int64_t extent : extents_)
      hash = hash_combine(hash, static_cast<uint64_t>(extent));
    if (varies()) {
      hash = hash_combine(hash, reinterpret_cast<uintptr_t>(std::get<Deferred>(form_).get()));
    } else {
      hash = hash_combine(hash, hash_elements(*this));
      release(*this);
    }
    hash += hash == 0 ? 1 : 0;
    *hash_ = hash;
  }
  return hash;
}

bool operator==(const Literal& a, const Literal& b) {
  if (a.dtype_ != b.dtype_ || a.extents_ != b.extents_)
    return false;
  if (a.hash_ == b.hash_ || a.count_ == 0)  // copies of one literal
    return true;
  if (a.varies() || b.varies())
    return a.is_deferred() && b.is_deferred() &&
           std::get<Literal::Deferred>(a.form_) == std::get<Literal::Deferred>(b.form_);
  if (*a.hash_ != 0 && *b.hash_ != 0 && *a.hash_ != *b.hash_)
    return false;
  const auto* left = std::get_if<Literal::FileSlice>(&a.form_);
  const auto* right = std::get_if<Literal::FileSlice>(&b.form_);
  if (left != nullptr && right != nullptr && left->file == right->file && left->offset == right->offset)
    return true;
  if (is_generated(a) || is_generated(b)) {
    const std::optional<Progression> p = find_progression(a);
    const std::optional<Progression> q = find_progression(b);
    return p && q && p->step == q->step && identical(p->first, q->first);
  }
  if (a.dtype_ == DType::String)
    return std::get<Tensor>(a.form_).strings() == std::get<Tensor>(b.form_).strings();
  const ElementBytes p = element_bytes(a);
  const ElementBytes q = element_bytes(b);
  const bool same = std::memcmp(p.bytes.data(), q.bytes.data(), p.bytes.size()) == 0;
  release(a);
  release(b);
  return same;
}

}  // namespace tenon
