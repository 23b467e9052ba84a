// zip_format.h — the records of a zip file (APPNOTE.TXT of PKWARE), as reading and writing share them. All
// numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::zip_format {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50,
                   kWideDirectoryEnd = 0x06064b50, kWideLocator = 0x07064b50;
constexpr size_t kLocalHeaderSize = 30, kDirectoryEntrySize = 46, kDirectoryEndSize = 22,
                 kWideDirectoryEndSize = 56, kWideLocatorSize = 20, kLongestComment = 65535;
constexpr uint16_t kWideSizes = 1;       // the extra field that holds sizes beyond 32 bits
constexpr uint64_t kFull = 0xffffffff;   // stands where the extra field holds the number
constexpr uint64_t kFullCount = 0xffff;  // likewise, for how many entries there are

// The checksum of all bytes so far (0: none) and these.
uint32_t checksum(std::span<const std::byte> bytes, uint32_t so_far = 0);

}  // namespace tenon::zip_format
