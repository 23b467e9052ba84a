// scalars.h — expressions of a kernel, and the elements they read and write, as LLVM values: one at a time,
// or in the lanes of a vector.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>

#include "codegen/llvm/elements.h"
#include "codegen/llvm/indices.h"
#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::codegen {

struct Storage {
  llvm::Value* pointer;
  DType dtype;
  std::vector<Dim> sizes;
  // Of its own, and those of all others: no two buffers overlap, unless the kernel consists of one statement
  // that writes each element where it read it, and so must read it first.
  llvm::MDNode* scope = nullptr;
  llvm::MDNode* others = nullptr;
  bool streamed = false;
};

// The vectorised loop.
struct Lanes {
  std::string variable;
  int64_t count;
  // The iteration of the first lane, but for a multiple of their number; nothing where it may be any.
  std::optional<Dim> begin = std::nullopt;
};

// What the statements of a kernel are made of; emit.cpp sets what they stand in.
class ScalarEmitter {
 protected:
  ScalarEmitter(const Target& target, llvm::Module& module)
      : target_(target),
        context_(module.getContext()),
        builder_(context_),
        elements_(
            builder_,
            {.fused_multiply_add = target.fused_multiply_add, .scales_registers = target.has("+avx512f")},
            [this](llvm::Value* condition) { fail_where(condition); }),
        indices_(builder_) {}

  // Where an element lies, in elements from the start of its buffer: of the first lane, or of each.
  struct Offset {
    llvm::Value* first = nullptr;     // where the lanes are contiguous, strided or the same
    std::optional<int64_t> step = 0;  // from lane to lane
    llvm::Value* lanes = nullptr;     // where they do not
  };

  int64_t lane_count() const { return lanes_ ? lanes_->count : 1; }
  // Whether the value varies across lanes.
  bool varies(const Dim& dim) const;
  bool varies(const loops::Scalar& scalar) const;
  bool varies(const loops::Place& place) const;

  llvm::Value* value_of(const loops::Scalar& scalar);
  llvm::Value* load(const std::string& name, const std::vector<loops::Scalar>& at);
  void store(const loops::Place& place, llvm::Value* value);
  // Every cache line of what contiguous lanes will read, or that of the first lane.
  void fetch(const loops::Place& place);
  void fetch(llvm::Value* start, int64_t bytes);
  Offset offset_of(const Storage& storage, const std::vector<loops::Scalar>& at);
  llvm::Value* address(const Storage& storage, llvm::Value* offset);
  static llvm::Align alignment(DType dtype) { return llvm::Align(static_cast<uint64_t>(info(dtype).bytes)); }
  // As one of a buffer that no other overlaps.
  void mark(llvm::Instruction* access, const Storage& storage);

  const Target& target_;
  llvm::LLVMContext& context_;
  Builder builder_;
  ElementBuilder elements_;
  IndexBuilder indices_;
  llvm::Function* function_ = nullptr;
  std::map<std::string, Storage> storage_;
  std::optional<Lanes> lanes_;
  llvm::Value* mask_ = nullptr;                 // the active lanes; null where all are
  bool mask_is_partial_ = false;                // it masks the last lanes, but never all
  const loops::Place* streamed_ = nullptr;      // what the loop stores non-temporally
  std::map<std::string, llvm::Value*> locals_;  // of the combine that is being computed

  // What is known of the statement that is being computed. What is read once need not be read again where it
  // may not be read at all, which takes a branch for each lane on machines without masks.
  struct Known {
    std::map<const void*, llvm::Value*> values;
    std::vector<std::pair<loops::Scalar, llvm::Value*>> loads;

    void clear() { *this = {}; }
  };
  Known known_;
  // Rows and columns computed from one number may be contiguous, though neither is alone.
  static std::optional<Dim> whole_offset(const Storage& storage, const std::vector<loops::Scalar>& at);
  // What loads give that were made ahead, in the iteration of this number; see transposes.h.
  struct Columns {
    loops::Scalar load;
    std::vector<llvm::Value*> values;  // as stored
  };
  std::vector<Columns> columns_;
  int64_t column_ = 0;

 private:
  // Ends the kernel where the condition holds for an active lane, before that reads or writes.
  void fail_where(llvm::Value* condition);

  llvm::Value* compute(const loops::Scalar& scalar);
  llvm::Value* load_once(const loops::Scalar& scalar);
  static bool is_limited(const loops::Scalar& scalar);
  llvm::Value* load_word(const loops::Scalar& first);
  // Whether something must not be computed where it is not chosen.
  static bool needs_care(const loops::Scalar& scalar);
  llvm::Value* choose(const loops::Scalar& scalar);
  // Of two blocks, one runs; what is computed in one is not known after it.
  template <class Then, class Otherwise>
  llvm::Value* branch(llvm::Value* condition, Then&& then, Otherwise&& otherwise);
  llvm::Value* choose_by_lane(llvm::Value* condition, const loops::Scalar& then,
                              const loops::Scalar& otherwise);

  llvm::Value* first_lane(const loops::Scalar& index);
  // Which elements the lanes read, counted from the first of them in memory, where these lie near each other
  // and the order is the same in each iteration: lanes may read elements 0, 0, 1, 1 of 2, or 0, 2, 4, 6 of 7.
  struct Choice {
    int64_t first;           // less the place of the first lane
    std::vector<int> lanes;  // which of the elements from there on
    int64_t count;           // of these
  };
  std::optional<Choice> find_choice(const Storage& storage, const std::vector<loops::Scalar>& at);
  llvm::Value* load_choice(const Storage& storage, const std::vector<loops::Scalar>& at,
                           const Choice& choice);
  // The places of a gather or scatter.
  llvm::Value* addresses(const Storage& storage, const Offset& offset);
  llvm::Instruction* stream(llvm::Value* stored, llvm::Value* to);
};

}  // namespace tenon::codegen
