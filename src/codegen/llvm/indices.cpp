#include "codegen/llvm/indices.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon::codegen {

using llvm::Value;

void IndexBuilder::set(const std::string& symbol, Value* value, int64_t lanes) {
  symbols_.insert_or_assign(symbol, Symbol{value, lanes > 1});
}

Value* IndexBuilder::number(int64_t value, int64_t lanes) {
  Value* one = builder_.getInt64(static_cast<uint64_t>(value));
  return lanes == 1 ? one : builder_.CreateVectorSplat(static_cast<unsigned>(lanes), one);
}

Value* IndexBuilder::lane_numbers(int64_t lanes) {
  std::vector<uint64_t> numbers;
  for (int64_t i = 0; i < lanes; ++i)
    numbers.push_back(static_cast<uint64_t>(i));
  return llvm::ConstantDataVector::get(builder_.getContext(), numbers);
}

Value* IndexBuilder::emit(const Dim& dim, int64_t lanes) {
  CHECK(!dim.is_unknown(), "an index of unknown value");
  Value* sum = nullptr;
  for (const DimTerm& term : terms_of(dim)) {
    Value* product = nullptr;
    for (const DimFactor& factor : term.factors) {
      Value* value = emit(*factor, lanes);
      product = product == nullptr ? value : builder_.CreateMul(product, value, "", false, true);
    }
    if (product == nullptr)
      product = number(term.coefficient, lanes);
    else if (term.coefficient != 1)
      product = builder_.CreateMul(product, number(term.coefficient, lanes), "", false, true);
    sum = sum == nullptr ? product : builder_.CreateAdd(sum, product, "", false, true);
  }
  return sum == nullptr ? number(0, lanes) : sum;
}

Value* IndexBuilder::emit(const DimAtom& atom, int64_t lanes) {
  if (atom.function == DimFunction::Symbol)
    return symbol(atom.name, lanes);
  Value* value = emit(atom.operands[0], lanes);
  if (atom.function == DimFunction::FloorDiv || atom.function == DimFunction::Mod)
    return divide(atom, value, emit(atom.operands[1], lanes), lanes);
  const auto choice = atom.function == DimFunction::Max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin;
  for (size_t i = 1; i < atom.operands.size(); ++i)
    value = builder_.CreateBinaryIntrinsic(choice, value, emit(atom.operands[i], lanes));
  return value;
}

Value* IndexBuilder::symbol(const std::string& name, int64_t lanes) {
  const auto it = symbols_.find(name);
  CHECK(it != symbols_.end(), "the size or loop variable {} is unbound", name);
  if (lanes == 1)
    return it->second.value;
  Value* value = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), it->second.value);
  return it->second.moves ? builder_.CreateAdd(value, lane_numbers(lanes), "", false, true) : value;
}

// Towards minus infinity, where the machine rounds towards zero: the same where neither is negative.
Value* IndexBuilder::divide(const DimAtom& atom, Value* a, Value* b, int64_t lanes) {
  const bool divides = atom.function == DimFunction::FloorDiv;
  if (std::all_of(atom.operands.begin(), atom.operands.end(),
                  [](const Dim& operand) { return operand.lower_bound().value_or(-1) >= 0; }))
    return divides ? builder_.CreateUDiv(a, b) : builder_.CreateURem(a, b);
  Value *quotient = builder_.CreateSDiv(a, b), *rest = builder_.CreateSRem(a, b);
  Value* across = builder_.CreateAnd(builder_.CreateICmpNE(rest, number(0, lanes)),
                                     builder_.CreateICmpSLT(builder_.CreateXor(rest, b), number(0, lanes)));
  return divides ? builder_.CreateSub(quotient, builder_.CreateZExt(across, quotient->getType()))
                 : builder_.CreateAdd(rest, builder_.CreateSelect(across, b, number(0, lanes)));
}

std::optional<Dim> slope_of(const Dim& dim, const std::string& symbol) {
  const Dim slope = dim.substitute({{symbol, Dim::symbol(symbol) + 1}}) - dim;
  if (slope.is_unknown())
    return std::nullopt;
  const std::vector<std::string> symbols = slope.symbols();
  if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end())
    return std::nullopt;
  return slope;
}

}  // namespace tenon::codegen
