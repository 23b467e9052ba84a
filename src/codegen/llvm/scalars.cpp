#include "codegen/llvm/scalars.h"

#include <algorithm>
#include <array>
#include <bit>

#include "codegen/llvm/dot_bf16x2.h"
#include "codegen/llvm/dot_i8x4.h"
#include "codegen/llvm/philox.h"
#include "codegen/vectors.h"
#include "ir/dim_expression.h"

namespace tenon::codegen {

using llvm::Value;
using loops::Function;
using loops::Place;
using loops::Scalar;

namespace {

bool divides(const Scalar& index) {
  if (index.kind() != Scalar::Kind::Index || index.index().is_unknown())
    return false;
  for (const DimTerm& term : terms_of(index.index()))
    for (const DimFactor& factor : term.factors)
      if (factor->function == DimFunction::FloorDiv || factor->function == DimFunction::Mod)
        return true;
  return false;
}

}  // namespace

void ScalarEmitter::mark(llvm::Instruction* access, const Storage& storage) {
  if (storage.scope != nullptr) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, storage.scope);
    access->setMetadata(llvm::LLVMContext::MD_noalias, storage.others);
  }
}

void ScalarEmitter::fail_where(Value* condition) {
  if (mask_ != nullptr)
    condition = builder_.CreateAnd(repeat(builder_, condition, lane_count()), mask_);
  if (condition->getType()->isVectorTy())
    condition = builder_.CreateOrReduce(condition);
  auto *failure = llvm::BasicBlock::Create(context_, "failure", function_),
       *after = llvm::BasicBlock::Create(context_, "after", function_);
  builder_.CreateCondBr(condition, failure, after);
  builder_.SetInsertPoint(failure);
  builder_.CreateRet(builder_.getInt64(1));
  builder_.SetInsertPoint(after);
}

bool ScalarEmitter::varies(const Dim& dim) const {
  if (!lanes_ || dim.is_constant())
    return false;
  const std::vector<std::string> symbols = dim.symbols();
  return std::find(symbols.begin(), symbols.end(), lanes_->variable) != symbols.end();
}

bool ScalarEmitter::varies(const Scalar& scalar) const {
  if (scalar.kind() == Scalar::Kind::Index)
    return varies(scalar.index());
  return std::any_of(scalar.operands().begin(), scalar.operands().end(),
                     [&](const Scalar& each) { return varies(each); });
}

bool ScalarEmitter::varies(const Place& place) const {
  return std::any_of(place.at.begin(), place.at.end(), [&](const Scalar& each) { return varies(each); });
}

Value* ScalarEmitter::value_of(const Scalar& scalar) {
  if (const auto it = known_.values.find(scalar.identity()); it != known_.values.end())
    return it->second;
  Value* value = compute(scalar);
  known_.values.emplace(scalar.identity(), value);
  return value;
}

Value* ScalarEmitter::load_once(const Scalar& scalar) {
  for (const auto& [known, value] : known_.loads)
    if (known == scalar)
      return value;
  Value* value = load(scalar.name(), scalar.operands());  // which may know more afterwards
  return known_.loads.emplace_back(scalar, value).second;
}

