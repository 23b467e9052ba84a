#include "codegen/llvm/emit.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/error.h"
#include "codegen/llvm/dot_bf16x2.h"
#include "codegen/llvm/dot_i8x4.h"
#include "codegen/llvm/transposes.h"
#include "codegen/vectors.h"
#include "loops/overwrite.h"

namespace tenon::codegen {
namespace {

using llvm::Value;
using loops::Assign;
using loops::Buffer;
using loops::Call;
using loops::Function;
using loops::Guard;
using loops::Kernel;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Place;
using loops::Prefetch;
using loops::Scalar;
using loops::Statement;

constexpr int64_t kMostIterationsUnrolled = 64, kMostVectorsUnrolled = 4;

class Emitter : private TransposeEmitter {
 public:
  Emitter(const Kernel& kernel, const Target& target, llvm::Module& module)
      : TransposeEmitter(target, module), kernel_(kernel), module_(module) {}

  void emit(const loops::ParallelRegion& region, const std::string& name) {
    llvm::Type *pointer = builder_.getPtrTy(), *number = builder_.getInt64Ty();
    function_ = llvm::Function::Create(
        llvm::FunctionType::get(number, {pointer, pointer, pointer, number, number}, false),
        llvm::Function::ExternalLinkage, name, module_);
    function_->addFnAttr("prefer-vector-width", std::to_string(8 * target_.vector_bytes));
    // Arm's generic processor takes instructions in order: code for it loads so early that registers run out.
    if (target_.architecture == Architecture::Arm64)
      function_->addFnAttr("tune-cpu", "neoverse-v1");
    entry_ = llvm::BasicBlock::Create(context_, "entry", function_);
    auto* start = llvm::BasicBlock::Create(context_, "start", function_);
    builder_.SetInsertPoint(entry_);
    read_arguments();
    builder_.SetInsertPoint(start);
    if (region.parallel.empty())
      run(region.body);
    else
      run_iterations(region);
    if (streams_ && target_.architecture == Architecture::X86_64)  // others must find what was written
      builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    release_tiles();
    builder_.CreateRet(builder_.getInt64(0));
    builder_.SetInsertPoint(entry_);
    configure_tiles();
    builder_.CreateBr(start);
  }

 private:
  // --- arguments and buffers ---

  void read_arguments() {
    Value* buffers = function_->getArg(0);
    std::vector<Buffer> all = kernel_.inputs;
    all.insert(all.end(), kernel_.outputs.begin(), kernel_.outputs.end());
    for (size_t i = 0; i < all.size(); ++i) {
      Value* slot = builder_.CreateConstGEP1_64(builder_.getPtrTy(), buffers, i);
      storage_.emplace(all[i].name, Storage{.pointer = builder_.CreateLoad(builder_.getPtrTy(), slot),
                                            .dtype = all[i].dtype,
                                            .sizes = all[i].sizes,
                                            .streamed = all[i].space == loops::Space::Streamed});
    }
    keep_apart();
    const std::vector<std::string> symbols = kernel_.size_symbols();
    for (size_t i = 0; i < symbols.size(); ++i) {
      Value* slot = builder_.CreateConstGEP1_64(builder_.getInt64Ty(), function_->getArg(1), i);
      indices_.set(symbols[i], builder_.CreateLoad(builder_.getInt64Ty(), slot));
    }
  }

  // Of several outputs, those that may lie in the memory of inputs.
  std::set<std::pair<std::string, std::string>> may_be_same() const {
    std::set<std::pair<std::string, std::string>> same;
    for (size_t output = 0; kernel_.outputs.size() > 1 && output < kernel_.outputs.size(); ++output)
      for (size_t input = 0; input < kernel_.inputs.size(); ++input)
        if (can_overwrite(kernel_, input, output))
          same.emplace(kernel_.inputs[input].name, kernel_.outputs[output].name);
    return same;
  }

  void keep_apart() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain();
    std::map<std::string, llvm::MDNode*> scopes;
    for (const auto& [name, storage] : storage_)
      scopes.emplace(name, metadata.createAnonymousAliasScope(domain));
    const std::set<std::pair<std::string, std::string>> same = may_be_same();
    for (auto& [name, storage] : storage_) {
      std::vector<llvm::Metadata*> others;
      for (const auto& [other, scope] : scopes)
        if (other != name && !same.contains({name, other}) && !same.contains({other, name}))
          others.push_back(scope);
      storage.scope = llvm::MDNode::get(context_, {scopes.at(name)});
      storage.others = llvm::MDNode::get(context_, others);
    }
  }

