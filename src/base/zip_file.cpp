#include "base/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/zip_format.h"

namespace tenon {
namespace {

using Bytes = std::span<const std::byte>;

using namespace zip_format;

template <class T>
T number_at(Bytes bytes, uint64_t at) {
  if (bytes.size() < sizeof(T) || at > bytes.size() - sizeof(T))
    throw user_error("the zip archive is cut off, or its directory is damaged");
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i)));
  return value;
}

std::string text_at(Bytes bytes, uint64_t at, uint64_t size) {
  if (size > bytes.size() || at > bytes.size() - size)
    throw user_error("the zip archive is cut off, or its directory is damaged");
  return {reinterpret_cast<const char*>(bytes.data() + at), static_cast<size_t>(size)};
}

struct Directory {
  uint64_t offset, count;
};

Directory find_directory(Bytes file) {
  if (file.size() < kDirectoryEndSize)
    throw user_error("this is no zip archive: it has {} bytes", file.size());
  const size_t last = file.size() - kDirectoryEndSize;
  const size_t first = last > kLongestComment ? last - kLongestComment : 0;
  std::optional<size_t> end;
  for (size_t at = last + 1; at-- > first && !end;)
    if (number_at<uint32_t>(file, at) == kDirectoryEnd)
      end = at;
  if (!end)
    throw user_error("this is no zip archive, or it is cut off: the directory at its end is missing");
  if (*end >= kWideLocatorSize && number_at<uint32_t>(file, *end - kWideLocatorSize) == kWideLocator) {
    const auto wide = number_at<uint64_t>(file, *end - kWideLocatorSize + 8);
    if (wide > file.size() || file.size() - wide < kWideDirectoryEndSize ||
        number_at<uint32_t>(file, wide) != kWideDirectoryEnd)
      throw user_error("the zip archive is cut off, or its directory is damaged");
    return {number_at<uint64_t>(file, wide + 48), number_at<uint64_t>(file, wide + 32)};
  }
  return {number_at<uint32_t>(file, *end + 16), number_at<uint16_t>(file, *end + 10)};
}

// Sizes and offsets beyond 32 bits stand in an extra field, in this order, where the usual place is full of
// ones.
void read_wide_sizes(Bytes file, uint64_t extra, uint64_t extra_end, uint64_t& size, uint64_t& packed,
                     uint64_t& header) {
  while (extra + 4 <= extra_end) {
    const auto kind = number_at<uint16_t>(file, extra);
    const auto length = number_at<uint16_t>(file, extra + 2);
    uint64_t at = extra + 4;
    extra = at + length;
    if (kind != kWideSizes)
      continue;
    for (uint64_t* each : {&size, &packed, &header})
      if (*each == kFull && at + 8 <= extra) {
        *each = number_at<uint64_t>(file, at);
        at += 8;
      }
  }
}