Value* ScalarEmitter::compute(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::Number:
      return elements_.number(scalar.dtype(), scalar.value());
    case Scalar::Kind::Index:
      return varies(scalar.index()) ? indices_.values(scalar.index(), lanes_->count)
                                    : indices_.value(scalar.index());
    case Scalar::Kind::Variable:
      return locals_.at(scalar.name());
    case Scalar::Kind::Load:
      return load_once(scalar);
    case Scalar::Kind::Apply:
      break;
  }
  if (scalar.function() == Function::Select &&
      (needs_care(scalar.operands()[1]) || needs_care(scalar.operands()[2])))
    return choose(scalar);
  if (scalar.function() == Function::Require) {
    fail_where(builder_.CreateNot(value_of(scalar.operands()[0])));
    return value_of(scalar.operands()[1]);
  }
  if (scalar.function() == Function::PackI8x4)
    if (const Scalar* first = loops::first_of_word(scalar); first != nullptr && !varies(*first))
      return load_word(*first);
  if (scalar.function() == Function::Cast && is_integer(scalar.dtype()) &&
      is_limited(scalar.operands().front())) {
    const Scalar& limited = scalar.operands().front();
    return elements_.cast_limited(scalar.dtype(), value_of(limited.operands()[0]),
                                  std::get<double>(limited.operands()[1].value()));
  }
  std::vector<Value*> operands;
  bool vector = false;
  for (const Scalar& operand : scalar.operands()) {
    operands.push_back(value_of(operand));
    vector |= operands.back()->getType()->isVectorTy();
  }
  if (scalar.function() == Function::Divide && scalar.dtype() == DType::F32 && target_.fused_multiply_add &&
      operands[0]->getType()->isVectorTy() && !operands[1]->getType()->isVectorTy())
    return elements_.divide_by_one(operands[0], operands[1]);
  if (vector)
    for (Value*& operand : operands)
      operand = repeat(builder_, operand, lane_count());
  if (scalar.function() == Function::Cast)
    return elements_.cast(scalar.operands().front().dtype(), scalar.dtype(), operands.front());
  if (scalar.function() == Function::DotI8x4) {
    Value* zero = llvm::Constant::getNullValue(operands[0]->getType());
    return emit_dot_bytes(builder_, zero, operands[0], operands[1], target_);
  }
  if (scalar.function() == Function::DotBf16x2) {
    Value* zero = llvm::Constant::getNullValue(
        register_type(context_, DType::F32, operands[0]->getType()->isVectorTy() ? lane_count() : 1));
    return emit_dot_pairs(builder_, zero, operands[0], operands[1], target_);
  }
  if (scalar.function() == Function::RoundDownToBf16)
    return emit_top_half(builder_, operands.front());
  if (scalar.function() == Function::Bf16Remainder)
    return builder_.CreateFSub(operands.front(), emit_top_half(builder_, operands.front()));
  if (scalar.function() == Function::PackBf16x2)
    return emit_join_pairs(builder_, operands[0], operands[1]);
  if (scalar.function() == Function::PackI8x4)
    return emit_join_bytes(builder_, operands);
  if (scalar.function() == Function::Philox || scalar.function() == Function::PhiloxHigh)
    return emit_philox(builder_, scalar.function(), operands);
  return elements_.apply(scalar.function(), scalar.operands().back().dtype(), operands);
}

// Whether a float is at least and at most numbers of 32 bits, or NaN.
bool ScalarEmitter::is_limited(const Scalar& scalar) {
  constexpr double least = INT32_MIN, greatest = INT32_MAX - 64;  // which f32 has
  const auto limits = [](const Scalar& each, Function function, double low, double high) {
    if (each.kind() != Scalar::Kind::Apply || each.function() != function || !is_float(each.dtype()))
      return false;
    const Scalar& limit = each.operands()[1];
    return limit.kind() == Scalar::Kind::Number && std::get<double>(limit.value()) >= low &&
           std::get<double>(limit.value()) <= high;
  };
  return limits(scalar, Function::Maximum, least, greatest) &&
         limits(scalar.operands()[0], Function::Minimum, least, greatest);
}

Value* ScalarEmitter::load_word(const Scalar& first) {
  const Storage& storage = storage_.at(first.name());
  Value* at = address(storage, offset_of(storage, first.operands()).first);
  const auto read = [&]() -> Value* {
    llvm::LoadInst* word = builder_.CreateAlignedLoad(builder_.getInt32Ty(), at, alignment(storage.dtype));
    mark(word, storage);
    return word;
  };
  if (mask_ == nullptr || mask_is_partial_)
    return read();
  return branch(builder_.CreateOrReduce(mask_), read, [&]() -> Value* { return builder_.getInt32(0); });
}

bool ScalarEmitter::needs_care(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Load)
    return true;
  if (scalar.kind() == Scalar::Kind::Apply &&
      (scalar.function() == Function::Require ||
       (is_integer(scalar.dtype()) &&
        (scalar.function() == Function::Divide || scalar.function() == Function::Remainder))))
    return true;
  return std::any_of(scalar.operands().begin(), scalar.operands().end(), needs_care);
}

