// wire.h — the protobuf wire format: a cursor over the fields of a message, and the writer of one.
//
// Nothing is copied: a field is a view of the bytes it was read from, so a weight of a gigabyte costs a
// pointer. Bytes that break the format are the user's fault; each such error starts with where: "byte 17: …".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon::onnx {

enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A file ends before the field that starts last does.
class TruncatedError : public UserError {
 public:
  TruncatedError(const std::string& message, uint32_t field) : UserError(message), field_(field) {}
  // The number of that field; of the one before it where the number is cut off, too.
  uint32_t field() const { return field_; }

 private:
  uint32_t field_;
};

class WireReader;

// One field of a message. Asking for another kind of value than was written is the file's fault.
class Field {
 public:
  uint32_t number() const { return number_; }

  int64_t integer() const;
  int32_t integer32() const { return static_cast<int32_t>(integer()); }  // the format keeps the low bits
  float real() const;
  std::span<const std::byte> bytes() const;
  std::string_view string() const;  // UTF-8
  WireReader message() const;

  // A repeated number: one element, or many packed into one field. The bytes are the elements end to end.
  std::span<const std::byte> elements(WireType element) const;
  void append_to(std::vector<int64_t>& values) const;
  void append_to(std::vector<float>& values) const;

  // "byte 17: message", where 17 is where this field starts.
  template <class... Args>
  UserError error(fmt::format_string<Args...> format, Args&&... args) const {
    return user_error("byte {}: {}", start_ - origin_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  friend class WireReader;
  void expect(WireType wanted) const;

  const std::byte* origin_ = nullptr;  // where offsets count from
  const std::byte* start_ = nullptr;
  std::span<const std::byte> payload_;
  uint64_t varint_ = 0;
  uint32_t number_ = 0;
  WireType type_ = WireType::Varint;
  int depth_ = 0;
};

// Reads `bytes` from the front.
class WireReader {
 public:
  // Of a whole file.
  explicit WireReader(std::span<const std::byte> bytes) : WireReader(bytes, bytes.data(), 0) {
    is_file_ = true;
  }
  // Of a part of one. Offsets in errors count from `origin`, the start of the file.
  WireReader(std::span<const std::byte> bytes, const std::byte* origin, int depth)
      : origin_(origin), rest_(bytes), depth_(depth) {}

  bool at_end() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }
  std::optional<Field> next_field();  // nothing at the end
  uint64_t next_varint();

  // "byte 17: message", where 17 is where the rest starts.
  template <class... Args>
  UserError error(fmt::format_string<Args...> format, Args&&... args) const {
    return user_error("byte {}: {}", rest_.data() - origin_,
                      fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::span<const std::byte> take(uint64_t size, const char* what);
  [[noreturn]] void throw_too_short(const UserError& error) const;

  const std::byte* origin_;
  std::span<const std::byte> rest_;
  int depth_;
  bool is_file_ = false;
  uint32_t field_ = 0;  // the number of the field that was started last
};

// Writes the fields of one message.
class WireWriter {
 public:
  void put(uint32_t field, int64_t value);
  void put(uint32_t field, std::string_view bytes);
  void put_float(uint32_t field, float value);
  const std::string& message() const { return message_; }

 private:
  void put_varint(uint64_t value);

  std::string message_;
};

}  // namespace tenon::onnx
