#include "frontends/gguf/container.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/mistaken_file.h"
#include "ir/print.h"

namespace tenon::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMostDimensions = 4;
constexpr size_t kLongestKey = 65535, kLongestTensorName = 64;  // in bytes, as the format has it

enum class Kind : uint8_t { Unsigned, Signed, Float, Bool, String, Array };
struct ValueType {
  std::string_view name;
  Kind kind;
  uint64_t bytes;  // 0 where they differ from value to value
};
constexpr ValueType kValueTypes[] = {
    {"u8", Kind::Unsigned, 1}, {"i8", Kind::Signed, 1},    {"u16", Kind::Unsigned, 2},
    {"i16", Kind::Signed, 2},  {"u32", Kind::Unsigned, 4}, {"i32", Kind::Signed, 4},
    {"f32", Kind::Float, 4},   {"bool", Kind::Bool, 1},    {"string", Kind::String, 0},
    {"array", Kind::Array, 0}, {"u64", Kind::Unsigned, 8}, {"i64", Kind::Signed, 8},
    {"f64", Kind::Float, 8},
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads from the front of a file what it is asked for, or says within what the file ends.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }

  template <class T>
  T number(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view text(std::string_view what) {
    const auto length = number<uint64_t>(what);
    return as_text(take(length, what));
  }

  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    const uint64_t left = bytes_.size() - position_;
    if (size > left)
      throw user_error("{} takes {} bytes from byte {} on, but the file has {} more", what, size, position_,
                       left);
    const auto taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

std::string_view read_name(Cursor& cursor, size_t longest) {
  const std::string_view name = cursor.text("its name");
  if (name.empty() || name.size() > longest)
    throw user_error("its name has {} bytes, but must have 1 to {}", name.size(), longest);
  return name;
}

const ValueType& read_value_type(Cursor& cursor) {
  const auto number = cursor.number<uint32_t>("the type of its value");
  if (number >= std::size(kValueTypes))
    throw user_error("unknown value type {}: the highest is {}", number, std::size(kValueTypes) - 1);
  return kValueTypes[number];
}

template <class Wide, class... Narrow>
Wide read_integer(Cursor& cursor, uint64_t bytes) {
  std::optional<Wide> value;
  const auto read = [&]<class T>(T) {
    if (sizeof(T) == bytes)
      value = cursor.number<T>("its value");
  };
  (read(Narrow{}), ...);
  return *value;
}

KeyArray read_array(Cursor& cursor) {
  const ValueType& type = read_value_type(cursor);
  const auto count = cursor.number<uint64_t>("its number of elements");
  if (type.kind == Kind::Array)
    throw user_error("its value is an array of arrays");
  if (type.bytes > 0 && count > std::numeric_limits<uint64_t>::max() / type.bytes)
    throw user_error("its value is an array of {} elements", count);
  if (type.bytes > 0)
    cursor.take(count * type.bytes, "its array");
  else
    for (uint64_t i = 0; i < count; ++i)
      cursor.text("a string of its array");
  return {type.name, count};
}

KeyValue read_value(Cursor& cursor) {
  const ValueType& type = read_value_type(cursor);
  switch (type.kind) {
    case Kind::Unsigned:
      return read_integer<uint64_t, uint8_t, uint16_t, uint32_t, uint64_t>(cursor, type.bytes);
    case Kind::Signed:
      return read_integer<int64_t, int8_t, int16_t, int32_t, int64_t>(cursor, type.bytes);
    case Kind::Float:
      return type.bytes == 4 ? double{cursor.number<float>("its value")} : cursor.number<double>("its value");
    case Kind::Bool: {
      const auto byte = cursor.number<uint8_t>("its value");
      if (byte > 1)
        throw user_error("its value is a bool of {}", byte);
      return byte == 1;
    }
    case Kind::String:
      return cursor.text("its value");
    case Kind::Array:
      return read_array(cursor);
  }
  CHECK(false, "a value of the type {}", type.name);
}

// A tensor before it is known where the data begin.
struct Entry {
  std::string_view name;
  TensorInfo info;
  uint64_t offset, size;
};

uint64_t bytes_of(const BlockType& type, const Extents& extents) {
  const int64_t count = element_count(extents);
  if (extents.back() % type.elements != 0)
    throw user_error("rows of {} elements are not a multiple of {}, the block size of {}", extents.back(),
                     type.elements, type.name);
  const auto bytes =
      static_cast<unsigned __int128>(count / type.elements) * static_cast<uint64_t>(type.bytes);
  if (bytes > std::numeric_limits<uint64_t>::max() / 2)
    throw user_error("it has {} elements", count);
  return static_cast<uint64_t>(bytes);
}

void read_info(Cursor& cursor, Entry& entry) {
  const auto rank = cursor.number<uint32_t>("its number of dimensions");
  if (rank < 1 || rank > kMostDimensions)
    throw user_error("it has {} dimensions, but must have 1 to {}", rank, kMostDimensions);
  for (uint32_t i = 0; i < rank; ++i) {
    const auto size = cursor.number<uint64_t>("its dimensions");
    if (size < 1 || size > std::numeric_limits<int64_t>::max())
      throw user_error("its dimension {} is {}", i, size);
    entry.info.extents.push_back(static_cast<int64_t>(size));
  }
  std::ranges::reverse(entry.info.extents);
  entry.info.type = &find_block_type(cursor.number<uint32_t>("its type"));
  entry.offset = cursor.number<uint64_t>("its offset");
  entry.size = bytes_of(*entry.info.type, entry.info.extents);
}

uint64_t alignment_of(const std::map<std::string_view, KeyValue>& keys) {
  const auto it = keys.find("general.alignment");
  if (it == keys.end())
    return kDefaultAlignment;
  const auto* alignment = std::get_if<uint64_t>(&it->second);
  if (alignment == nullptr || *alignment < 1 || *alignment > (1 << 20) ||
      (*alignment & (*alignment - 1)) != 0)
    throw user_error("key \"general.alignment\": it must be a power of two up to {}", 1 << 20);
  return *alignment;
}

void read_header(Cursor& cursor, const MappedFile& file) {
  if (!is_gguf(file))
    throw user_error("this is no GGUF file: it does not begin with \"{}\"{}", kMagic,
                     hint_at_content(file.bytes()));
  cursor.take(kMagic.size(), "the first word");
  const auto version = cursor.number<uint32_t>("the version");
  if (version != 0 && (version & 0xFFFF) == 0)
    throw unsupported("big-endian GGUF");
  if (version != 2 && version != 3)
    throw unsupported("this is version {} of GGUF, but those that are read are 2 and 3", version);
}

}  // namespace

