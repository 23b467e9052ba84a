// zip_file.h — a zip archive, read in place: which entries it has, and where in the file their bytes lie.
//
// libzip hands out copies and does not tell where an entry lies. Weights that are stored without compression
// are to be mapped from the archive itself, so the directory is read here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"

namespace tenon {

class ZipFile {
 public:
  struct Entry {
    std::string name;
    bool deflated = false;  // else stored
    uint32_t checksum = 0;
    uint64_t offset = 0;       // of its bytes in the file
    uint64_t packed_size = 0;  // of those bytes
    uint64_t size = 0;         // once unpacked
  };

  // Whatever is wrong with the archive is the user's fault: a directory that is missing or leads outside the
  // file, names that are absolute or climb with "..", two entries of one name, encryption, a compression we
  // do not know.
  explicit ZipFile(std::shared_ptr<const MappedFile> file);

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;

  // The bytes of an entry, unpacked into `target`, which must be as large; they must fit the checksum.
  void read(const Entry& entry, std::span<std::byte> target) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tenon
