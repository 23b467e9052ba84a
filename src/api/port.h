// port.h — inputs and outputs: how they are described, and whether a tensor of the caller's fits.
#pragma once

#include <tenon/tenon.h>

#include "api/strided_copy.h"
#include "ir/graph.h"
#include "runtime/device.h"
#include "runtime/program.h"

namespace tenon::api {

class Port {
 public:
  Port(std::string_view role, std::string name, Type type);

  const tenon_port& description() const { return description_; }
  const Extents& sizes() const { return sizes_; }  // -1 where one is not fixed
  DType dtype() const { return type_.as_tensor().dtype; }

  // A user_error where it cannot be passed through the C interface: what follows is for those that can.
  void check_passable();
  // Where the tensor of a program for this device is, and of what dtype.
  void check_tensor(const tenon_tensor& tensor, const tenon_device& device) const;
  // That and all else, but for how dimensions of one name go together.
  void check_input(const tenon_tensor& tensor, const tenon_device& device) const;
  // That there is memory for an output of these sizes.
  void check_output(const tenon_tensor& tensor, const Extents& extents) const;
  // That a tensor of these sizes that is said to be on the device is, and is contiguous.
  void check_on_device(const tenon_tensor& tensor, std::span<const int64_t> sizes,
                       const runtime::DeviceMemory& memory) const;
  // Of an output.
  void write_sizes(const Extents& extents, tenon_tensor& tensor) const;

  int64_t count_bytes(const Extents& extents) const;
  // "output y"
  std::string title() const { return fmt::format("{} {}", role_, text_->name); }

  // The elements of a tensor of these sizes, where they are not contiguous.
  std::optional<StridedElements> strided(const tenon_tensor& tensor, std::span<const int64_t> sizes) const;

 private:
  void check_memory(const tenon_tensor& tensor, std::span<const int64_t> sizes, int64_t bytes) const;
  bool fits_sizes(const tenon_tensor& tensor) const;

  // On the heap, so that what the description points to stays where it is when the port moves.
  struct Text {
    std::string name, type;
    std::vector<std::string> dimensions = {};
    std::vector<const char*> pointers = {};  // to the dimensions
  };

  std::string_view role_;
  Type type_;
  std::unique_ptr<Text> text_;
  Extents sizes_ = {};
  std::optional<int64_t> fixed_bytes_ = {};  // of one that can be passed, where the sizes are fixed
  tenon_port description_ = {};
};

// "cuda:0"
std::string name_of(const tenon_device& device);
bool is_on_cpu(const tenon_tensor& tensor);

using Ports = std::vector<Port>;
Ports input_ports(const Graph& graph);
Ports output_ports(const Graph& graph);
Ports input_ports(const runtime::Program& program);
Ports output_ports(const runtime::Program& program);

// NULL where there is no such port.
const tenon_port* describe(const Ports& ports, size_t number);

}  // namespace tenon::api
