#include "api/port.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "tensor/byte_count.h"

namespace tenon::api {
namespace {

constexpr int kDeviceAlignment = 16;  // kernels of a GPU load several elements at once

}  // namespace

std::string name_of(const tenon_device& device) {
  if (device.type == TENON_DEVICE_CPU || device.type == TENON_DEVICE_CUDA)
    return fmt::format("{}:{}", device.type == TENON_DEVICE_CPU ? "cpu" : "cuda", device.index);
  return fmt::format("device {} of unknown type {}", device.index, device.type);
}

bool is_on_cpu(const tenon_tensor& tensor) {
  return tensor.device.type == TENON_DEVICE_CPU && tensor.device.index == 0;
}

Port::Port(std::string_view role, std::string name, Type type)
    : role_(role),
      type_(std::move(type)),
      text_(std::make_unique<Text>(Text{.name = std::move(name), .type = to_string(type_)})) {
  description_ = {.struct_size = sizeof description_,
                  .name = text_->name.c_str(),
                  .type = text_->type.c_str(),
                  .dtype = -1,
                  .rank = -1,
                  .sizes = nullptr,
                  .dimensions = nullptr};
  if (!type_.is_tensor())
    return;
  const auto& [dtype, shape] = type_.as_tensor();
  if (dtype != DType::String)
    description_.dtype = static_cast<int32_t>(dtype);
  if (!shape.ranked())
    return;
  for (const Dim& dim : shape.dims()) {
    sizes_.push_back(dim.constant().value_or(-1));
    text_->dimensions.push_back(dim.to_string());
  }
  for (const std::string& dimension : text_->dimensions)
    text_->pointers.push_back(dimension.c_str());
  description_.rank = static_cast<int32_t>(shape.rank());
  description_.sizes = sizes_.data();
  description_.dimensions = text_->pointers.data();
}

void Port::check_passable() {
  if (description_.dtype < 0)
    throw unsupported("{} {} is {}, which cannot be passed through the C interface", role_, text_->name,
                      type_);
  if (const std::optional<Extents> extents = type_.as_tensor().shape.extents())
    fixed_bytes_ = count_bytes(*extents);
}

int64_t Port::count_bytes(const Extents& extents) const {
  return with_context([&] { return title(); }, [&] { return byte_count(dtype(), extents); });
}

void Port::check_tensor(const tenon_tensor& tensor, const tenon_device& device) const {
  const bool is_there = tensor.device.type == device.type && tensor.device.index == device.index;
  if (!is_there && !is_on_cpu(tensor))
    throw unsupported("{} is on {}, but the program runs on {}", title(), name_of(tensor.device),
                      name_of(device));
  if (tensor.dtype == description_.dtype)
    return;
  const char* const name = tenon_dtype_name(tensor.dtype);
  throw user_error("{} {} must be {}, but is {}", role_, text_->name, type_,
                   name == nullptr ? "of no dtype" : name);
}

bool Port::fits_sizes(const tenon_tensor& tensor) const {
  if (std::any_of(tensor.sizes, tensor.sizes + tensor.rank, [](int64_t size) { return size < 0; }))
    return false;
  if (!type_.as_tensor().shape.ranked())
    return true;
  if (tensor.rank != static_cast<int32_t>(sizes_.size()))
    return false;
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (sizes_[i] >= 0 && sizes_[i] != tensor.sizes[i])
      return false;
  return true;
}

void Port::check_on_device(const tenon_tensor& tensor, std::span<const int64_t> sizes,
                           const runtime::DeviceMemory& memory) const {
  if (const std::optional<StridedElements> elements = strided(tensor, sizes))
    throw unsupported("{} has the strides [{}], but tensors on {} must be contiguous", title(),
                      fmt::join(elements->strides, ","), name_of(tensor.device));
  if (tensor.data == nullptr)  // it has no elements
    return;
  if (const std::string foreign = memory.describe_foreign(static_cast<const std::byte*>(tensor.data));
      !foreign.empty())
    throw user_error("{} is said to be on {}, but its data is {}", title(), name_of(tensor.device), foreign);
}

void Port::check_input(const tenon_tensor& tensor, const tenon_device& device) const {
  check_tensor(tensor, device);
  if (tensor.rank < 0 || (tensor.rank > 0 && tensor.sizes == nullptr))
    throw user_error("input {} has no sizes", text_->name);
  const std::span<const int64_t> sizes(tensor.sizes, static_cast<size_t>(tensor.rank));
  const auto extents = [&] { return Extents(sizes.begin(), sizes.end()); };
  if (!fits_sizes(tensor))
    throw user_error("input {} must be {}, but is {}", text_->name, type_,
                     tenon::describe(dtype(), extents()));
  check_memory(tensor, sizes, fixed_bytes_ ? *fixed_bytes_ : count_bytes(extents()));
}

void Port::check_output(const tenon_tensor& tensor, const Extents& extents) const {
  check_memory(tensor, extents, fixed_bytes_ ? *fixed_bytes_ : count_bytes(extents));
  const std::optional<StridedElements> elements = strided(tensor, extents);
  if (elements && !elements->is_injective())
    throw user_error("the strides [{}] of output {} place several elements at one address",
                     fmt::join(elements->strides, ","), text_->name);
}

void Port::check_memory(const tenon_tensor& tensor, std::span<const int64_t> sizes, int64_t bytes) const {
  auto wanted = static_cast<uint64_t>(bytes);
  if (const std::optional<StridedElements> elements = strided(tensor, sizes)) {
    const std::optional<uint64_t> spanned = elements->spanned_bytes();
    if (!spanned)
      throw user_error("the strides [{}] of {} {} reach further than can be counted",
                       fmt::join(elements->strides, ","), role_, text_->name);
    wanted = *spanned;
  }
  if (tensor.bytes < wanted)
    throw user_error("{} {} takes {} bytes, but {} are given", role_, text_->name, wanted, tensor.bytes);
  if (bytes == 0)
    return;
  if (tensor.data == nullptr)
    throw user_error("{} {} has no data", role_, text_->name);
  const int alignment = is_on_cpu(tensor)
                            ? info(dtype()).bytes / (kind(dtype()) == DTypeKind::Complex ? 2 : 1)
                            : kDeviceAlignment;
  if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(alignment) != 0)
    throw user_error("the data of {} {} must be aligned to {} bytes", role_, text_->name, alignment);
}

