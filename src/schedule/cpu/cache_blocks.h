// cache_blocks.h — cache blocking of contractions: how rows and reduction iterations are split.
#pragma once

#include "lowering/contraction_plan.h"
#include "schedule/context.h"

namespace tenon::schedule {

// The operands of a contraction that are packed.
struct Packing {
  std::optional<lowering::PackedB> b = {};
  bool a = false;
};

// Around the register tiles of the sum. Within the nest of another kernel, `may_part` is false: rows are not
// split.
lowering::CacheBlocks choose_cache_blocks(const loops::Definition& sum, const lowering::GemmTile& tile,
                                          const Packing& packing, bool may_part, const Context& context);

}  // namespace tenon::schedule