Value* ScalarEmitter::choose(const Scalar& scalar) {
  Value* condition = value_of(scalar.operands()[0]);
  if (condition->getType()->isVectorTy())
    return choose_by_lane(condition, scalar.operands()[1], scalar.operands()[2]);
  return branch(
      condition, [&] { return value_of(scalar.operands()[1]); },
      [&] { return value_of(scalar.operands()[2]); });
}

template <class Then, class Otherwise>
Value* ScalarEmitter::branch(Value* condition, Then&& then, Otherwise&& otherwise) {
  llvm::BasicBlock* blocks[] = {llvm::BasicBlock::Create(context_, "then", function_),
                                llvm::BasicBlock::Create(context_, "otherwise", function_)};
  auto* after = llvm::BasicBlock::Create(context_, "after", function_);
  builder_.CreateCondBr(condition, blocks[0], blocks[1]);
  Value* values[2];
  bool vector = false;
  for (int i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(blocks[i]);
    const auto before = known_;
    values[i] = i == 0 ? then() : otherwise();
    known_ = before;
    blocks[i] = builder_.GetInsertBlock();
    vector |= values[i]->getType()->isVectorTy();
  }
  for (int i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(blocks[i]);
    if (vector)
      values[i] = repeat(builder_, values[i], lane_count());
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
  llvm::PHINode* value = builder_.CreatePHI(values[0]->getType(), 2);
  value->addIncoming(values[0], blocks[0]);
  value->addIncoming(values[1], blocks[1]);
  return value;
}

Value* ScalarEmitter::choose_by_lane(Value* condition, const Scalar& then, const Scalar& otherwise) {
  Value* around = mask_;
  const bool partial = mask_is_partial_;
  mask_is_partial_ = false;
  Value* values[2];
  for (int i = 0; i < 2; ++i) {
    Value* own = i == 0 ? condition : builder_.CreateNot(condition);
    mask_ = around == nullptr ? own : builder_.CreateAnd(around, own);
    const auto before = known_;
    values[i] = repeat(builder_, value_of(i == 0 ? then : otherwise), lane_count());
    known_ = before;
  }
  mask_ = around;
  mask_is_partial_ = partial;
  return builder_.CreateSelect(condition, values[0], values[1]);
}

namespace {

// In elements.
std::vector<Dim> strides_of(const Storage& storage) {
  std::vector<Dim> strides(storage.sizes.size(), Dim(1));
  for (size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * storage.sizes[i];
  return strides;
}

}  // namespace

ScalarEmitter::Offset ScalarEmitter::offset_of(const Storage& storage, const std::vector<Scalar>& at) {
  const std::vector<Dim> strides = strides_of(storage);
  Offset offset;
  Dim step = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (!varies(at[i]))
      continue;
    const std::optional<Dim> own =
        at[i].kind() == Scalar::Kind::Index ? slope_of(at[i].index(), lanes_->variable) : std::nullopt;
    step = own ? step + *own * strides[i] : Dim();
  }
  offset.step = step.constant();
  // What is divided to find one index may be multiplied again to find the next.
  if (!offset.step || std::ranges::any_of(at, divides))
    if (const std::optional<Dim> whole = whole_offset(storage, at)) {
      if (!offset.step)
        offset.step = slope_of(*whole, lanes_->variable).value_or(Dim()).constant();
      if (offset.step) {
        offset.first = indices_.value(*whole);
        return offset;
      }
    }
  if (offset.step) {
    offset.first = builder_.getInt64(0);
    for (size_t i = 0; i < at.size(); ++i)
      offset.first =
          builder_.CreateAdd(offset.first, builder_.CreateMul(first_lane(at[i]), indices_.value(strides[i])));
    return offset;
  }
  offset.lanes = repeat(builder_, builder_.getInt64(0), lanes_->count);
  for (size_t i = 0; i < at.size(); ++i) {
    Value* index = repeat(builder_, value_of(at[i]), lanes_->count);
    Value* stride = repeat(builder_, indices_.value(strides[i]), lanes_->count);
    offset.lanes = builder_.CreateAdd(offset.lanes, builder_.CreateMul(index, stride));
  }
  return offset;
}

std::optional<Dim> ScalarEmitter::whole_offset(const Storage& storage, const std::vector<Scalar>& at) {
  const std::vector<Dim> strides = strides_of(storage);
  Dim whole = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i].kind() != Scalar::Kind::Index)
      return std::nullopt;
    whole = whole + at[i].index() * strides[i];
  }
  return whole.is_unknown() ? std::nullopt : std::optional(whole);
}

