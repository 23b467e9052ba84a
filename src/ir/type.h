// type.h — the static type of a value: a tensor of some dtype and shape, a sequence, or an optional.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "ir/dim.h"
#include "tensor/datum.h"
#include "tensor/dtype.h"

namespace tenon {

// The dimensions of a tensor, or `unranked` where not even their number is known before the graph runs.
class Shape {
 public:
  Shape() = default;  // rank 0
  Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  static Shape of(const Extents& extents) { return Shape(std::vector<Dim>(extents.begin(), extents.end())); }
  static Shape unranked();
  static Shape unknown(int64_t rank) { return Shape(std::vector<Dim>(static_cast<size_t>(rank))); }

  bool ranked() const { return ranked_; }
  int64_t rank() const;                       // CHECKs that it is ranked
  const Dim& operator[](int64_t axis) const;  // negative axes count from the end
  const std::vector<Dim>& dims() const;
  std::optional<Extents> extents() const;  // when every dimension is an integer
  Dim element_count() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<Dim> dims_;
  bool ranked_ = true;
};

class Type;

struct TensorType {
  DType dtype = DType::F32;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

struct SequenceType {
  std::shared_ptr<const Type> element;
  friend bool operator==(const SequenceType& a, const SequenceType& b);
};

struct OptionalType {
  std::shared_ptr<const Type> element;
  friend bool operator==(const OptionalType& a, const OptionalType& b);
};

class Type : public std::variant<TensorType, SequenceType, OptionalType> {
 public:
  using variant::variant;
  static Type tensor(DType dtype, Shape shape) { return TensorType{dtype, std::move(shape)}; }
  static Type sequence(Type element);
  static Type optional(Type element);

  bool is_tensor() const { return std::holds_alternative<TensorType>(*this); }
  bool is_sequence() const { return std::holds_alternative<SequenceType>(*this); }
  bool is_optional() const { return std::holds_alternative<OptionalType>(*this); }
  const TensorType& as_tensor() const;  // a user_error where a model has something else in a tensor's place
  const Type& element() const;          // of a sequence or an optional
};

using Types = std::vector<Type>;

std::string to_string(const Shape& shape);  // [1,n,64], [*] when unranked
std::string to_string(const Type& type);    // f32[1,4]  seq<f32[n]>  opt<i64[]>
uint64_t hash(const Type& type);

std::set<std::string> symbols_of(const Type& type);
Type substitute(const Type& type, const std::map<std::string, Dim>& sizes);  // for its symbols

// True when a value of type `actual` may stand where inference says `inferred`: where the inferred type has
// an unknown dimension or no rank, `actual` may say more.
bool refines(const Type& actual, const Type& inferred);

// The least specific type that both refine: differing dimensions become unknown, differing ranks unranked.
// Types of a different kind or dtype have no such type.
std::optional<Type> join(const Type& a, const Type& b);

// The type a datum has.
Type type_of(const Datum& datum);

}  // namespace tenon

template <>
struct fmt::formatter<tenon::Shape> : fmt::formatter<std::string> {
  auto format(const tenon::Shape& shape, format_context& ctx) const {
    return fmt::formatter<std::string>::format(tenon::to_string(shape), ctx);
  }
};
template <>
struct fmt::formatter<tenon::Type> : fmt::formatter<std::string> {
  auto format(const tenon::Type& type, format_context& ctx) const {
    return fmt::formatter<std::string>::format(tenon::to_string(type), ctx);
  }
};
