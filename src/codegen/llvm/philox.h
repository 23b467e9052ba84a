// philox.h — the rounds of the counter-based generator Philox4x32-10.
#pragma once

#include "codegen/llvm/elements.h"

namespace tenon::codegen {

// Of i64, or vectors of them: the first or the last 64 bits for a key, a call and an element, as
// tenon::philox gives them.
llvm::Value* emit_philox(Builder& builder, loops::Function function,
                         std::span<llvm::Value* const> key_call_element);

}  // namespace tenon::codegen