Value* ScalarEmitter::first_lane(const Scalar& index) {
  return index.kind() == Scalar::Kind::Index ? indices_.value(index.index()) : value_of(index);
}

Value* ScalarEmitter::address(const Storage& storage, Value* offset) {
  return builder_.CreateGEP(stored_type(context_, storage.dtype, 1), storage.pointer, offset);
}

Value* ScalarEmitter::addresses(const Storage& storage, const Offset& offset) {
  Value* lanes = offset.lanes;
  if (lanes == nullptr) {
    Value* step = repeat(builder_, builder_.getInt64(static_cast<uint64_t>(*offset.step)), lanes_->count);
    lanes = builder_.CreateAdd(repeat(builder_, offset.first, lanes_->count),
                               builder_.CreateMul(step, indices_.lane_numbers(lanes_->count)));
  }
  return address(storage, lanes);
}

std::optional<ScalarEmitter::Choice> ScalarEmitter::find_choice(const Storage& storage,
                                                                const std::vector<Scalar>& at) {
  const std::optional<Dim> whole =
      lanes_ && lanes_->begin && mask_ == nullptr && can_mask(storage.dtype, target_)
          ? whole_offset(storage, at)
          : std::nullopt;
  if (!whole || !varies(*whole) || slope_of(*whole, lanes_->variable).value_or(Dim(0)).constant() == 1)
    return std::nullopt;
  std::vector<int64_t> places;
  const auto place = [&](int64_t lane) {
    return whole->substitute(
        {{lanes_->variable, Dim::symbol(lanes_->variable) * lanes_->count + *lanes_->begin + lane}});
  };
  const Dim first = place(0);
  for (int64_t lane = 0; lane < lanes_->count; ++lane) {
    const std::optional<int64_t> behind = (place(lane) - first).constant();
    if (!behind || std::abs(*behind) >= 2 * lanes_->count)
      return std::nullopt;
    places.push_back(*behind);
  }
  const auto [least, most] = std::ranges::minmax(places);
  if (most - least >= 2 * lanes_->count)
    return std::nullopt;
  Choice choice{.first = least, .lanes = {}, .count = most - least + 1};
  for (const int64_t each : places)
    choice.lanes.push_back(static_cast<int>(each - least));
  return choice;
}

// Whole registers, with the lanes past the last element masked, where memory may end; a broadcast element is
// loaded once.
Value* ScalarEmitter::load_choice(const Storage& storage, const std::vector<Scalar>& at,
                                  const Choice& choice) {
  const auto lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(choice.count)));
  llvm::Type* type = stored_type(context_, storage.dtype, lanes);
  Value* first = builder_.CreateAdd(indices_.value(*whole_offset(storage, at)),
                                    builder_.getInt64(static_cast<uint64_t>(choice.first)));
  if (lanes == 1) {
    llvm::Instruction* one =
        builder_.CreateAlignedLoad(type, address(storage, first), alignment(storage.dtype));
    mark(one, storage);
    return one;
  }
  std::vector<llvm::Constant*> mask;
  for (int64_t i = 0; i < lanes; ++i)
    mask.push_back(builder_.getInt1(i < choice.count));
  llvm::Instruction* read =
      builder_.CreateMaskedLoad(type, address(storage, first), alignment(storage.dtype),
                                llvm::ConstantVector::get(mask), llvm::Constant::getNullValue(type));
  mark(read, storage);
  return builder_.CreateShuffleVector(read, choice.lanes);
}

