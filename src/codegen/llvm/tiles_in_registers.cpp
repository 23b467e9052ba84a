// tiles_in_registers.cpp — tiles of two rows and two lanes, each of which one register of Arm holds.
#include <llvm/IR/IntrinsicsAArch64.h>

#include "codegen/llvm/tiles.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen {

using llvm::Value;
using loops::Assign;
using loops::Function;

namespace {

// An instruction multiplies two rows of two words each with two lanes of two words each. What lies along the
// lanes is loaded four words at a time.
constexpr int kSide = 2, kWords = 2, kLoaded = 4;
constexpr int64_t kMost = 32;  // rows or lanes: more than registers hold, which is for the schedule to see to

}  // namespace

TileEmitter::Steps TileEmitter::steps_in_registers() {
  return {.rows = kSide, .words = kWords, .lanes = kLoaded, .most = kMost};
}

// Words from the one at a row and a column on.
Value* TileEmitter::load_words(const Word& word, const Matrix& matrix, int64_t row, int64_t column,
                               int64_t count) {
  const Storage& storage = storage_.at(word.place.buffer);
  llvm::Type* type = llvm::FixedVectorType::get(builder_.getInt32Ty(), static_cast<unsigned>(count));
  llvm::LoadInst* load =
      builder_.CreateAlignedLoad(type, place_in(matrix, row, column), alignment(storage.dtype));
  mark(load, storage);
  return load;
}

llvm::AllocaInst* TileEmitter::sums_at(const TileNest& nest, int64_t row, int64_t lane) const {
  const int64_t in_row = *loops::iterations_of(nest.lanes).constant() / kSide;
  return sums_[static_cast<size_t>(row / kSide * in_row + lane / kSide)];
}

template <class Body>
void TileEmitter::for_each_register(const TileNest& nest, Body&& body) {
  for (int64_t row = 0; row < *loops::iterations_of(nest.rows).constant(); row += kSide)
    for (int64_t lane = 0; lane < *loops::iterations_of(nest.lanes).constant(); lane += kSide)
      body(row, lane);
}

void TileEmitter::run_in_registers(const TileNest& nest) {
  const Word word{nest.products.front()->places.front(), 1};
  const Matrix matrix = matrix_at(word, nest.rows.variable);
  const Storage& storage = storage_.at(word.place.buffer);
  llvm::Type* type = register_type(context_, storage.dtype, kSide * kSide);
  sums_.clear();
  for_each_register(nest, [&](int64_t row, int64_t lane) {
    sums_.push_back(variable(type));
    Value* both = builder_.CreateShuffleVector(load_words(word, matrix, row, lane, kSide),
                                               load_words(word, matrix, row + 1, lane, kSide), {0, 1, 2, 3});
    builder_.CreateStore(builder_.CreateBitCast(both, type), sums_.back());
  });
  sum_products(nest, 0);
  for_each_register(nest, [&](int64_t row, int64_t lane) {
    Value* both = builder_.CreateLoad(type, sums_at(nest, row, lane));
    for (int i = 0; i < kSide; ++i) {
      llvm::StoreInst* store =
          builder_.CreateAlignedStore(builder_.CreateShuffleVector(both, {2 * i, 2 * i + 1}),
                                      place_in(matrix, row + i, lane), alignment(storage.dtype));
      mark(store, storage);
    }
  });
}

void TileEmitter::multiply_in_registers(const TileNest& nest) {
  const int64_t rows = *loops::iterations_of(nest.rows).constant(),
                lanes = *loops::iterations_of(nest.lanes).constant();
  for (const Assign* assign : nest.products) {
    const loops::Scalar& product = assign->values.front();
    const Word a = *word_of(product.operands()[0]), b = *word_of(product.operands()[1]);
    const Matrix of_rows = matrix_at(a, nest.rows.variable),
                 of_lanes = matrix_at(b, nest.summed.back()->variable);
    std::vector<Value*> two_rows;
    for (int64_t row = 0; row < rows; row += kSide)
      two_rows.push_back(builder_.CreateShuffleVector(
          load_words(a, of_rows, row, 0, kWords), load_words(a, of_rows, row + 1, 0, kWords), {0, 1, 2, 3}));
    for (int64_t first = 0; first < lanes; first += kLoaded) {
      Value *words = load_words(b, of_lanes, 0, first, kLoaded),
            *next = load_words(b, of_lanes, 1, first, kLoaded);
      for (int i = 0; i < kLoaded; i += kSide) {
        Value* two_lanes =
            builder_.CreateShuffleVector(words, next, {i, kLoaded + i, i + 1, kLoaded + i + 1});
        for (int64_t row = 0; row < rows; row += kSide) {
          llvm::AllocaInst* sums = sums_at(nest, row, first + i);
          Value* there = builder_.CreateLoad(sums->getAllocatedType(), sums);
          builder_.CreateStore(
              add_matrices(product.function(), there, two_rows[static_cast<size_t>(row / kSide)], two_lanes),
              sums);
        }
      }
    }
  }
}

Value* TileEmitter::add_matrices(Function function, Value* sums, Value* rows, Value* lanes) {
  const bool bytes = function == Function::DotI8x4;
  llvm::Type* type = bytes ? llvm::FixedVectorType::get(builder_.getInt8Ty(), 16)
                           : llvm::FixedVectorType::get(builder_.getBFloatTy(), 8);
  Value *a = builder_.CreateBitCast(rows, type), *b = builder_.CreateBitCast(lanes, type);
  return bytes ? builder_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_usmmla, {sums->getType(), type},
                                          {sums, a, b})
               : builder_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_bfmmla, {}, {sums, a, b});
}

}  // namespace tenon::codegen
