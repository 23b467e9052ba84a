#include "tensor/tensor.h"

#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace tenon {
namespace {

// Where an empty tensor points, so that nobody meets a null pointer.
alignas(64) std::byte nothing[64];

uint64_t read_memory_limit() {
  auto limit =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
  // A container may be allowed less than the machine has. Where there is no limit, the file holds a word and
  // not a number, or is absent.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t allowed = 0;
    if (std::ifstream(path) >> allowed)
      limit = std::min(limit, allowed);
  }
  return limit;
}

constexpr uint64_t kCacheLine = 64, kLarge = 1 << 20;  // in bytes

// Null where there is no memory. Large tensors are zeroed lazily by the system, so that one costs nothing
// until it is touched, and lie on huge pages where it has them: these take fewer faults to fill, and their
// addresses stay in the processor's table.
std::shared_ptr<std::byte> allocate_zeros(uint64_t size) {
  if (size < kLarge) {
    void* memory = std::aligned_alloc(kCacheLine, (size + kCacheLine - 1) / kCacheLine * kCacheLine);
    return {static_cast<std::byte*>(memory == nullptr ? nullptr : std::memset(memory, 0, size)), std::free};
  }
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  ::madvise(memory, size, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), [size](std::byte* mapped) { ::munmap(mapped, size); }};
}

// Complex numbers are read as pairs of floats or doubles.
size_t alignment(DType dtype) {
  const auto size = static_cast<size_t>(info(dtype).bytes);
  return kind(dtype) == DTypeKind::Complex ? size / 2 : size;
}

}  // namespace

std::string describe(DType dtype, const Extents& extents) {
  return fmt::format("{}[{}]", dtype, fmt::join(extents, ","));
}

uint64_t memory_limit() {
  static const uint64_t limit = read_memory_limit();
  return limit;
}

int64_t element_count(const Extents& extents) {
  const auto shown = [&] { return fmt::format("[{}]", fmt::join(extents, ",")); };
  if (std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent < 0; }))
    throw user_error("a tensor of shape {} has a negative extent", shown());
  if (std::find(extents.begin(), extents.end(), 0) != extents.end())
    return 0;
  int64_t count = 1;
  for (const int64_t extent : extents)
    if (__builtin_mul_overflow(count, extent, &count))
      throw user_error("a tensor of shape {} has more elements than can be counted", shown());
  return count;
}

Extents row_major_strides(const Extents& extents) {
  Extents strides(extents.size(), 0);
  // [0, 2^40, 2^40] is a valid tensor without elements, whose strides would overflow and do not matter.
  if (std::find(extents.begin(), extents.end(), 0) != extents.end())
    return strides;
  int64_t stride = 1;
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= extents[axis];
  }
  return strides;
}

Tensor::Tensor(DType dtype, Extents extents)
    : dtype_(dtype),
      extents_(std::move(extents)),
      count_(element_count(extents_)),
      data_(nothing),
      writable_(true) {
  const bool is_string = dtype == DType::String;
  const uint64_t element = is_string ? sizeof(std::string) : static_cast<uint64_t>(info(dtype).bytes);
  const auto count = static_cast<uint64_t>(count_);
  if (count > memory_limit() / element)
    throw user_error("{} needs {} bytes for each of {} elements, but this machine has {} bytes of memory",
                     describe(dtype_, extents_), element, count, memory_limit());
  if (is_string) {
    strings_ = std::make_shared<std::vector<std::string>>(count);
  } else if (count > 0) {
    const std::shared_ptr<std::byte> memory = allocate_zeros(count * element);
    if (memory == nullptr)
      throw user_error("{} needs {} bytes, which the system refused", describe(dtype_, extents_),
                       count * element);
    data_ = memory.get();
    owner_ = memory;
  }
}

Tensor::Tensor(DType dtype, Extents extents, std::shared_ptr<const void> owner,
               std::span<const std::byte> bytes)
    : dtype_(dtype), extents_(std::move(extents)), count_(element_count(extents_)), data_(nothing) {
  CHECK(dtype != DType::String, "strings cannot be a view of bytes");
  CHECK(bytes.size() == static_cast<uint64_t>(count_) * static_cast<uint64_t>(element_size()),
        "{} as a view of {} bytes", describe(dtype_, extents_), bytes.size());
  if (bytes.empty())
    return;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment(dtype) != 0) {
    *this = Tensor(dtype_, extents_);
    std::memcpy(data_, bytes.data(), bytes.size());
    return;
  }
  owner_ = std::move(owner);
  data_ = const_cast<std::byte*>(bytes.data());  // writable_ is false
}

Tensor Tensor::strings(std::vector<std::string> values, Extents extents) {
  Tensor t(DType::String, std::move(extents));
  CHECK(static_cast<int64_t>(values.size()) == t.count(), "{} values for {} elements", values.size(),
        t.count());
  *t.strings_ = std::move(values);
  return t;
}

Tensor Tensor::reshaped(Extents extents) const {
  Tensor t = *this;
  CHECK(element_count(extents) == count_, "{} reshaped to {}", describe(dtype_, extents_),
        describe(dtype_, extents));
  t.extents_ = std::move(extents);
  return t;
}

std::span<const std::byte> Tensor::bytes() const {
  CHECK(dtype_ != DType::String, "the bytes of a tensor of strings");
  return {data_, static_cast<size_t>(count_ * element_size())};
}

std::span<std::byte> Tensor::mutable_bytes() {
  CHECK(dtype_ != DType::String, "the bytes of a tensor of strings");
  CHECK(writable_ && owner_.use_count() <= 1, "writing to {}, whose elements are shared",
        describe(dtype_, extents_));
  return {data_, static_cast<size_t>(count_ * element_size())};
}

const std::vector<std::string>& Tensor::strings() const {
  CHECK(dtype_ == DType::String, "{} elements read as strings", dtype_);
  return *strings_;
}

std::vector<std::string>& Tensor::mutable_strings() {
  CHECK(dtype_ == DType::String, "{} elements written as strings", dtype_);
  CHECK(strings_.use_count() == 1, "writing to {}, whose elements are shared", describe(dtype_, extents_));
  return *strings_;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.extents() != b.extents())
    return false;
  if (a.dtype() == DType::String)
    return a.strings() == b.strings();
  return std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

Tensor repeat(const Tensor& element, const Extents& extents) {
  CHECK(element.count() == 1, "repeating {}", describe(element.dtype(), element.extents()));
  Tensor t(element.dtype(), extents);
  if (element.dtype() == DType::String) {
    std::fill(t.mutable_strings().begin(), t.mutable_strings().end(), element.strings()[0]);
    return t;
  }
  const std::span<const std::byte> pattern = element.bytes();
  const std::span<std::byte> target = t.mutable_bytes();
  if (target.empty() ||
      std::all_of(pattern.begin(), pattern.end(), [](std::byte b) { return b == std::byte{}; }))
    return t;
  // Doubling: each copy is as long as what is already there.
  std::memcpy(target.data(), pattern.data(), pattern.size());
  for (size_t done = pattern.size(); done < target.size();) {
    const size_t more = std::min(done, target.size() - done);
    std::memcpy(target.data() + done, target.data(), more);
    done += more;
  }
  return t;
}

}  // namespace tenon
