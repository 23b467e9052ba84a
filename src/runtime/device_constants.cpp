#include "runtime/device_constants.h"

namespace tenon::runtime {
namespace {

constexpr int64_t kAlignment = 256;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::vector<size_t> constants_read(const Program& program) {
  std::vector<size_t> read;
  std::vector<bool> is_known(program.slots.size());
  for (const Step& step : program.steps)
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      for (size_t slot : kernel->reads) {
        while (program.slots[slot].alias && program.slots[slot].home != Home::Own)
          slot = *program.slots[slot].alias;
        if (program.slots[slot].home == Home::Constant && !is_known[slot])
          read.push_back(slot);
        is_known[slot] = true;
      }
  return read;
}

}  // namespace

DeviceConstants upload_constants(const Program& program, const std::vector<Tensor>& constants,
                                 Device& device) {
  DeviceConstants uploaded{.pointers = std::vector<std::byte*>(program.slots.size())};
  const std::vector<size_t> read = constants_read(program);
  if (read.empty())
    return uploaded;
  int64_t bytes = 0;
  for (size_t slot : read)
    bytes += aligned(std::ssize(constants[slot].bytes()));
  DeviceMemory& memory = *device.own_memory();
  uploaded.memory = memory.allocate(bytes);
  const std::unique_ptr<Workspace> workspace = device.make_workspace();
  std::byte* place = uploaded.memory.get();
  for (size_t slot : read) {
    const std::span<const std::byte> elements = constants[slot].bytes();
    uploaded.pointers[slot] = place;
    memory.upload(place, elements.data(), std::ssize(elements), *workspace);
    place += aligned(std::ssize(elements));
  }
  memory.finish(*workspace);
  return uploaded;
}

}  // namespace tenon::runtime
