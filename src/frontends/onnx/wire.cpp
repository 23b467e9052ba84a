#include "frontends/onnx/wire.h"

#include <bit>
#include <cstring>

#include "base/utf8.h"

namespace tenon::onnx {

static_assert(std::endian::native == std::endian::little,
              "fixed-width values are read as they lie in the file");

namespace {

// Types and subgraphs nest; no real model comes near, and each level costs stack.
constexpr int max_depth = 100;

std::string_view describe(WireType type) {
  switch (type) {
    case WireType::Varint:
      return "an integer";
    case WireType::Fixed64:
      return "a 64-bit value";
    case WireType::Bytes:
      return "a run of bytes";
    case WireType::Fixed32:
      return "a 32-bit value";
  }
  return "";
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_utf8(text))
      return false;
  return true;
}

}  // namespace

void Field::expect(WireType wanted) const {
  if (type_ != wanted)
    throw error("field {} is {}, wanted {}", number_, describe(type_), describe(wanted));
}

int64_t Field::integer() const {
  expect(WireType::Varint);
  return static_cast<int64_t>(varint_);
}

float Field::real() const {
  expect(WireType::Fixed32);
  float value;
  std::memcpy(&value, payload_.data(), sizeof value);
  return value;
}

std::span<const std::byte> Field::bytes() const {
  expect(WireType::Bytes);
  return payload_;
}

std::string_view Field::string() const {
  if (!is_utf8(as_text(bytes())))
    throw error("field {} is a name or text that is not valid UTF-8", number_);
  return as_text(payload_);
}

WireReader Field::message() const {
  if (depth_ == max_depth)
    throw error("messages nest more than {} deep", max_depth);
  return WireReader(bytes(), origin_, depth_ + 1);
}

std::span<const std::byte> Field::elements(WireType element) const {
  if (type_ != WireType::Bytes)
    expect(element);
  const size_t size = element == WireType::Fixed32 ? 4 : element == WireType::Fixed64 ? 8 : 1;
  if (payload_.size() % size != 0)
    throw error("field {} packs {}-byte values into {} bytes", number_, size, payload_.size());
  return payload_;
}

void Field::append_to(std::vector<int64_t>& values) const {
  WireReader reader(elements(WireType::Varint), origin_, depth_);
  while (!reader.at_end())
    values.push_back(static_cast<int64_t>(reader.next_varint()));
}

void Field::append_to(std::vector<float>& values) const {
  const auto packed = elements(WireType::Fixed32);
  const size_t before = values.size();
  values.resize(before + packed.size() / sizeof(float));
  if (!packed.empty())
    std::memcpy(values.data() + before, packed.data(), packed.size());
}

std::optional<Field> WireReader::next_field() {
  if (at_end())
    return std::nullopt;
  Field field;
  field.origin_ = origin_;
  field.start_ = rest_.data();
  field.depth_ = depth_;
  const uint64_t tag = next_varint();
  if (tag >> 3 == 0 || tag > UINT32_MAX)
    throw field.error("{} is not a field number", tag >> 3);
  field.number_ = field_ = static_cast<uint32_t>(tag >> 3);
  field.type_ = static_cast<WireType>(tag & 7);
  switch (field.type_) {
    case WireType::Varint: {
      const auto from = rest_;
      field.varint_ = next_varint();
      field.payload_ = from.first(from.size() - rest_.size());
      return field;
    }
    case WireType::Fixed64:
      field.payload_ = take(8, "a 64-bit value");
      return field;
    case WireType::Bytes:
      field.payload_ = take(next_varint(), "a run");
      return field;
    case WireType::Fixed32:
      field.payload_ = take(4, "a 32-bit value");
      return field;
  }
  throw field.error("field {} has wire type {}, wanted 0, 1, 2 or 5", field.number_, tag & 7);
}

uint64_t WireReader::next_varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < rest_.size(); ++i) {
    const auto byte = std::to_integer<uint64_t>(rest_[i]);
    if (i == 9 && byte > 1)
      throw error("an integer of more than 64 bits");
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  throw_too_short(error("the {} ends in the middle of an integer", is_file_ ? "file" : "message"));
}

std::span<const std::byte> WireReader::take(uint64_t size, const char* what) {
  if (size > rest_.size())
    throw_too_short(error("{} of {} bytes, but the {} has {} left", what, size, is_file_ ? "file" : "message",
                          rest_.size()));
  const auto taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

void WireReader::throw_too_short(const UserError& error) const {
  if (is_file_)
    throw TruncatedError(error.what(), field_);
  throw error;
}

void WireWriter::put_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    message_.push_back(static_cast<char>((value & 0x7F) | 0x80));
  message_.push_back(static_cast<char>(value));
}

void WireWriter::put(uint32_t field, int64_t value) {
  put_varint(uint64_t{field} << 3 | static_cast<uint64_t>(WireType::Varint));
  put_varint(static_cast<uint64_t>(value));
}

void WireWriter::put_float(uint32_t field, float value) {
  put_varint(uint64_t{field} << 3 | static_cast<uint64_t>(WireType::Fixed32));
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  message_.append(bytes, sizeof bytes);
}

void WireWriter::put(uint32_t field, std::string_view bytes) {
  put_varint(uint64_t{field} << 3 | static_cast<uint64_t>(WireType::Bytes));
  put_varint(bytes.size());
  message_.append(bytes);
}

}  // namespace tenon::onnx