  // --- statements ---

  void run(const std::vector<Statement>& body) {
    std::vector<std::string> locals;
    const Dim scratch_before = scratch_used_;
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<Local>(&statement))
        locals.push_back(local->buffer.name);
      std::visit([&](const auto& each) { run(each); }, statement);
    }
    for (const std::string& name : locals)
      storage_.erase(name);
    scratch_used_ = scratch_before;
  }

  void run(const Local& local) {
    const Buffer& buffer = local.buffer;
    Storage storage{nullptr, buffer.dtype, buffer.sizes};
    if (loops::lies_on_stack(buffer)) {
      llvm::AllocaInst* place = variable(llvm::ArrayType::get(
          builder_.getInt8Ty(), static_cast<uint64_t>(*loops::padded_bytes(buffer).constant())));
      place->setAlignment(llvm::Align(kCacheLine));
      storage.pointer = place;
    } else {
      storage.pointer =
          builder_.CreateGEP(builder_.getInt8Ty(), function_->getArg(2), indices_.value(scratch_used_));
      scratch_used_ = scratch_used_ + loops::padded_bytes(buffer);
    }
    storage_.insert_or_assign(buffer.name, storage);
  }

  void run(const Call& call) { throw unsupported("kernel {} calls {}", kernel_.name, call.routine); }

  void run(const loops::Copy& copy) {
    throw unsupported("kernel {} copies to shared '{}'", kernel_.name, copy.to.buffer);
  }

  void run(const Prefetch& each) { fetch(each.place); }

  void run(const Guard& guard) {
    run_where(condition_of(guard), [&] { run(guard.body); });
  }

  // The iterations that the caller asks for, numbered through all of the nested loops. Where the outer ones
  // stand is found out once for each run of the innermost, because a division takes longer than many an
  // iteration.
  void run_iterations(const loops::ParallelRegion& region) {
    std::vector<Value*> counts;
    for (const Loop& loop : region.parallel)
      counts.push_back(indices_.value(loops::iterations_of(loop)));
    Value *begin = function_->getArg(3), *end = function_->getArg(4);
    if (counts.size() == 1)
      return run_iterations(region.parallel.front(), begin, end, region.body);
    const auto pick = [&](llvm::Intrinsic::ID which, Value* a, Value* b) {
      return builder_.CreateBinaryIntrinsic(which, a, b);
    };
    Value* const one = builder_.getInt64(1);
    Value* const inner = pick(llvm::Intrinsic::smax, counts.back(), one);
    Value* const last_run =
        builder_.CreateUDiv(builder_.CreateAdd(end, builder_.CreateSub(inner, one)), inner);
    count(builder_.CreateUDiv(begin, inner), last_run, 1, 1, [&](Value* run) {
      Value* const first = builder_.CreateMul(run, inner);
      for (size_t i = counts.size() - 1; i-- > 0;) {
        set_iteration(region.parallel[i], i == 0 ? run : builder_.CreateURem(run, counts[i]));
        run = i == 0 ? run : builder_.CreateUDiv(run, counts[i]);
      }
      run_iterations(region.parallel.back(),
                     builder_.CreateSub(pick(llvm::Intrinsic::smax, begin, first), first),
                     pick(llvm::Intrinsic::smin, builder_.CreateSub(end, first), inner), region.body);
    });
  }
  void run_iterations(const Loop& loop, Value* begin, Value* end, const std::vector<Statement>& body) {
    count(begin, end, 1, 1, [&](Value* iteration) {
      set_iteration(loop, iteration);
      run(body);
    });
  }
  void set_iteration(const Loop& loop, Value* iteration) {
    indices_.set(loop.variable,
                 builder_.CreateAdd(
                     indices_.value(loop.begin),
                     builder_.CreateMul(iteration, builder_.getInt64(static_cast<uint64_t>(loop.step)))));
  }

  void run(const Loop& loop) {
    const std::optional<int64_t> iterations = loops::iterations_of(loop).constant();
    if (loop.mark == Mark::Unrolled && iterations && *iterations <= kMostIterationsUnrolled) {
      for (int64_t i = 0; i < *iterations; ++i) {
        indices_.set(loop.variable,
                     builder_.CreateAdd(indices_.value(loop.begin),
                                        builder_.getInt64(static_cast<uint64_t>(i * loop.step))));
        run(loop.body);
      }
      return;
    }
    if (const std::optional<TileNest> nest = find_tiles(loop))
      return run_tiles(*nest);
    if (const std::optional<TransposedNest> nest = find_transposed(loop);
        nest && can_vectorise(nest->lanes, kernel_, target_))
      run_transposed(*nest);
    else if (loop.mark == Mark::Vector && !lanes_ && can_vectorise(loop, kernel_, target_))
      run_vectors(loop);
    else
      run_serially(loop, indices_.value(loop.begin), indices_.value(loop.end));
  }

  void run_transposed(const TransposedNest& nest) {
    const Loop& lanes = nest.lanes;
    Value* rest = run_squares(
        nest, [&] { run(lanes.body); }, [&](Value* begin, Value* end) { run_some(lanes, begin, end); });
    if (!has_whole_squares_alone(nest.along, nest.side))
      run_serially(nest.along, rest, indices_.value(nest.along.end));
  }

  void run_serially(const Loop& loop, Value* begin, Value* end) {
    count(begin, end, loop.step, 1, [&](Value* variable) {
      indices_.set(loop.variable, variable);
      run(loop.body);
    });
  }

  // The vector loop, then the remainder: in one masked vector, or scalar.
  void run_vectors(const Loop& loop) {
    const int64_t lanes = lanes_for(loop, target_);
    const std::vector<const Assign*> folded = find_folded(loop);
    for (const Assign* assign : folded)
      start_partial_results(*assign, lanes);
    Value *begin = indices_.value(loop.begin), *end = indices_.value(loop.end);
    std::optional<int64_t> iterations = loops::iterations_of(loop).constant();
    std::optional<Dim> known_begin = loop.begin;
    if (Value* aligned = begin_stream(loop, begin, end)) {
      run_some(loop, begin, aligned);
      begin = aligned;
      iterations.reset();
      known_begin.reset();
    }
    lanes_ = Lanes{loop.variable, lanes, known_begin};
    const auto run_lanes = [&](Value* variable) {
      indices_.set(loop.variable, variable, lanes);
      run(loop.body);
    };
    Value* rest = begin;
    if (iterations && *iterations / lanes <= kMostVectorsUnrolled)
      for (int64_t i = 0; i < *iterations / lanes;
           ++i, rest = builder_.CreateAdd(begin, builder_.getInt64(static_cast<uint64_t>(i * lanes))))
        run_lanes(rest);
    else
      rest = count(begin, end, lanes, lanes, run_lanes);
    lanes_.reset();
    streamed_ = nullptr;
    const bool masks = can_mask(loop.body, target_);
    if (masks && !(iterations && *iterations % lanes == 0))
      run_some(loop, rest, end);
    for (const Assign* assign : folded)
      finish_partial_results(*assign, lanes);
    if (!masks && !(iterations && *iterations % lanes == 0))
      run_serially(loop, rest, end);
  }

  // Fewer iterations than lanes: in one masked vector, or scalar.
  void run_some(const Loop& loop, Value* begin, Value* end) {
    if (!can_mask(loop.body, target_))
      return run_serially(loop, begin, end);
    const int64_t lanes = lanes_for(loop, target_);
    run_where(builder_.CreateICmpSLT(begin, end), [&] {
      lanes_ = Lanes{loop.variable, lanes};
      Value* left = repeat(builder_, builder_.CreateSub(end, begin), lanes);
      mask_ = builder_.CreateICmpSLT(indices_.lane_numbers(lanes), left);
      mask_is_partial_ = true;
      indices_.set(loop.variable, begin, lanes);
      run(loop.body);
      mask_ = nullptr;
      mask_is_partial_ = false;
      lanes_.reset();
    });
  }

  // Where the loop streams a contiguous output: the iteration from which on stores are aligned, as
  // non-temporal stores must be. Null where it does not.
  Value* begin_stream(const Loop& loop, Value* begin, Value* end) {
    for (const Statement& statement : loop.body) {
      const auto* assign = std::get_if<Assign>(&statement);
      if (assign == nullptr || !assign->combine.empty())
        continue;
      for (const Place& place : assign->places) {
        const Storage& storage = storage_.at(place.buffer);
        if (!storage.streamed)
          continue;
        lanes_ = Lanes{loop.variable, lanes_for(loop, target_)};
        indices_.set(loop.variable, begin, lanes_->count);
        const Offset offset = offset_of(storage, place.at);
        lanes_.reset();
        if (offset.step != 1)
          continue;
        streamed_ = &place;
        streams_ = true;
        Value* at = builder_.CreatePtrToInt(address(storage, offset.first), builder_.getInt64Ty());
        Value* missing = builder_.CreateURem(builder_.CreateNeg(at),
                                             builder_.getInt64(static_cast<uint64_t>(target_.vector_bytes)));
        missing =
            builder_.CreateUDiv(missing, builder_.getInt64(static_cast<uint64_t>(info(storage.dtype).bytes)));
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder_.CreateAdd(begin, missing), end);
      }
    }
    return nullptr;
  }

  // --- assignments ---

  void run(const Assign& assign) {
    known_.clear();
    if (adds_product(assign))
      return add_product(assign);
    std::vector<Value*> coming;
    for (const Scalar& value : assign.values)
      coming.push_back(value_of(value));
    if (const auto partial = partial_results_.find(&assign); lanes_ && partial != partial_results_.end()) {
      for (Value*& value : coming)
        value = repeat(builder_, value, lanes_->count);
      fold(assign, partial->second, coming, lanes_->count);
      return;
    }
    if (!assign.combine.empty()) {
      std::vector<Value*> there;
      for (size_t i = 0; i < assign.places.size(); ++i)
        there.push_back(load(assign.places[i].buffer, assign.places[i].at));
      coming = combine(assign, there, coming);
    }
    for (size_t i = 0; i < assign.places.size(); ++i)
      store(assign.places[i], coming[i]);
  }

  // y += a * b, which is one instruction, as the sum of products of bytes or pairs is.
  bool adds_product(const Assign& assign) const {
    const Scalar& value = assign.values.front();
    if (assign.combine != "+" || value.kind() != Scalar::Kind::Apply)
      return false;
    return value.function() == Function::DotI8x4 || value.function() == Function::DotBf16x2 ||
           ((value.dtype() == DType::F32 || value.dtype() == DType::F64) &&
            value.function() == Function::Multiply && target_.fused_multiply_add);
  }

  void add_product(const Assign& assign) {
    const std::vector<Scalar>& factors = assign.values.front().operands();
    Value *a = value_of(factors[0]), *b = value_of(factors[1]);
    const auto partial = partial_results_.find(&assign);
    const bool folds = lanes_ && partial != partial_results_.end();
    const Place& place = assign.places.front();
    llvm::AllocaInst* sum = folds ? partial->second.values.front() : nullptr;
    Value* there = folds ? builder_.CreateLoad(sum->getAllocatedType(), sum) : load(place.buffer, place.at);
    if (folds || a->getType()->isVectorTy() || b->getType()->isVectorTy() || there->getType()->isVectorTy()) {
      a = repeat(builder_, a, lane_count());
      b = repeat(builder_, b, lane_count());
      there = repeat(builder_, there, lane_count());
    }
    Value* result = nullptr;
    switch (assign.values.front().function()) {
      case Function::DotI8x4:
        result = emit_dot_bytes(builder_, there, a, b, target_);
        break;
      case Function::DotBf16x2:
        result = emit_dot_pairs(builder_, there, a, b, target_);
        break;
      default:
        result = builder_.CreateIntrinsic(there->getType(), llvm::Intrinsic::fma, {a, b, there});
    }
    if (folds) {
      builder_.CreateStore(mask_ == nullptr ? result : builder_.CreateSelect(mask_, result, there), sum);
      builder_.CreateStore(builder_.getTrue(), partial->second.begun);
    } else {
      store(place, result);
    }
  }

  DType dtype_of(const Place& place) const { return storage_.at(place.buffer).dtype; }

  // What the values that are there and those that come become.
  std::vector<Value*> combine(const Assign& assign, const std::vector<Value*>& there,
                              const std::vector<Value*>& coming) {
    if (const std::optional<Function> function = loops::built_in_combine(assign.combine)) {
      Value *a = there.front(), *b = coming.front();
      if (a->getType()->isVectorTy() || b->getType()->isVectorTy()) {
        a = repeat(builder_, a, lanes_->count);
        b = repeat(builder_, b, lanes_->count);
      }
      return {elements_.apply(*function, dtype_of(assign.places.front()), std::array{a, b})};
    }
    const loops::Combine& own = *kernel_.find_combine(assign.combine);
    const std::map<std::string, Value*> around = locals_;
    for (size_t i = 0; i < there.size(); ++i) {
      locals_[own.there[i].first] = there[i];
      locals_[own.coming[i].first] = coming[i];
    }
    known_.clear();
    std::vector<Value*> results;
    for (const Scalar& result : own.results)
      results.push_back(value_of(result));
    locals_ = around;
    return results;
  }

  // One result per lane, of the iterations that ran in it.
  struct Partial {
    std::vector<llvm::AllocaInst*> values;
    llvm::AllocaInst* begun;  // whether any did: combines of one's own have no neutral value to start from
  };

  void start_partial_results(const Assign& assign, int64_t lanes) {
    Partial partial;
    for (const Place& place : assign.places) {
      llvm::Type* type = register_type(context_, dtype_of(place), lanes);
      partial.values.push_back(variable(type));
      const std::optional<Function> function = loops::built_in_combine(assign.combine);
      Value* start = function ? repeat(builder_, elements_.neutral(*function, dtype_of(place)), lanes)
                              : llvm::Constant::getNullValue(type);
      builder_.CreateStore(start, partial.values.back());
    }
    partial.begun = variable(builder_.getInt1Ty());
    builder_.CreateStore(builder_.getFalse(), partial.begun);
    partial_results_.insert_or_assign(&assign, std::move(partial));
  }

  void fold(const Assign& assign, const Partial& partial, const std::vector<Value*>& coming, int64_t lanes) {
    std::vector<Value*> there;
    for (llvm::AllocaInst* value : partial.values)
      there.push_back(builder_.CreateLoad(value->getAllocatedType(), value));
    std::vector<Value*> combined = combine(assign, there, coming);
    if (!loops::built_in_combine(assign.combine)) {
      Value* begun = builder_.CreateLoad(builder_.getInt1Ty(), partial.begun);
      for (size_t i = 0; i < combined.size(); ++i)
        combined[i] = builder_.CreateSelect(begun, repeat(builder_, combined[i], lanes), coming[i]);
    }
    for (size_t i = 0; i < combined.size(); ++i)
      builder_.CreateStore(
          mask_ == nullptr ? combined[i] : builder_.CreateSelect(mask_, combined[i], there[i]),
          partial.values[i]);
    builder_.CreateStore(builder_.getTrue(), partial.begun);
  }

  void finish_partial_results(const Assign& assign, int64_t lanes) {
    const Partial partial = partial_results_.extract(&assign).mapped();
    auto *then = llvm::BasicBlock::Create(context_, "then", function_),
         *after = llvm::BasicBlock::Create(context_, "after", function_);
    builder_.CreateCondBr(builder_.CreateLoad(builder_.getInt1Ty(), partial.begun), then, after);
    builder_.SetInsertPoint(then);
    std::vector<Value*> whole;
    for (llvm::AllocaInst* value : partial.values)
      whole.push_back(builder_.CreateLoad(value->getAllocatedType(), value));
    // Halves are combined with each other until one lane is left.
    for (int64_t half = lanes / 2; half > 0; half /= 2) {
      std::vector<Value*> low, high;
      std::vector<int> first(static_cast<size_t>(half)), second(static_cast<size_t>(half));
      for (int64_t i = 0; i < half; ++i) {
        first[static_cast<size_t>(i)] = static_cast<int>(i);
        second[static_cast<size_t>(i)] = static_cast<int>(half + i);
      }
      for (Value* value : whole) {
        low.push_back(half == 1 ? builder_.CreateExtractElement(value, uint64_t{0})
                                : builder_.CreateShuffleVector(value, first));
        high.push_back(half == 1 ? builder_.CreateExtractElement(value, uint64_t{1})
                                 : builder_.CreateShuffleVector(value, second));
      }
      lanes_ = half == 1 ? std::nullopt : std::optional(Lanes{"", half});
      whole = combine(assign, low, high);
    }
    lanes_.reset();
    std::vector<Value*> there;
    for (const Place& place : assign.places)
      there.push_back(load(place.buffer, place.at));
    whole = combine(assign, there, whole);
    for (size_t i = 0; i < assign.places.size(); ++i)
      store(assign.places[i], whole[i]);
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }

  const Kernel& kernel_;
  llvm::Module& module_;
  Dim scratch_used_ = 0;
  bool streams_ = false;  // whether any loop has non-temporal stores
  std::map<const Assign*, Partial> partial_results_;
};

}  // namespace

void emit(const Kernel& kernel, const loops::ParallelRegion& region, const std::string& name,
          const Target& target, llvm::Module& module) {
  Emitter(kernel, target, module).emit(region, name);
}

}  // namespace tenon::codegen