void Port::write_sizes(const Extents& extents, tenon_tensor& tensor) const {
  const auto rank = static_cast<int32_t>(extents.size());
  if (tensor.strides != nullptr && tensor.rank != rank)
    throw user_error("output {} has {} dimensions, but {} strides are given", text_->name, rank, tensor.rank);
  if (tensor.sizes != nullptr) {
    if (tensor.rank < rank)
      throw user_error("output {} has {} dimensions, but there is room for {} sizes", text_->name, rank,
                       tensor.rank);
    std::copy(extents.begin(), extents.end(), tensor.sizes);
  }
  tensor.rank = rank;
}

std::optional<StridedElements> Port::strided(const tenon_tensor& tensor,
                                             std::span<const int64_t> sizes) const {
  if (tensor.strides == nullptr)
    return std::nullopt;
  const StridedElements elements{.sizes = sizes,
                                 .strides = {tensor.strides, sizes.size()},
                                 .element_bytes = static_cast<size_t>(info(dtype()).bytes)};
  return elements.is_contiguous() ? std::nullopt : std::optional(elements);
}

Ports input_ports(const runtime::Program& program) {
  Ports ports;
  for (const InputPort& input : program.inputs)
    ports.emplace_back("input", input.name, input.type);
  return ports;
}

Ports output_ports(const runtime::Program& program) {
  Ports ports;
  for (size_t i = 0; i < program.outputs.size(); ++i)
    ports.emplace_back("output", program.output_names[i], program.slots[program.outputs[i]].type);
  return ports;
}

const tenon_port* describe(const Ports& ports, size_t number) {
  return number < ports.size() ? &ports[number].description() : nullptr;
}

}  // namespace tenon::api
