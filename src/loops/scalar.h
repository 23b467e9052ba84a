// scalar.h — what one element is computed by: an expression over elements of buffers, loop variables and
// numbers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "tensor/dtype.h"

namespace tenon::loops {

enum class Function : uint8_t {
  // clang-format off
  Add, Subtract, Multiply, Divide, Remainder, Minimum, Maximum, Power, ShiftLeft, ShiftRight,
  Equal, Less, LessEqual,                        // these give bool
  And, Or, Xor, Not,                             // bit by bit
  DotI8x4,                                      // of 32 bits: the products of their four bytes, added up; those of the
                                                 // first have no sign
  DotBf16x2,                                      // of 32 bits: the products of their two bf16, added up, which gives f32
  PackI8x4,                                     // of 32 bits: the lowest bytes of four side by side, the first lowest
  PackBf16x2,                                     // of bf16: two side by side in 32 bits, the first lowest
  RoundDownToBf16,                                       // of f32: the first half of its bits, which is a bf16
  Bf16Remainder,                                          // of f32: the number less its top half
  Philox, PhiloxHigh,                            // of u64: the first and the last 64 bits of Philox4x32-10 for a key, the number
                                                 // of a call and that of an element
  Negate, Absolute, Sqrt, Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf,
  Floor, Ceil, Round,                            // Round: halves to even
  Select,                                        // of a bool: the second operand where it holds, else the third
  Require,                                       // of a bool: the second operand; the kernel fails where it does not hold
  Cast,
  // clang-format on
};

struct FunctionInfo {
  Function function;
  std::string_view name;   // as printed: sqrt(x)
  std::string_view infix;  // as printed between two operands; empty where the name is
  int operands;
};

const FunctionInfo& info(Function function);
std::span<const FunctionInfo> all_functions();
bool gives_bool(Function function);
// The dtype that it gives, whatever its operands have; nothing where it gives what they have.
std::optional<DType> dtype_given(Function function);
bool takes_condition(Function function);  // its first operand is a bool, whatever the others are

// As numbers are computed with: floats as double, signed integers, unsigned ones and bool.
using Number = std::variant<double, int64_t, uint64_t>;

struct ScalarNode;

// An immutable expression with a dtype. Copies share it, and so may parts of larger expressions.
class Scalar {
 public:
  enum class Kind : uint8_t { Number, Index, Variable, Load, Apply };

  static Scalar number(DType dtype, Number value);
  static Scalar zero(DType dtype);
  static Scalar index(Dim value);  // of loop variables and sizes; i64
  static Scalar variable(std::string name, DType dtype);
  static Scalar load(std::string buffer, DType dtype, std::vector<Scalar> at);
  // The operands must have one dtype, but for a condition.
  static Scalar apply(Function function, std::vector<Scalar> operands);
  static Scalar cast(DType dtype, Scalar operand);  // itself, where it has that dtype already

  Kind kind() const;
  DType dtype() const;
  Number value() const;                         // of a Number
  const Dim& index() const;                     // of an Index
  const std::string& name() const;              // of a Variable; of a Load, its buffer
  Function function() const;                    // of an Apply
  const std::vector<Scalar>& operands() const;  // of an Apply; of a Load, its indices

  // Loop variables and sizes replaced, all at once.
  Scalar substitute(const std::map<std::string, Dim>& replacements) const;

  friend bool operator==(const Scalar& a, const Scalar& b);
  const void* identity() const { return node_.get(); }

 private:
  explicit Scalar(std::shared_ptr<const ScalarNode> node) : node_(std::move(node)) {}

  std::shared_ptr<const ScalarNode> node_;
};

// Calls f for every load in an expression, also those in the indices of others.
void for_each_load(const Scalar& scalar, const std::function<void(const Scalar&)>& f);

// The first load of a word that is joined of elements which lie side by side, bytes or pairs; null where it
// is no such word.
const Scalar* first_of_word(const Scalar& word);

// Calls f for every index, of loads or by itself; once for what a formula shares.
void for_each_index(const Scalar& scalar, const std::function<void(const Dim&)>& f);

// The expression with f(load) in place of each load; f sees its indices replaced already.
Scalar replace_loads(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f);

// The same for each index.
Scalar replace_indices(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f);

// The same for each Select.
Scalar replace_selects(const Scalar& scalar, const std::function<Scalar(const Scalar&)>& f);

}  // namespace tenon::loops
