// op.h — the declaration of an op: everything Tenon knows about it, in one place.
//
// A declaration is data plus a few functions, side by side in the op's family file under ops/:
//
//   {.name = "softmax",
//    .doc = "exp(x) / sum(exp(x)) along one axis",
//    .operands = {{"x", "T"}},
//    .attributes = {{"axis", AttributeKind::Int, "the axis along which the result sums to one", -1}},
//    .results = {{"y", "T"}},
//    .types = {{"T", Floats}},
//    .infer = softmax::infer,
//    .eval = softmax::eval}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/attribute.h"
#include "ir/type.h"

namespace tenon {

class Node;
class Value;
struct Operand;
class Call;
class LowerContext;  // declared by ops/lower.h
class GradContext;   // declared by ops/gradient.h

enum class Category : uint8_t { Compute, Data, Shape, Control, Memory };
std::string_view name(Category category);

class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType dtype : dtypes)
      bits_ |= 1u << static_cast<unsigned>(dtype);
  }
  constexpr bool contains(DType dtype) const { return (bits_ >> static_cast<unsigned>(dtype)) & 1; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  std::string to_string() const;  // "f32 f16", by dtype; or the name of the set where it has one

  friend constexpr bool operator==(DTypeSet, DTypeSet) = default;

 private:
  uint32_t bits_ = 0;
};

inline constexpr DTypeSet Floats = {DType::F64,      DType::F32,        DType::F16,    DType::BF16,
                                    DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                                    DType::F8E8M0,   DType::F4E2M1};
inline constexpr DTypeSet SignedIntegers = {DType::I64, DType::I32, DType::I16,
                                            DType::I8,  DType::I4,  DType::I2};
inline constexpr DTypeSet UnsignedIntegers = {DType::U64, DType::U32, DType::U16,
                                              DType::U8,  DType::U4,  DType::U2};
inline constexpr DTypeSet Integers = SignedIntegers | UnsignedIntegers;
inline constexpr DTypeSet Numbers = Floats | Integers;
inline constexpr DTypeSet NumbersAndBool = Numbers | DTypeSet{DType::Bool};
inline constexpr DTypeSet AnyDType = NumbersAndBool | DTypeSet{DType::String, DType::C64, DType::C128};

enum class Arity : uint8_t { One, Optional, Many };

// `type` says what may stand here:
//   "T"     a tensor whose dtype is the type variable T: the same for every operand and result that names it
//   "i64"   a tensor of that dtype
//   "any"   any value: tensor, sequence or optional
//   "seq"   a sequence        "opt"   an optional
// and for results also
//   "$to"   a tensor of the dtype that the attribute `to` names
//   "any"   whatever infer says
struct OperandDecl {
  std::string_view name;
  std::string_view type;
  Arity arity = Arity::One;
};

struct ResultDecl {
  std::string_view name;
  std::string_view type;
  Arity arity = Arity::One;  // only the last may be Many
};

enum class Binding : uint8_t {
  Early,  // fixed when the node is made
  Late,   // may instead be given by an integer operand of the same name, when a model computes it at run time
};

// A default that follows from the operands and the other attributes of a node.
struct ComputedDefault {
  std::string_view doc;  // "ones"
  Attribute (*compute)(const Node&);
};

struct AttributeDecl {
  std::string_view name;
  AttributeKind kind;
  std::string_view doc;
  std::optional<Attribute> default_value = std::nullopt;  // not printed where a node has it
  Binding binding = Binding::Early;
  // What a node gets that does without the attribute, instead of the default value. With neither, it must be
  // given.
  std::optional<ComputedDefault> computed_default = std::nullopt;
};

struct TypeVariable {
  std::string_view name;
  DTypeSet allowed;
};

struct Traits {
  bool elementwise = false;  // each result element depends only on the operands' elements it broadcasts from
  bool commutative = false;  // the first two operands may change places
  bool reshapes = false;     // its result is the first operand, the same elements in the same order
  bool random = false;       // draws from the evaluator's seeded generator: never folded or merged
  bool rounds_steps =
      false;  // of its decomposition: where they are narrow floats, each is rounded, not only the last
  bool takes_unranked = false;  // infer copes with operands of unknown rank; else such a node is not
                                // inferred, and its results are unranked tensors of the declared dtype
};

using InferFunction = Types (*)(const Node&);
using ContentFunction = std::optional<std::vector<Dim>> (*)(const Node&);
using EvalFunction = Data (*)(const Call&);
using LowerFunction = void (*)(LowerContext&);
// The gradients of the operands, by name; an operand left out has none.
using GradFunction = std::vector<Operand> (*)(const GradContext&);
// The same results, made of simpler ops, at the insertion point.
using DecomposeFunction = std::vector<Value> (*)(const Node&);

struct OpDef {
  std::string_view name;
  std::string_view doc;  // one line
  Category category = Category::Compute;
  std::vector<OperandDecl> operands = {};
  std::vector<AttributeDecl> attributes = {};
  std::vector<ResultDecl> results = {};
  std::vector<TypeVariable> types = {};        // a variable that is not listed stands for any dtype
  std::vector<std::string_view> regions = {};  // the names of the nested graphs
  Traits traits = {};
  InferFunction infer = nullptr;      // the results' types; an unknown Dim where dynamic
  ContentFunction content = nullptr;  // the elements of a small integer result, as far as shapes tell
  EvalFunction eval = nullptr;        // the oracle: naive, from the formula
  LowerFunction lower = nullptr;
  GradFunction grad = nullptr;
  // A composite's formula in simpler ops; what has one needs no grad of its own.
  DecomposeFunction decompose = nullptr;

  const OperandDecl* find_operand(std::string_view name) const;
  const AttributeDecl* find_attribute(std::string_view name) const;
  // For a name that the declaration lacks.
  UserError unknown_name(std::string_view wanted) const;
  std::string signature() const;  // softmax(x: T, axis: int = -1) -> (y: T) where T in floats
};

// The ops there are. Filled once, at the start of a program, by ops/registry.h.
void register_op(const OpDef& op);
const OpDef* find_op(std::string_view name);
const OpDef& require_op(std::string_view name);  // a missing one is our bug
const OpDef& wanted_op(std::string_view name);   // a missing one is the user's fault
std::vector<const OpDef*> registered_ops();      // by name

// "\n  hint: did you mean X?" for the name in `names` that `wanted` was most likely meant to be; empty when
// none is near.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& names);

}  // namespace tenon
