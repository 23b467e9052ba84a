#include "base/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

UserError system_error() { return UserError(std::strerror(errno)); }

// A rename would replace a device such as /dev/null by a file, and a link by what should be behind it.
fs::path target_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    throw user_error("not a regular file");
  return fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
}

fs::path make_beside(const fs::path& target) {
  const std::string name = fmt::format("{}.{}.partial", target.string(), ::getpid());
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    throw system_error();
  ::close(fd);
  return name;
}

// A new file beside `path`; gone in the end, unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& path)
      : target_(target_of(path)), file_([&] { return make_beside(target_); }) {}
  ~TemporaryFile() { ::unlink(name().c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path& name() const { return file_.path(); }

  void move_to_target() const {
    if (::rename(name().c_str(), target_.c_str()) != 0)
      throw system_error();
  }

 private:
  fs::path target_;
  Leftover file_;
};

template <class Work>
void with_path(const fs::path& path, Work&& work) {
  with_context([&] { return fmt::format("cannot write {}", path.string()); }, work);
}

}  // namespace

void write_files(const std::vector<FileToWrite>& files) {
  std::vector<std::unique_ptr<const TemporaryFile>> temporaries;
  for (const FileToWrite& file : files)
    with_path(file.path, [&] {
      temporaries.push_back(std::make_unique<const TemporaryFile>(file.path));
      file.write(temporaries.back()->name());
    });
  without_interruption([&] {
    for (size_t i = 0; i < files.size(); ++i)
      with_path(files[i].path, [&] { temporaries[i]->move_to_target(); });
  });
}

void write_file(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  write_files({{path, write}});
}

void write_content(const fs::path& existing, std::string_view content) {
  FileWriter file(existing);
  file.append(content);
  file.close();
}

void write_file(const fs::path& path, std::string_view content) {
  write_file(path, [&](const fs::path& temporary) { write_content(temporary, content); });
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
