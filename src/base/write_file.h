// write_file.h — files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace tenon {

// Calls `write` with the name of a temporary file beside `path`, which is renamed to `path` when it returns
// and removed when it throws. Errors, also those of `write`, say "cannot write PATH: " first.
void write_file(const std::filesystem::path& path,
                const std::function<void(const std::filesystem::path& temporary)>& write);
void write_file(const std::filesystem::path& path, std::string_view content);

// Files that mean nothing without each other. All are written, in their order, before the first is renamed.
struct FileToWrite {
  std::filesystem::path path;
  std::function<void(const std::filesystem::path& temporary)> write;
};
void write_files(const std::vector<FileToWrite>& files);

// Writes a file piece by piece, for the functions that write_file calls. Errors are the system's words.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& existing);  // which is emptied
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  uint64_t size() const { return size_; }
  void close();  // some errors come only now

 private:
  int descriptor_;
  uint64_t size_ = 0;
};

void write_content(const std::filesystem::path& existing, std::string_view content);

// Throws what write_file would throw at once: there is no such folder, it is read-only, or the path is
// something else than a regular file. For paths that are written only after long work.
void check_writable(const std::filesystem::path& path);

}  // namespace tenon
