// program_file.h — the container of saved programs: named sections in one file that is mapped and used where
// it lies. docs/compile.md has the layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace tenon::runtime {

constexpr uint32_t kProgramFormat = 1;  // of files that this version writes, and the latest that it reads
constexpr std::string_view kProgramExtension = ".tnp";

// The packed constants of all targets. As the only section, it is not read when a program is opened.
constexpr std::string_view kWeightsSection = "weights";

class ProgramFile {
 public:
  // Checks the header, that the file is whole, and the hashes of all sections but the weights. What is no
  // saved program, a damaged one, or one of a later format is a user_error.
  static std::shared_ptr<const ProgramFile> open(const std::filesystem::path& path);
  // The same of the bytes of such a file, which stay where they are, and as they are. They are copied where
  // they are not aligned to a cache line.
  static std::shared_ptr<const ProgramFile> in_memory(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return bytes_; }
  // What is mapped; null where the bytes are the caller's.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  // How errors speak of it.
  const std::string& name() const { return name_; }
  // Of the table of sections, and so of their hashes: that of another program is another.
  uint64_t hash() const { return hash_; }
  bool has(std::string_view name) const;
  // Where a section lies in the file. One that is missing is a user_error.
  uint64_t offset_of(std::string_view name) const;
  std::span<const std::byte> bytes_of(std::string_view name) const;

  // Reads all weights to find out whether they are damaged.
  void check_weights() const;

  struct Section {
    std::string name;
    uint64_t offset, size, hash;
  };
  const std::vector<Section>& sections() const { return sections_; }

 private:
  ProgramFile(std::string name, std::shared_ptr<const MappedFile> file, std::span<const std::byte> bytes)
      : name_(std::move(name)), file_(std::move(file)), bytes_(bytes) {}

  static std::shared_ptr<const ProgramFile> checked(ProgramFile&& file);
  void read_header();
  const Section& find(std::string_view name) const;
  void check(const Section& section) const;

  std::string name_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  uint64_t hash_ = 0;
  std::vector<Section> sections_;
};

// The multiple of `alignment` that comes next.
constexpr uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// A section to be written: pieces in the order of their offsets in it, with zeros between them.
struct SectionToWrite {
  struct Piece {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };

  std::string name;
  std::vector<Piece> pieces;
  uint64_t alignment = sizeof(uint64_t);  // in the file
};

// The file is there as a whole or not at all.
void write_program_file(const std::filesystem::path& path, const std::vector<SectionToWrite>& sections);

}  // namespace tenon::runtime
