// indices.h — sizes and loop variables, and what is computed of them, as C++ expressions: int where the
// values are known to fit, else long long.
#pragma once

#include <limits>
#include <map>
#include <string_view>

#include "codegen/cuda/expression.h"
#include "codegen/cuda/preamble.h"
#include "ir/dim.h"

namespace tenon {
struct DimAtom;
struct DimTerm;
}  // namespace tenon

namespace tenon::codegen::cuda {

// The values something may have. The ends of 64 bits stand for all beyond.
struct Range {
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();

  bool fits_int() const {
    return low >= std::numeric_limits<int32_t>::min() && high <= std::numeric_limits<int32_t>::max();
  }
};

class IndexText {
 public:
  explicit IndexText(Preamble& preamble) : preamble_(preamble) {}

  // What a symbol stands for from now on.
  void set(const std::string& symbol, Expression text, Range range) {
    symbols_.insert_or_assign(symbol, Symbol{std::move(text), range});
  }
  struct Symbol {
    Expression text;
    Range range;
  };
  const Symbol& symbol(const std::string& name) const;

  Expression text(const Dim& dim);
  Range range_of(const Dim& dim) const;
  // int or long long
  std::string_view type_of(const Dim& dim) const { return type_of(range_of(dim)); }
  static std::string_view type_of(const Range& range) { return range.fits_int() ? "int" : "long long"; }

 private:
  Range range_of(const DimTerm& term) const;
  Range range_of(const DimAtom& atom) const;
  // Whether its first factor is long long.
  bool begins_wide(const DimTerm& term) const;
  // With a first factor of 64 bits, where the product may need them or is to have them.
  Expression text(const DimTerm& term, bool is_wide);
  Expression text(const DimAtom& atom);
  Expression text(const DimAtom& atom, const Range& all);  // all: of its operands together
  // Of the type that `range` needs.
  std::string converted(const Dim& dim, const Range& range);

  Preamble& preamble_;
  std::map<std::string, Symbol> symbols_;
};

}  // namespace tenon::codegen::cuda
