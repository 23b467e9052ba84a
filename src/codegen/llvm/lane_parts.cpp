#include "codegen/llvm/lane_parts.h"

#include <numeric>

namespace tenon::codegen {
namespace {

std::vector<int> numbers_from(int64_t begin, int64_t count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<int>(begin));
  return numbers;
}

llvm::Value* join(llvm::IRBuilderBase& builder, std::vector<llvm::Value*> parts, int64_t lanes) {
  for (; parts.size() > 1; lanes *= 2) {
    const std::vector<int> which = numbers_from(0, 2 * lanes);
    std::vector<llvm::Value*> pairs;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      pairs.push_back(builder.CreateShuffleVector(parts[i], parts[i + 1], which));
    parts = std::move(pairs);
  }
  return parts.front();
}

}  // namespace

int64_t count_lanes(const llvm::Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : vector->getNumElements();
}

llvm::Value* in_parts(llvm::IRBuilderBase& builder, const std::vector<llvm::Value*>& vectors, int64_t lanes,
                      int64_t each, const std::function<llvm::Value*(const std::vector<llvm::Value*>&)>& f) {
  std::vector<llvm::Value*> parts;
  for (int64_t at = 0; at < lanes; at += each) {
    std::vector<llvm::Value*> operands;
    for (llvm::Value* vector : vectors)
      operands.push_back(builder.CreateShuffleVector(vector, numbers_from(at, each)));
    parts.push_back(f(operands));
  }
  return join(builder, std::move(parts), each);
}

}  // namespace tenon::codegen
