// control_flow.h — if, while and scan as data: what a program keeps of such a node, so that it runs where
// there are no ops. docs/compile.md says how it is saved.
#pragma once

#include <span>
#include <vector>

#include "tensor/datum.h"

namespace tenon::runtime {

struct ControlFlow {
  enum class Kind : uint8_t { If, While, Scan };

  Kind kind = Kind::If;
  // Its operands, in this order: of a while whether there is a count and a first condition; of an if the
  // condition, and as many as are captured; of a loop those carried, of a scan those scanned, those captured.
  bool has_trip_count = false, has_condition = false;
  uint64_t carried = 0, scanned = 0, captured = 0;
  // Of a scan: see ops/control.h.
  std::vector<int64_t> axes = {}, reversed = {}, output_axes = {}, output_reversed = {};
  bool ends_by_count = false;  // nothing can end it before

  // "if", "while" or "scan"
  std::string_view name() const;
  // Inputs of the body before those carried, and outputs: of a while, the iteration, and whether to go on.
  size_t leading() const { return kind == Kind::While ? 1 : 0; }
  uint64_t operand_count() const {
    return uint64_t{has_trip_count} + uint64_t{has_condition} + carried + scanned + captured;
  }
};

// What a run gives it, by what it is.
struct ControlOperands {
  const Tensor *trip_count = nullptr, *condition = nullptr;
  std::span<const Datum> carried, scanned, captured;

  ControlOperands(const ControlFlow& control, std::span<const Datum> operands);
};

}  // namespace tenon::runtime