Value* ScalarEmitter::load(const std::string& name, const std::vector<Scalar>& at) {
  const Storage& storage = storage_.at(name);
  for (const Columns& each : columns_)
    if (each.load.name() == name && each.load.operands() == at)
      return elements_.from_stored(storage.dtype, each.values[static_cast<size_t>(column_)]);
  if (const std::optional<Choice> choice = find_choice(storage, at))
    return elements_.from_stored(storage.dtype, load_choice(storage, at, *choice));
  const Offset offset = offset_of(storage, at);
  llvm::Type* one = stored_type(context_, storage.dtype, 1);
  if (offset.step == 0) {
    const auto read = [&]() -> Value* {
      llvm::LoadInst* value =
          builder_.CreateAlignedLoad(one, address(storage, offset.first), alignment(storage.dtype));
      mark(value, storage);
      return value;
    };
    Value* stored = mask_ == nullptr || mask_is_partial_
                        ? read()
                        : branch(builder_.CreateOrReduce(mask_), read,
                                 [&]() -> Value* { return llvm::Constant::getNullValue(one); });
    return elements_.from_stored(storage.dtype, stored);
  }
  llvm::Type* type = stored_type(context_, storage.dtype, lanes_->count);
  llvm::Instruction* stored;
  if (offset.step == 1 && mask_ == nullptr)
    stored = builder_.CreateAlignedLoad(type, address(storage, offset.first), alignment(storage.dtype));
  else if (offset.step == 1)
    stored = builder_.CreateMaskedLoad(type, address(storage, offset.first), alignment(storage.dtype), mask_,
                                       llvm::Constant::getNullValue(type));
  else
    stored = builder_.CreateMaskedGather(type, addresses(storage, offset), alignment(storage.dtype), mask_,
                                         llvm::Constant::getNullValue(type));
  mark(stored, storage);
  return elements_.from_stored(storage.dtype, stored);
}

void ScalarEmitter::store(const Place& place, Value* value) {
  const Storage& storage = storage_.at(place.buffer);
  Offset offset = offset_of(storage, place.at);
  if (varies(place))
    value = repeat(builder_, value, lanes_->count);
  Value* stored = elements_.to_stored(storage.dtype, value);
  llvm::Instruction* written;
  if (offset.step == 1 && mask_ != nullptr)
    written =
        builder_.CreateMaskedStore(stored, address(storage, offset.first), alignment(storage.dtype), mask_);
  else if (&place == streamed_)
    written = stream(stored, address(storage, offset.first));
  else if (offset.step == 0 || offset.step == 1)
    written = builder_.CreateAlignedStore(stored, address(storage, offset.first), alignment(storage.dtype));
  else
    written =
        builder_.CreateMaskedScatter(stored, addresses(storage, offset), alignment(storage.dtype), mask_);
  mark(written, storage);
}

void ScalarEmitter::fetch(const Place& place) {
  const Storage& storage = storage_.at(place.buffer);
  const Offset offset = offset_of(storage, place.at);
  if (offset.first == nullptr)
    return;
  const int64_t bytes = offset.step == 1 ? lane_count() * info(storage.dtype).bytes : 1;
  fetch(address(storage, offset.first), bytes);
}

void ScalarEmitter::fetch(Value* start, int64_t bytes) {
  constexpr int64_t second_level = 2;
  for (int64_t at = 0; at < bytes; at += kCacheLine)
    builder_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
        {builder_.CreateConstGEP1_64(builder_.getInt8Ty(), start, static_cast<uint64_t>(at)),
         builder_.getInt32(0), builder_.getInt32(second_level), builder_.getInt32(1)});
}

llvm::Instruction* ScalarEmitter::stream(Value* stored, Value* to) {
  llvm::StoreInst* written =
      builder_.CreateAlignedStore(stored, to, llvm::Align(static_cast<uint64_t>(target_.vector_bytes)));
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
  written->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context_, {one}));
  return written;
}

}  // namespace tenon::codegen
