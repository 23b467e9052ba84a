// container.h — what a GGUF file holds: keys with values, and tensors, which stay in the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "frontends/gguf/block_type.h"

namespace tenon::gguf {

// Many elements, which are not kept: no model is made of them.
struct KeyArray {
  std::string_view element_type;
  uint64_t count;
};
using KeyValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, KeyArray>;

struct TensorInfo {
  const BlockType* type;
  Extents extents;  // the elements along the last axis lie side by side
  std::span<const std::byte> bytes;
};

// Whether the file starts as one of GGUF does.
bool is_gguf(const MappedFile& file);

// Versions 2 and 3, little-endian. Everything in the file is checked before it is used.
class Container {
 public:
  explicit Container(std::shared_ptr<const MappedFile> file);

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string_view, KeyValue>& keys() const { return keys_; }
  const std::map<std::string_view, TensorInfo>& tensors() const { return tensors_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string_view, KeyValue> keys_;
  std::map<std::string_view, TensorInfo> tensors_;
};

}  // namespace tenon::gguf
