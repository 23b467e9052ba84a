// mapped_file.h — a file mapped read-only into memory: opened once, paged in as it is read. Or what would be
// in one, where a caller has it in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace tenon {

class MappedFile {
 public:
  // A missing, unreadable or irregular (device, pipe, folder) file is the user's fault.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  // A copy of bytes that are in no file; `name` stands for it in errors.
  static std::shared_ptr<const MappedFile> copy(const std::filesystem::path& name,
                                                std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool is_on_disk() const { return is_on_disk_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::filesystem::path path, const void* data, size_t size, bool is_on_disk)
      : path_(std::move(path)),
        data_(static_cast<const std::byte*>(data)),
        size_(size),
        is_on_disk_(is_on_disk) {}

  std::filesystem::path path_;
  const std::byte* data_;
  size_t size_;
  bool is_on_disk_;
};

}  // namespace tenon
