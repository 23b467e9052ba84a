// indices.h — sizes and loop variables, and what is computed of them, as LLVM values.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/dim.h"

namespace tenon {
struct DimAtom;
}

namespace tenon::codegen {

class IndexBuilder {
 public:
  explicit IndexBuilder(llvm::IRBuilder<>& builder) : builder_(builder) {}

  // What a symbol stands for from now on; with several lanes, the value is that of the first.
  void set(const std::string& symbol, llvm::Value* value, int64_t lanes = 1);

  // The value in the first lane.
  llvm::Value* value(const Dim& dim) { return emit(dim, 1); }
  // In each.
  llvm::Value* values(const Dim& dim, int64_t lanes) { return emit(dim, lanes); }
  llvm::Value* lane_numbers(int64_t lanes);  // 0, 1, …

 private:
  llvm::Value* emit(const Dim& dim, int64_t lanes);
  llvm::Value* emit(const DimAtom& atom, int64_t lanes);
  llvm::Value* symbol(const std::string& name, int64_t lanes);
  llvm::Value* divide(const DimAtom& atom, llvm::Value* a, llvm::Value* b, int64_t lanes);
  llvm::Value* number(int64_t value, int64_t lanes);

  struct Symbol {
    llvm::Value* value;
    bool moves;  // from lane to lane
  };
  llvm::IRBuilder<>& builder_;
  std::map<std::string, Symbol> symbols_;
};

// By how much a dim grows when the symbol grows by one, where that is always the same.
std::optional<Dim> slope_of(const Dim& dim, const std::string& symbol);

}  // namespace tenon::codegen
