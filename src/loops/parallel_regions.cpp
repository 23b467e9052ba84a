#include "loops/parallel_regions.h"

#include "base/error.h"
#include "target/target.h"

namespace tenon::loops {

namespace {

constexpr int64_t kMostBytesOnStack = 16 << 10;

ParallelRegion region_of(Loop loop) {
  ParallelRegion region;
  while (true) {
    region.iterations = region.iterations * iterations_of(loop);
    std::vector<Statement> body = std::move(loop.body);
    loop.body.clear();
    region.parallel.push_back(std::move(loop));
    Loop* inner = body.size() == 1 ? std::get_if<Loop>(&body.front()) : nullptr;
    if (inner == nullptr || inner->mark != region.parallel.front().mark) {
      region.body = std::move(body);
      return region;
    }
    Loop next = std::move(*inner);
    loop = std::move(next);
  }
}

void add_locals(const std::vector<Statement>& body, Dim& bytes) {
  for (const Statement& statement : body) {
    if (const auto* local = std::get_if<Local>(&statement); local != nullptr && !lies_on_stack(local->buffer))
      bytes = bytes + padded_bytes(local->buffer);
    if (const auto* inner = body_of(statement))
      add_locals(*inner, bytes);
  }
}

}  // namespace

Dim iterations_of(const Loop& loop) { return max(ceil_div(loop.end - loop.begin, loop.step), 0); }

Dim padded_bytes(const loops::Buffer& buffer) {
  Dim bytes = info(buffer.dtype).bytes;
  for (const Dim& size : buffer.sizes)
    bytes = bytes * size;
  return ceil_div(bytes, kCacheLine) * kCacheLine;
}

bool lies_on_stack(const loops::Buffer& buffer) {
  return padded_bytes(buffer).constant().value_or(kMostBytesOnStack + 1) <= kMostBytesOnStack;
}

Dim scratch_bytes(const ParallelRegion& region) {
  Dim bytes = 0;
  add_locals(region.body, bytes);
  return bytes;
}

bool has_code(DType dtype) {
  return is_integer(dtype) || dtype == DType::Bool || dtype == DType::F64 || dtype == DType::F32 ||
         dtype == DType::F16 || dtype == DType::BF16;
}

std::vector<ParallelRegion> parallel_regions_of(const loops::Kernel& kernel) {
  std::vector<ParallelRegion> regions;
  bool serial = false;  // whether the last region takes more statements
  for (const Statement& statement : kernel.body) {
    const auto* loop = std::get_if<Loop>(&statement);
    if (loop != nullptr && is_parallel(loop->mark)) {
      regions.push_back(region_of(*loop));
      serial = false;
      continue;
    }
    CHECK(!std::holds_alternative<Local>(statement) || regions.empty() || serial,
          "kernel {} has a local buffer between its regions", kernel.name);
    if (!serial)
      regions.emplace_back();
    regions.back().body.push_back(statement);
    serial = true;
  }
  return regions;
}

}  // namespace tenon::loops
