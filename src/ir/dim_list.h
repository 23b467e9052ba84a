// dim_list.h — many dims over the same symbols, made ready so that computing them all takes a microsecond.
#pragma once

#include <limits>
#include <span>
#include <unordered_map>

#include "ir/dim.h"

namespace tenon {

// Each dim, and each part of one, becomes a register: first the symbols, then what is computed from registers
// before it. Dims that are equal share theirs.
class DimList {
 public:
  explicit DimList(std::vector<std::string> symbols);

  const std::vector<std::string>& symbols() const { return symbols_; }
  // Whether all symbols of the dim are in the list.
  bool covers(const Dim& dim) const;
  // The register that will hold the dim, which the list covers.
  size_t add(const Dim& dim);
  // The dim that was added with this register.
  Dim dim(size_t number) const;

  // What a register holds where Dim::evaluate would give nothing.
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();
  // The registers for these values of the symbols.
  std::vector<int64_t> evaluate(std::span<const int64_t> symbols) const;

 private:
  enum class Operation : uint8_t { Number, Add, Multiply, FloorDiv, Mod, Max, Min };
  struct Instruction {
    Operation operation;
    int64_t a, b;  // registers; of Number, a is the number
  };

  size_t emit(Operation operation, int64_t a, int64_t b = 0);
  static int64_t compute(Operation operation, int64_t a, int64_t b);

  struct Hash {
    size_t operator()(const Dim& dim) const { return dim.hash(); }
  };

  std::vector<std::string> symbols_;
  std::vector<Instruction> instructions_;
  std::unordered_map<Dim, size_t, Hash> known_;  // registers of dims
};

}  // namespace tenon
