// zip_bytes.h — zip archives as bytes, for tests: entry by entry, stored or deflated, and as wrong as is
// wanted.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace tenon {

struct ZipPart {
  std::string name, content;
  bool deflated = false;
  // What the directory says instead of the truth.
  int64_t size = -1, checksum = -1, method = -1, flags = 0;
};

inline std::string deflate_bytes(const std::string& content) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
        "zlib does not start");
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib does not end");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string zip_bytes(const std::vector<ZipPart>& parts) {
  std::string file, directory;
  const auto put = [](std::string& to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i, value /= 256)
      to.push_back(static_cast<char>(value % 256));
  };
  for (const ZipPart& part : parts) {
    const std::string packed = part.deflated ? deflate_bytes(part.content) : part.content;
    const uint64_t offset = file.size();
    const uint64_t method = part.method >= 0 ? static_cast<uint64_t>(part.method) : part.deflated ? 8 : 0;
    const auto* bytes = reinterpret_cast<const Bytef*>(part.content.data());
    const uint64_t sum = part.checksum >= 0 ? static_cast<uint64_t>(part.checksum)
                                            : crc32(0, bytes, static_cast<uInt>(part.content.size()));
    const uint64_t size = part.size >= 0 ? static_cast<uint64_t>(part.size) : part.content.size();
    const auto common = [&](std::string& to) {
      put(to, 20, 2);
      put(to, static_cast<uint64_t>(part.flags), 2);
      put(to, method, 2);
      put(to, 0, 4);  // when
      put(to, sum, 4);
      put(to, packed.size(), 4);
      put(to, size, 4);
      put(to, part.name.size(), 2);
      put(to, 0, 2);
    };
    put(file, 0x04034b50, 4);
    common(file);
    file += part.name + packed;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    common(directory);
    put(directory, 0, 2 + 2 + 2 + 4);
    put(directory, offset, 4);
    directory += part.name;
  }
  const uint64_t start = file.size();
  file += directory;
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, parts.size(), 2);
  put(file, parts.size(), 2);
  put(file, directory.size(), 4);
  put(file, start, 4);
  put(file, 0, 2);
  return file;
}

}  // namespace tenon
