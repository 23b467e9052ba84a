// tiles.h — matrix instructions: tiles of sums of products of two matrix tiles (AMX, i8mm).
#pragma once

#include "codegen/llvm/control.h"

namespace tenon::codegen {

// Loops marked as a tile, whose products instructions of this machine take:
//   for row in 0..32 tile { for k in 0..48 { for lane in 0..32 { sums[row,lane] += dot(a[row,k], b[k,lane])
//   }}}
// There may be several products, of other factors, which are added to the same sums, and before them a guard,
// the same in all iterations, around prefetches.
struct TileNest {
  const loops::Loop& rows;
  std::vector<const loops::Loop*> summed;  // the words of the last are contiguous
  const loops::Loop& lanes;
  const loops::Guard* fetched = nullptr;
  std::vector<const loops::Assign*> products = {};
};

class TileEmitter : protected ControlEmitter {
 protected:
  using ControlEmitter::ControlEmitter;

  // Nothing where the loop is no such nest.
  std::optional<TileNest> find_tiles(const loops::Loop& loop) const;
  void run_tiles(const TileNest& nest);

  // To be called before the first statement and after the last, once it is known whether there are tiles.
  void configure_tiles();
  void release_tiles();

 private:
  // What is multiplied at a time, and where it lies: one element of 32 bits, two of 16, or four of 8.
  struct Word {
    loops::Place place;
    int64_t elements;

    bool operator==(const Word& other) const {
      return place.buffer == other.place.buffer && place.at == other.place.at && elements == other.elements;
    }
  };
  static std::optional<Word> word_of(const loops::Scalar& factor);

  // A matrix in memory, from the place of its first tile on.
  struct Matrix {
    llvm::Value *start, *bytes_per_row;
  };
  static constexpr int64_t kWordBytes = 4;

  // How many rows, words and lanes instructions take at a time, and the most rows or lanes of a nest.
  struct Steps {
    int64_t rows, words, lanes, most;
  };
  Steps steps() const;
  bool has_instruction(loops::Function function) const;

  Matrix matrix_at(const Word& word, const std::string& row_variable);
  Dim offset_in(const loops::Place& place) const;
  // How far the place moves with the variable; nothing where that is not the same everywhere.
  std::optional<Dim> step_of(const loops::Place& place, const TileNest& nest, const loops::Loop& loop) const;
  bool has_steps(const TileNest& nest, const loops::Assign& product) const;
  llvm::Value* place_in(const Matrix& matrix, int64_t row, int64_t column);
  void access(llvm::Intrinsic::ID instruction, int tile, const Matrix& matrix, int64_t row, int64_t column);
  void sum_products(const TileNest& nest, size_t level);
  void multiply(const TileNest& nest);  // by AMX, all products of one iteration
  bool fetches_tiles(const TileNest& nest, const loops::Guard& guard) const;
  void fetch_tiles(const TileNest& nest);

  // --- matrices of two rows, which registers of Arm hold (tiles_in_registers.cpp) ---
  static Steps steps_in_registers();
  void run_in_registers(const TileNest& nest);
  void multiply_in_registers(const TileNest& nest);
  llvm::Value* load_words(const Word& word, const Matrix& matrix, int64_t row, int64_t column, int64_t count);
  llvm::AllocaInst* sums_at(const TileNest& nest, int64_t row, int64_t lane) const;
  llvm::Value* add_matrices(loops::Function function, llvm::Value* sums, llvm::Value* rows,
                            llvm::Value* lanes);
  template <class Body>
  static void for_each_register(const TileNest& nest, Body&& body);

  bool uses_tiles_ = false;
  std::vector<llvm::AllocaInst*> sums_;  // of the nest at hand, in registers
};

}  // namespace tenon::codegen
