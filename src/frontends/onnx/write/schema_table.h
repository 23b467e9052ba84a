// schema_table.h — the table of what ONNX's ops take and give.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon::onnx {

// Kinds of values: a bit for each dtype of tensors, one for sequences and one for optionals.
using Kinds = uint32_t;
constexpr Kinds kSequence = Kinds{1} << 30, kOptional = Kinds{1} << 31;

// What an op takes and gives from opset `since` of its domain on; the last of a list is for all that follow,
// and no outputs are like the inputs.
struct Schema {
  std::string_view op_type;
  int64_t since;
  std::vector<Kinds> inputs, outputs = {};
  std::string_view domain = "";
};

// As the schemas of ONNX 1.23 say, of the ops that we write. A row for each opset that changed something, in
// order.
const std::vector<Schema>& all_schemas();

}  // namespace tenon::onnx
