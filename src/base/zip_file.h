// zip_file.h — a zip archive, read in place: which entries it has, and where in the file their bytes lie.
//
// Weights that are stored without compression are mapped from the archive itself.
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
    uint64_t place = 0;     // in the directory: 0, 1, …
    bool deflated = false;  // else stored
    uint32_t checksum = 0;
    uint64_t offset = 0;       // of its bytes in the file
    uint64_t packed_size = 0;  // of those bytes
    uint64_t size = 0;         // once unpacked
  };

  // Paths are not absolute and do not climb with "..".
  enum class Names : uint8_t { Paths, Any };

  // Whatever is wrong with the archive is the user's fault: a directory that is missing or leads outside the
  // file, names that are not as they must be, two entries of one name, encryption, a compression we do not
  // know.
  explicit ZipFile(std::shared_ptr<const MappedFile> file, Names names = Names::Paths);

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;

  // The bytes of an entry, unpacked into `target`, which must be as large; they must fit the checksum.
  void read(const Entry& entry, std::span<std::byte> target) const;
  // The first of them, however many there are; not compared with the checksum, which is of all.
  void read_first(const Entry& entry, std::span<std::byte> target) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tenon
