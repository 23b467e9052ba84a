#include "report/ceilings.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "codegen/generate.h"
#include "runtime/cpu/thread_pool.h"
#include "target/target.h"

namespace tenon {

using runtime::KernelFunction;
using runtime::shared_pool;

namespace {

constexpr int64_t kTurns = 100'000;
constexpr int64_t kCopied = 128 << 20;        // bytes from memory to memory
constexpr int64_t kCopiedInCache = 16 << 20;  // bytes of each thread
constexpr int64_t kCopiedOnGpu = 256 << 20;   // bytes, which no cache of a GPU holds
constexpr int kAttempts = 5;
constexpr int kDispatches = 100;

// More sums than additions in flight, and fewer than registers.
int64_t count_sums(const Target& target) { return target.vector_registers * 3 / 4; }
int64_t count_lanes(const Target& target) { return target.vector_bytes / 4; }

// The factor is not known when this is compiled. It is 0, so that no sum becomes large or tiny.
std::string multiplying_kernel(const Target& target) {
  return fmt::format(
      R"(kernel multiply(factor: f32[1]) -> (result: f32[{0},{1}]) {{
  local sum: f32[{0},{1}] in private
  for i in 0..{0} unrolled {{
    for lane in 0..{1} vector {{
      sum[i,lane] = 1
    }}
  }}
  for iteration in 0..{2} {{
    for i in 0..{0} unrolled {{
      for lane in 0..{1} vector {{
        sum[i,lane] += sum[i,lane] * factor[0]
      }}
    }}
  }}
  for i in 0..{0} unrolled {{
    for lane in 0..{1} vector {{
      result[i,lane] = sum[i,lane]
    }}
  }}
}})",
      count_sums(target), count_lanes(target), kTurns);
}

constexpr std::string_view kCopyingKernel = R"(kernel copy(from: f32[n]) -> (to: f32[n]) {
  for i in 0..n vector {
    to[i] = from[i]
  }
})";

}  // namespace

double Ceilings::bandwidth_for(double among) const {
  const auto holds = [&](const Bandwidth& level) { return static_cast<double>(level.capacity) >= among; };
  return std::find_if(bandwidths.begin() + static_cast<int64_t>(nearest_shared), bandwidths.end() - 1, holds)
      ->bytes_per_second;
}

namespace {

// Bytes read and written in a second, where so many are copied from one place to another.
double measure_copies_of_gpu(runtime::DeviceMemory& memory, runtime::Workspace& workspace, int64_t bytes) {
  const std::shared_ptr<std::byte[]> from = memory.allocate(bytes), to = memory.allocate(bytes);
  const int64_t times = std::max<int64_t>(1, kCopiedOnGpu / bytes);
  const auto copy = [&] {
    for (int64_t i = 0; i < times; ++i)
      memory.copy(to.get(), from.get(), bytes, workspace);
  };
  copy();  // warms up
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kAttempts; ++i) {
    memory.start_clock(workspace);
    copy();
    fastest = std::min(fastest, memory.stop_clock(workspace));
  }
  return 2.0 * static_cast<double>(bytes * times) / fastest;
}

}  // namespace

Ceilings measure_gpu(const Gpu& gpu, runtime::Device& device) {
  runtime::DeviceMemory& memory = *device.own_memory();
  const std::unique_ptr<runtime::Workspace> workspace = device.make_workspace();
  const auto rate = [&](int64_t bytes) { return measure_copies_of_gpu(memory, *workspace, bytes); };
  return {.flops_per_second = peak_flops(gpu),
          .bandwidths = {{"L2", gpu.level2_bytes, rate(gpu.level2_bytes / 4)},
                         {"memory", std::numeric_limits<int64_t>::max(), rate(kCopiedOnGpu)}},
          .nearest_shared = 0};
}

struct CeilingMeter::Kernels {
  explicit Kernels(const Target& target)
      : multiply(load(multiplying_kernel(target), target)),
        copy(load(kCopyingKernel, target)),
        from(kCopied / sizeof(float), 1.0F),
        to(from) {}

  KernelFunction load(std::string_view text, const Target& target) {
    const loops::Kernel kernel = loops::parse_checked_kernel(text);
    return jit.load(codegen::generate_object(kernel, target, codegen::default_cache())).front();
  }

  codegen::Jit jit;
  KernelFunction multiply, copy;
  std::vector<float> from, to;
};

CeilingMeter::CeilingMeter(const Target& target, int threads)
    : target_(target), threads_(threads), kernels_(std::make_unique<Kernels>(target)) {
  const Caches& caches = target.caches;
  ceilings_.bandwidths = {{"L1", caches.level1_data * threads, 0},
                          {"L2", caches.level2 * threads, 0},
                          {"memory", std::numeric_limits<int64_t>::max(), 0}};
  ceilings_.dispatch_seconds = std::numeric_limits<double>::infinity();
}

CeilingMeter::~CeilingMeter() = default;

void CeilingMeter::measure() {
  for (int i = 0; i < kAttempts; ++i) {
    ceilings_.flops_per_second = std::max(ceilings_.flops_per_second, measure_flops());
    for (Ceilings::Bandwidth& level : ceilings_.bandwidths)
      level.bytes_per_second = std::max(level.bytes_per_second, measure_copies(level.capacity));
    ceilings_.dispatch_seconds = std::min(ceilings_.dispatch_seconds, measure_dispatch());
  }
}

double CeilingMeter::rate(const std::function<void(int64_t thread)>& work) const {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  shared_pool(threads_).run(threads_, [&](int64_t task, int) { work(task); });
  return 1 / std::chrono::duration<double>(Clock::now() - start).count();
}

double CeilingMeter::measure_flops() const {
  const int64_t sums = count_sums(target_) * count_lanes(target_);
  const double rate_of_all = rate([&](int64_t) {
    float factor = 0;
    std::vector<float> result(static_cast<size_t>(sums));
    std::byte* const buffers[] = {reinterpret_cast<std::byte*>(&factor),
                                  reinterpret_cast<std::byte*>(result.data())};
    kernels_->multiply(buffers, nullptr, nullptr, 0, 1);
  });
  return 2.0 * static_cast<double>(sums * kTurns * threads_) * rate_of_all;
}

// What is copied and where it goes take half of the cache together, so that nothing else drives them out.
double CeilingMeter::measure_copies(int64_t capacity) const {
  const int64_t share = kCopied / threads_ / static_cast<int64_t>(sizeof(float));
  const int64_t count = std::min(share, capacity / threads_ / 4 / static_cast<int64_t>(sizeof(float)));
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  const int64_t times = count == share ? 1 : std::max<int64_t>(1, kCopiedInCache / bytes);
  const double rate_of_all = rate([&](int64_t thread) {
    std::byte* const buffers[] = {reinterpret_cast<std::byte*>(kernels_->from.data() + thread * share),
                                  reinterpret_cast<std::byte*>(kernels_->to.data() + thread * share)};
    for (int64_t i = 0; i < times; ++i)
      kernels_->copy(buffers, &count, nullptr, 0, 1);
  });
  return 2.0 * static_cast<double>(bytes * times * threads_) * rate_of_all;
}

// On average, of threads that were just busy and do not sleep yet.
double CeilingMeter::measure_dispatch() const {
  double seconds = 0;
  for (int i = 0; i < kDispatches; ++i)
    seconds += 1 / rate([](int64_t) {});
  return seconds / kDispatches;
}

}  // namespace tenon