// Nothing is ever written under such a name, but an archive that tries is not to be trusted.
void check_name(const std::string& name) {
  const bool climbs = name == ".." || name.starts_with("../") || name.ends_with("/..") ||
                      name.find("/../") != std::string::npos;
  if (name.empty() || name.front() == '/' || climbs || name.find('\\') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw user_error("the entry \"{}\" of the zip archive has a name that leads outside it",
                     name.substr(0, name.find('\0')));
}

// Reads the entry of the directory at `at`, and moves that to the next one.
ZipFile::Entry read_entry(Bytes file, uint64_t& at, ZipFile::Names names) {
  if (number_at<uint32_t>(file, at) != kDirectoryEntry)
    throw user_error("the zip archive is cut off, or its directory is damaged");
  const auto flags = number_at<uint16_t>(file, at + 8), method = number_at<uint16_t>(file, at + 10);
  const auto name_size = number_at<uint16_t>(file, at + 28), extra_size = number_at<uint16_t>(file, at + 30),
             comment_size = number_at<uint16_t>(file, at + 32);
  ZipFile::Entry entry;
  entry.checksum = number_at<uint32_t>(file, at + 16);
  entry.packed_size = number_at<uint32_t>(file, at + 20);
  entry.size = number_at<uint32_t>(file, at + 24);
  uint64_t header = number_at<uint32_t>(file, at + 42);
  entry.name = text_at(file, at + kDirectoryEntrySize, name_size);
  if (names == ZipFile::Names::Paths)
    check_name(entry.name);
  const uint64_t extra = at + kDirectoryEntrySize + name_size;
  read_wide_sizes(file, extra, extra + extra_size, entry.size, entry.packed_size, header);
  at = extra + extra_size + comment_size;

  if ((flags & 1) != 0)
    throw unsupported("the entry \"{}\" of the zip archive is encrypted", entry.name);
  if (method != 0 && method != Z_DEFLATED)
    throw unsupported(
        "the entry \"{}\" of the zip archive is compressed by method {}, but must be stored or deflated",
        entry.name, method);
  entry.deflated = method == Z_DEFLATED;
  if (!entry.deflated && entry.size != entry.packed_size)
    throw user_error("the entry \"{}\" of the zip archive is stored, but its two sizes are {} and {}",
                     entry.name, entry.size, entry.packed_size);
  if (number_at<uint32_t>(file, header) != kLocalHeader)
    throw user_error("the entry \"{}\" of the zip archive is not where the directory says", entry.name);
  entry.offset = header + kLocalHeaderSize + number_at<uint16_t>(file, header + 26) +
                 number_at<uint16_t>(file, header + 28);
  if (entry.offset > file.size() || entry.packed_size > file.size() - entry.offset)
    throw user_error("the entry \"{}\" of the zip archive goes beyond its end", entry.name);
  return entry;
}

// Inflates `packed`, in pieces that zlib's 32 bits can count; the whole of it, or what fills the target.
bool inflate_into(Bytes packed, std::span<std::byte> target, bool whole) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> ended(&stream, inflateEnd);
  constexpr size_t piece = size_t{1} << 30;
  std::byte beyond[1];  // where one byte too many would go
  int status = Z_OK;
  bool overflows = false;
  while (status == Z_OK && (whole || !target.empty())) {
    if (stream.avail_in == 0 && !packed.empty()) {
      const size_t count = std::min(packed.size(), piece);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
      stream.avail_in = static_cast<uInt>(count);
      packed = packed.subspan(count);
    }
    const std::span<std::byte> room = target.empty() ? std::span<std::byte>(beyond) : target;
    const size_t count = std::min(room.size(), piece);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(count);
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t made = count - stream.avail_out;
    if (target.empty() && made > 0) {
      overflows = true;
      break;
    }
    if (!target.empty())
      target = target.subspan(made);
    if (made == 0 && stream.avail_in == 0 && packed.empty() && status == Z_OK)
      break;
  }
  return (status == Z_STREAM_END || !whole) && target.empty() && !overflows;
}

}  // namespace

ZipFile::ZipFile(std::shared_ptr<const MappedFile> file, Names names) : file_(std::move(file)) {
  const Bytes bytes = file_->bytes();
  const Directory directory = find_directory(bytes);
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    Entry entry = read_entry(bytes, at, names);
    entry.place = i;
    const std::string name = entry.name;
    if (!entries_.emplace(name, std::move(entry)).second)
      throw user_error("two entries of the zip archive have the name \"{}\"", name);
  }
}

const ZipFile::Entry* ZipFile::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

void ZipFile::read(const Entry& entry, std::span<std::byte> target) const {
  CHECK(target.size() == entry.size, "{} bytes for an entry of {}", target.size(), entry.size);
  const Bytes packed = file_->bytes().subspan(entry.offset, entry.packed_size);
  if (!entry.deflated)
    std::ranges::copy(packed, target.begin());
  else if (!inflate_into(packed, target, /*whole=*/true))
    throw user_error("the entry \"{}\" of the zip archive is damaged: it does not unpack to {} bytes",
                     entry.name, entry.size);
  if (checksum(target) != entry.checksum)
    throw user_error("the entry \"{}\" of the zip archive is damaged: its checksum does not fit", entry.name);
}

void ZipFile::read_first(const Entry& entry, std::span<std::byte> target) const {
  CHECK(target.size() <= entry.size, "{} bytes of an entry of {}", target.size(), entry.size);
  const Bytes packed = file_->bytes().subspan(entry.offset, entry.packed_size);
  if (!entry.deflated)
    std::ranges::copy(packed.first(target.size()), target.begin());
  else if (!inflate_into(packed, target, /*whole=*/false))
    throw user_error("the entry \"{}\" of the zip archive is damaged: it does not unpack to {} bytes",
                     entry.name, entry.size);
}

}  // namespace tenon
