// A run on fixed sizes allocates nothing, from the second on; and errors need no memory to be told.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <set>
#include <thread>

#include "api/c_interface.h"
#include "tensor/tensor.h"

namespace {
std::atomic<int64_t> allocations = 0;
std::atomic<void (*)()> refuse = nullptr;  // throws in place of an allocation
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (refuse != nullptr)
    refuse.load()();
  if (void* memory = std::malloc(size))
    return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  if (void* memory = std::aligned_alloc(static_cast<size_t>(alignment), size))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

// In place of the one of the C library, from where the memory of arenas and tensors comes.
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  void* memory = nullptr;
  return ::posix_memalign(&memory, std::max(alignment, sizeof memory), size) == 0 ? memory : nullptr;
}

namespace tenon {
namespace {

TEST(Allocations, AreAllCounted) {
  int64_t before = allocations;
  const Tensor tensor(DType::F32, {16});
  EXPECT_GE(allocations, before + 2);  // its elements, and who owns them
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  before = allocations;
  EXPECT_NE(std::make_unique<Line>(), nullptr);
  EXPECT_EQ(allocations, before + 1);
}

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

// What a load of no model at all comes to while `refusal` stands in the way of allocations.
std::string error_of_load(void (*refusal)(), tenon_status status) {
  tenon_model* model = nullptr;
  refuse = refusal;
  const tenon_status got = tenon_load("there is no such model.onnx", &model);
  refuse = nullptr;
  EXPECT_EQ(got, status);
  EXPECT_EQ(model, nullptr);
  return tenon_error_message();
}

TEST(Allocations, WithoutMemoryThereIsAnErrorNevertheless) {
  load_text("graph main(%x: f32[2]) { return %x }");  // what is made once must not fail here
  EXPECT_EQ(error_of_load([] { throw std::bad_alloc(); }, TENON_USER_ERROR), "there is not enough memory");
  EXPECT_EQ(error_of_load([] { throw 7; }, TENON_INTERNAL_ERROR), "something that is no error was thrown");
}

// Also where it is the message for which there is none. Each thread keeps one of its own.
TEST(Allocations, WithoutMemoryForTheMessageThereIsAnErrorNevertheless) {
  load_text("graph main(%x: f32[2]) { return %x }");
  static int64_t left = 0;
  std::set<std::string> messages;
  for (int64_t count = 0; count < 1000; ++count) {
    std::thread([&] {
      left = count;
      messages.insert(error_of_load(
          [] {
            if (left-- == 0)
              throw std::bad_alloc();
          },
          TENON_USER_ERROR));
    }).join();
    if (messages.contains("cannot open there is no such model.onnx: No such file or directory"))
      break;
  }
  EXPECT_EQ(messages, (std::set<std::string>{
                          "there is not enough memory", "there is not enough memory to say what went wrong",
                          "cannot open there is no such model.onnx: No such file or directory"}));
}

}  // namespace
}  // namespace tenon