bool is_gguf(const MappedFile& file) { return as_text(file.bytes()).starts_with(kMagic); }

Container::Container(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  Cursor cursor(file_->bytes());
  read_header(cursor, *file_);
  const auto tensors = cursor.number<uint64_t>("the number of tensors"),
             keys = cursor.number<uint64_t>("the number of keys");

  for (uint64_t i = 0; i < keys; ++i) {
    const std::string_view key = with_context([&] { return fmt::format("key {} of {}", i + 1, keys); },
                                              [&] { return read_name(cursor, kLongestKey); });
    with_context([&] { return fmt::format("key {}", quote(key)); },
                 [&] {
                   if (!keys_.emplace(key, read_value(cursor)).second)
                     throw user_error("duplicate");
                 });
  }

  std::vector<Entry> entries;
  for (uint64_t i = 0; i < tensors; ++i) {
    Entry entry{};
    entry.name = with_context([&] { return fmt::format("tensor {} of {}", i + 1, tensors); },
                              [&] { return read_name(cursor, kLongestTensorName); });
    with_context([&] { return fmt::format("tensor {}", quote(entry.name)); },
                 [&] { read_info(cursor, entry); });
    entries.push_back(std::move(entry));
  }

  // The data of one tensor follow those of the one before, each at the next multiple of the alignment.
  const uint64_t alignment = alignment_of(keys_);
  const auto aligned = [&](uint64_t at) { return (at + alignment - 1) / alignment * alignment; };
  const uint64_t data = std::min<uint64_t>(aligned(cursor.position()), file_->bytes().size());
  const auto bytes = file_->bytes().subspan(data);
  uint64_t next = 0;
  for (Entry& entry : entries)
    with_context([&] { return fmt::format("tensor {}", quote(entry.name)); },
                 [&] {
                   if (entry.offset != next)
                     throw user_error("its data is at offset {}, but should follow the previous tensor at {}",
                                      entry.offset, next);
                   if (entry.offset > bytes.size() || entry.size > bytes.size() - entry.offset)
                     throw user_error("{} in {} takes {} bytes at {} of the data, which have {}",
                                      entry.info.type->name,
                                      fmt::format("[{}]", fmt::join(entry.info.extents, ",")), entry.size,
                                      entry.offset, bytes.size());
                   entry.info.bytes = bytes.subspan(entry.offset, entry.size);
                   next = aligned(entry.offset + entry.size);
                   if (!tensors_.emplace(entry.name, entry.info).second)
                     throw user_error("duplicate");
                 });
}

}  // namespace tenon::gguf
