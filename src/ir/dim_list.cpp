#include "ir/dim_list.h"

#include <algorithm>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon {

DimList::DimList(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {
  for (size_t i = 0; i < symbols_.size(); ++i)
    known_.emplace(Dim::symbol(symbols_[i]), i);
}

bool DimList::covers(const Dim& dim) const {
  const std::vector<std::string> used = dim.symbols();
  return !dim.is_unknown() && std::all_of(used.begin(), used.end(), [&](const std::string& symbol) {
    return std::find(symbols_.begin(), symbols_.end(), symbol) != symbols_.end();
  });
}

size_t DimList::emit(Operation operation, int64_t a, int64_t b) {
  instructions_.push_back({operation, a, b});
  return symbols_.size() + instructions_.size() - 1;
}

size_t DimList::add(const Dim& dim) {
  if (const auto known = known_.find(dim); known != known_.end())
    return known->second;
  const auto combine = [&](Operation operation, size_t a, size_t b) {
    return emit(operation, static_cast<int64_t>(a), static_cast<int64_t>(b));
  };
  const auto add_factor = [&](const DimFactor& factor) {
    if (factor->function == DimFunction::Symbol)
      return add(Dim::symbol(factor->name));
    constexpr Operation operations[] = {Operation::Number, Operation::FloorDiv, Operation::Mod,
                                        Operation::Max, Operation::Min};
    size_t value = add(factor->operands.front());
    for (size_t i = 1; i < factor->operands.size(); ++i)
      value = combine(operations[static_cast<size_t>(factor->function)], value, add(factor->operands[i]));
    return value;
  };
  std::optional<size_t> sum;
  if (dim.is_constant())
    sum = emit(Operation::Number, *dim.constant());
  else
    for (const DimTerm& term : terms_of(dim)) {
      std::optional<size_t> product;
      if (term.coefficient != 1 || term.factors.empty())
        product = add(term.coefficient);
      for (const DimFactor& factor : term.factors)
        product = product ? combine(Operation::Multiply, *product, add_factor(factor)) : add_factor(factor);
      sum = sum ? combine(Operation::Add, *sum, *product) : *product;
    }
  return known_.emplace(dim, *sum).first->second;
}

Dim DimList::dim(size_t number) const {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const auto& known) { return known.second == number; });
  CHECK(found != known_.end(), "no dim has register {}", number);
  return found->first;
}

int64_t DimList::compute(Operation operation, int64_t a, int64_t b) {
  if (operation == Operation::Multiply && (a == 0 || b == 0))
    return 0;
  if (a == kNothing || b == kNothing)
    return kNothing;
  int64_t result = 0;
  switch (operation) {
    case Operation::Number:
      break;
    case Operation::Add:
      return __builtin_add_overflow(a, b, &result) ? kNothing : result;
    case Operation::Multiply:
      return __builtin_mul_overflow(a, b, &result) ? kNothing : result;
    case Operation::FloorDiv:
      return b == 0 ? kNothing : floor_div_integers(a, b);
    case Operation::Mod:
      return b == 0 ? kNothing : a - b * floor_div_integers(a, b);
    case Operation::Max:
      return std::max(a, b);
    case Operation::Min:
      return std::min(a, b);
  }
  CHECK(false, "no such operation");
}

std::vector<int64_t> DimList::evaluate(std::span<const int64_t> symbols) const {
  CHECK(symbols.size() == symbols_.size(), "{} values for {} symbols", symbols.size(), symbols_.size());
  std::vector<int64_t> registers(symbols.begin(), symbols.end());
  registers.reserve(symbols.size() + instructions_.size());
  const auto read = [&](int64_t number) { return registers[static_cast<size_t>(number)]; };
  for (const auto& [operation, a, b] : instructions_)
    registers.push_back(operation == Operation::Number ? a : compute(operation, read(a), read(b)));
  return registers;
}

}  // namespace tenon
