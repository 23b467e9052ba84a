#include "base/zip_writer.h"

#include <algorithm>

#include "base/error.h"
#include "base/zip_format.h"

namespace tenon {
namespace {

using namespace zip_format;

template <class T>
void put(std::string& to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i)
    to.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

// What the usual place of a number holds; the rest is in the extra field.
uint32_t narrow(uint64_t value) { return static_cast<uint32_t>(std::min(value, kFull)); }

// The extra field for those of the numbers that have no room in their usual place.
std::string extra_field(std::initializer_list<uint64_t> numbers) {
  std::string values;
  for (const uint64_t number : numbers)
    if (number >= kFull)
      put(values, number);
  std::string field;
  if (!values.empty()) {
    put(field, kWideSizes);
    put(field, static_cast<uint16_t>(values.size()));
  }
  return field + values;
}

constexpr uint16_t kVersion = 45;               // the first that knows sizes beyond 32 bits
constexpr uint16_t kUtf8 = 1 << 11;             // what names are in
constexpr uint16_t kStored = 0;                 // how the content is compressed
constexpr uint32_t kJanuary1980 = 0x21U << 16;  // the first day there is

// What the header of an entry and its line in the directory have in common.
std::string describe(uint32_t sum, uint64_t size, size_t name_size, size_t extra_size) {
  std::string text;
  put(text, kVersion);
  put(text, kUtf8);
  put(text, kStored);
  put(text, kJanuary1980);
  put(text, sum);
  put(text, narrow(size));  // packed
  put(text, narrow(size));  // unpacked
  put(text, static_cast<uint16_t>(name_size));
  put(text, static_cast<uint16_t>(extra_size));
  return text;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::initializer_list<std::span<const std::byte>> parts) {
  if (name.size() > 0xffff)
    throw user_error("the name of an entry has {} bytes, but a zip archive holds names of 65535 at most",
                     name.size());
  if (!names_.insert(name).second)
    throw user_error("there are two of this name");
  uint32_t sum = 0;
  uint64_t size = 0;
  for (const std::span<const std::byte> part : parts) {
    sum = checksum(part, sum);
    size += part.size();
  }
  const uint64_t offset = file_.size();
  const std::string extra = extra_field({size, size});
  std::string header;
  put(header, kLocalHeader);
  file_.append(header + describe(sum, size, name.size(), extra.size()) + name + extra);
  for (const std::span<const std::byte> part : parts)
    file_.append(part);

  const std::string extra_of_line = extra_field({size, size, offset});
  put(directory_, kDirectoryEntry);
  put(directory_, kVersion);  // of the writer
  directory_ += describe(sum, size, name.size(), extra_of_line.size());
  directory_.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
  put(directory_, narrow(offset));
  directory_ += name + extra_of_line;
}

void ZipWriter::finish() {
  const uint64_t start = file_.size(), count = names_.size(), size = directory_.size();
  std::string end;
  if (start >= kFull || size >= kFull || count >= kFullCount) {
    put(end, kWideDirectoryEnd);
    put(end, uint64_t{kWideDirectoryEndSize - 12});  // of what follows
    put(end, kVersion);
    put(end, kVersion);
    put(end, uint64_t{0});  // two numbers of disks
    for (const uint64_t number : {count, count, size, start})
      put(end, number);
    put(end, kWideLocator);
    put(end, uint32_t{0});
    put(end, start + size);
    put(end, uint32_t{1});  // disk
  }
  put(end, kDirectoryEnd);
  put(end, uint32_t{0});
  for (int i = 0; i < 2; ++i)
    put(end, static_cast<uint16_t>(std::min(count, kFullCount)));
  put(end, narrow(size));
  put(end, narrow(start));
  put(end, uint16_t{0});  // comment
  file_.append(directory_ + end);
}

}  // namespace tenon
