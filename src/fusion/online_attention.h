// online_attention.h — fused attention in the parts that a kernel needs which sees the keys block by block.
// It keeps the greatest score of each row so far, the total of the powers and their sums with the values, and
// scales both when a greater score comes:
//
//   power = exp(score - greatest)   total = sum of power   sum = sum of weight(power) * value
//   result = what becomes of sum and total at the end, such as sum / total
//
// That reassociates: roundings to 16 bits between the steps are left out, and scales of q and k are applied
// to their product.
#pragma once

#include "loops/definition.h"

namespace tenon::fusion {

// The variables of its formulas: rows, and what is named here.
inline const std::string kKeyVariable = "key0";        // of the first product's columns, and of v's rows
inline const std::string kSizeVariable = "size0";      // that the first product sums over
inline const std::string kColumnVariable = "column0";  // of the second product
std::string row_variable(size_t row);

struct OnlineAttention {
  std::vector<loops::Axis> rows;
  size_t query;  // among the rows: the axis whose iterations share keys and values
  Dim keys;
  int64_t size, columns;

  // Elements of the factors, without what is constant: in the dtype that they are stored in.
  loops::Scalar q, k, v;
  // Loads of these names stand for what is computed on the way.
  std::string product, greatest, power, total, sum;
  loops::Scalar score;   // of the product
  loops::Scalar weight;  // what the values are multiplied by, of the power
  loops::Scalar result;  // of the sum and the total
  // A key is not seen where one of them is below 0.
  std::vector<Dim> seen;

  const Dim& queries() const { return rows[query].size; }
  // Whether the factors have 16 bits, as tensor cores multiply them.
  bool has_halves() const;
};

// Of a first product, what comes between, and a second product. Nothing where that is no softmax, or no block
// of rows shares keys and values.
std::optional<OnlineAttention> match_online_attention(const std::vector<loops::Definition>& definitions,
                                                      size_t rows);

}  // namespace tenon::fusion
