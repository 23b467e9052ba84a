#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tenon {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must fail below, not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    throw user_error("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw user_error("cannot open {}: {}", path.string(),
                     S_ISDIR(info.st_mode) ? "it is a folder" : "not a regular file");
  }
  const auto size = static_cast<size_t>(info.st_size);
  const void* data = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (data == MAP_FAILED)
    throw user_error("cannot map {}: {}", path.string(), std::strerror(errno));
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size, true));
}

std::shared_ptr<const MappedFile> MappedFile::copy(const std::filesystem::path& name,
                                                   std::span<const std::byte> bytes) {
  void* const data = bytes.empty() ? nullptr
                                   : ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw user_error("there is no memory for the {} bytes of {}: {}", bytes.size(), name.string(),
                     std::strerror(errno));
  if (!bytes.empty())
    std::memcpy(data, bytes.data(), bytes.size());
  return std::shared_ptr<const MappedFile>(new MappedFile(name, data, bytes.size(), false));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace tenon
