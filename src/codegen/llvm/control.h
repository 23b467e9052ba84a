// control.h — loops and branches of a kernel's function, as LLVM IR.
#pragma once

#include "codegen/llvm/scalars.h"

namespace tenon::codegen {

class ControlEmitter : protected ScalarEmitter {
 protected:
  using ScalarEmitter::ScalarEmitter;

  // A variable of the function, which becomes a register.
  llvm::AllocaInst* variable(llvm::Type* type, llvm::Value* count = nullptr) {
    llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(entry_, entry_->begin());
    return builder_.CreateAlloca(type, count);
  }

  // variable = begin, begin + step, … while variable + reach ≤ end. Returns the first value that did not run.
  template <class Body>
  llvm::Value* count(llvm::Value* begin, llvm::Value* end, int64_t step, int64_t reach, Body&& body) {
    auto *head = llvm::BasicBlock::Create(context_, "head", function_),
         *iteration = llvm::BasicBlock::Create(context_, "iteration", function_),
         *after = llvm::BasicBlock::Create(context_, "after", function_);
    // Asked before the first iteration and after each, so that what the body needs can be computed before it.
    llvm::Value* limit = builder_.CreateSub(end, builder_.getInt64(reach));
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpSLE(begin, limit), head, after);
    builder_.SetInsertPoint(head);
    builder_.CreateBr(iteration);
    builder_.SetInsertPoint(iteration);
    llvm::PHINode* variable = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    variable->addIncoming(begin, head);
    body(variable);
    llvm::Value* next = builder_.CreateAdd(variable, builder_.getInt64(step), "", true, true);
    variable->addIncoming(next, builder_.GetInsertBlock());
    llvm::BasicBlock* last = builder_.GetInsertBlock();
    builder_.CreateCondBr(builder_.CreateICmpSLE(next, limit), iteration, after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* reached = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    reached->addIncoming(begin, before);
    reached->addIncoming(next, last);
    return reached;
  }

  llvm::Value* condition_of(const loops::Guard& guard) {
    llvm::Value* holds = builder_.getTrue();
    for (const Dim& condition : guard.conditions)
      holds =
          builder_.CreateAnd(holds, builder_.CreateICmpSGE(indices_.value(condition), builder_.getInt64(0)));
    return holds;
  }

  template <class Body>
  void run_where(llvm::Value* condition, Body&& body) {
    auto *then = llvm::BasicBlock::Create(context_, "then", function_),
         *after = llvm::BasicBlock::Create(context_, "after", function_);
    builder_.CreateCondBr(condition, then, after);
    builder_.SetInsertPoint(then);
    body();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }

  llvm::BasicBlock* entry_ = nullptr;
};

}  // namespace tenon::codegen
