// lane_parts.h — vectors longer than an instruction takes.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <vector>

namespace tenon::codegen {

// Of a vector, or 1.
int64_t count_lanes(const llvm::Value* value);

// What f gives for `each` lanes of all vectors at a time, joined. Both numbers are powers of two.
llvm::Value* in_parts(llvm::IRBuilderBase& builder, const std::vector<llvm::Value*>& vectors, int64_t lanes,
                      int64_t each, const std::function<llvm::Value*(const std::vector<llvm::Value*>&)>& f);

}  // namespace tenon::codegen
