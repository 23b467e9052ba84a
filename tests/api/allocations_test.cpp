// A run on fixed sizes allocates nothing, from the second on.
#include <atomic>
#include <cstdlib>
#include <new>

#include "api/c_interface.h"

namespace {
std::atomic<int64_t> allocations = 0;
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size))
    return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tenon {
namespace {

TEST(Allocations, NoneFromTheSecondRunOn) {
  const ProgramHandle program = compile_text(R"(graph main(%x: f32[4,4], %w: f32[4,4]) {
    %0 = matmul(%x, %w)
    %1 = reduce_max(%0, axes=[1], keep_dims=true)
    %2 = sub(%0, %1)
    %3 = matmul(%2, %x)
    return %3
  })");
  Array<float> x{std::vector<float>(16, 1), {4, 4}}, y = x;
  std::vector<tenon_tensor> inputs = {x.tensor(TENON_F32), x.tensor(TENON_F32)};
  tenon_tensor output = y.tensor(TENON_F32);
  const auto run_once = [&] { return tenon_run(program.get(), inputs.data(), 2, &output, 1, nullptr); };
  ASSERT_EQ(run_once(), TENON_OK) << tenon_error_message();
  const int64_t before = allocations;
  for (int i = 0; i < 3; ++i)
    run_once();
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace tenon
