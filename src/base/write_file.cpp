#include "base/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

UserError system_error() { return UserError(std::strerror(errno)); }

// A new file beside `path`; gone in the end, unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& path) {
    // A rename would replace a device such as /dev/null by a file, and a link by what should be behind it.
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
      throw user_error("not a regular file");
    target_ = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
    name_ = fmt::format("{}.{}.partial", target_.string(), ::getpid());
    const int fd = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
      throw system_error();
    ::close(fd);
  }
  ~TemporaryFile() { ::unlink(name_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path& name() const { return name_; }

  void move_to_target() const {
    if (::rename(name_.c_str(), target_.c_str()) != 0)
      throw system_error();
  }

 private:
  fs::path target_, name_;
};

template <class Work>
void with_path(const fs::path& path, Work&& work) {
  with_context([&] { return fmt::format("cannot write {}", path.string()); }, work);
}

}  // namespace

void write_file(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  with_path(path, [&] {
    const TemporaryFile temporary(path);
    write(temporary.name());
    temporary.move_to_target();
  });
}

void write_file(const fs::path& path, std::string_view content) {
  write_file(path, [&](const fs::path& temporary) {
    FileWriter file(temporary);
    file.append(content);
    file.close();
  });
}

FileWriter::FileWriter(const fs::path& existing)
    : descriptor_(::open(existing.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)) {
  if (descriptor_ < 0)
    throw system_error();
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void FileWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0)
      throw system_error();
    bytes = bytes.subspan(static_cast<size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
}

void FileWriter::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0)
    throw system_error();
}

void check_writable(const fs::path& path) {
  with_path(path, [&] { TemporaryFile{path}; });
}

}  // namespace tenon
