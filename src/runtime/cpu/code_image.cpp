#include "runtime/cpu/code_image.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "runtime/cpu/library_functions.h"

namespace tenon::runtime {
namespace {

std::vector<void*> addresses_of(const Imports& imports) {
  std::vector<void*> addresses;
  for (const std::string& name : imports.names) {
    addresses.push_back(find_library_function(name));
    if (addresses.back() == nullptr)
      throw user_error("the code of the saved program calls {}, which this version of Tenon does not offer",
                       name);
  }
  return addresses;
}

// An image in memory of its own, where the file's may not be executed: on a volume mounted noexec, say.
class CopiedImage {
 public:
  explicit CopiedImage(std::span<const std::byte> image)
      : size_(image.size()),
        memory_(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw user_error("there is no memory for the code of the saved program: {}", std::strerror(errno));
    std::memcpy(memory_, image.data(), image.size());
    __builtin___clear_cache(static_cast<char*>(memory_), static_cast<char*>(memory_) + size_);
  }
  ~CopiedImage() { ::munmap(memory_, size_); }
  CopiedImage(const CopiedImage&) = delete;
  CopiedImage& operator=(const CopiedImage&) = delete;

  std::byte* begin() const { return static_cast<std::byte*>(memory_); }

 private:
  size_t size_;
  void* memory_;
};

bool protect(std::byte* begin, uint64_t size, int protection) {
  return size == 0 || ::mprotect(begin, size, protection) == 0;
}

// Code, and behind it the table. The latter's pages become this process's own.
bool make_executable(std::byte* image, uint64_t size, const Imports& imports,
                     const std::vector<void*>& addresses) {
  if (addresses.empty())
    return protect(image, size, PROT_READ | PROT_EXEC);
  std::byte* const table = image + imports.offset;
  const uint64_t bytes = size - imports.offset;
  if (!protect(table, bytes, PROT_READ | PROT_WRITE))
    return false;
  std::memcpy(table, addresses.data(), addresses.size() * sizeof(void*));
  return protect(table, bytes, PROT_READ) && protect(image, imports.offset, PROT_READ | PROT_EXEC);
}

class ImageLoader : public CodeLoader {
 public:
  ImageLoader(std::shared_ptr<const MappedFile> file, std::span<const std::byte> image,
              const Imports& imports)
      : file_(std::move(file)), image_(image) {
    const std::vector<void*> addresses = addresses_of(imports);
    CHECK(imports.offset + addresses.size() * sizeof(void*) <= image.size(),
          "the imports are not in the image");
    // Who maps a file has no other use for these pages.
    auto* begin = const_cast<std::byte*>(image.data());
    if (file_ != nullptr && make_executable(begin, image.size(), imports, addresses))
      return;
    copy_ = std::make_unique<CopiedImage>(image);
    image_ = {copy_->begin(), image.size()};
    if (!make_executable(copy_->begin(), image.size(), imports, addresses))
      throw user_error(
          "this system does not let memory be executed, as the code of a saved program must be: {}",
          std::strerror(errno));
  }

  std::vector<KernelFunction> load(const KernelCode& code) override {
    std::vector<KernelFunction> functions;
    for (size_t i = 0; i < code.regions; ++i) {
      uint64_t entry = 0;
      std::memcpy(&entry, code.bytes.data() + i * sizeof entry, sizeof entry);
      functions.push_back(reinterpret_cast<KernelFunction>(const_cast<std::byte*>(image_.data()) + entry));
    }
    return functions;
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> image_;
  std::unique_ptr<CopiedImage> copy_;
};

}  // namespace

KernelCode code_in_image(std::span<const uint64_t> entries) {
  return {.bytes = std::string(reinterpret_cast<const char*>(entries.data()), entries.size_bytes()),
          .regions = entries.size()};
}

std::unique_ptr<CodeLoader> load_image(std::shared_ptr<const MappedFile> file,
                                       std::span<const std::byte> image, const Imports& imports) {
  return std::make_unique<ImageLoader>(std::move(file), image, imports);
}

}  // namespace tenon::runtime
