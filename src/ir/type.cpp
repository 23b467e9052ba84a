#include "ir/type.h"

#include "base/error.h"
#include "base/hash.h"
#include "ir/not_a_tensor.h"

namespace tenon {

Shape Shape::unranked() {
  Shape shape;
  shape.ranked_ = false;
  return shape;
}

int64_t Shape::rank() const { return static_cast<int64_t>(dims().size()); }

const std::vector<Dim>& Shape::dims() const {
  CHECK(ranked_, "the rank of an unranked shape was asked for");
  return dims_;
}

const Dim& Shape::operator[](int64_t axis) const {
  const int64_t at = axis < 0 ? axis + rank() : axis;
  CHECK(at >= 0 && at < rank(), "axis {} of a shape of rank {}", axis, rank());
  return dims_[static_cast<size_t>(at)];
}

std::optional<Extents> Shape::extents() const {
  if (!ranked_)
    return std::nullopt;
  Extents extents;
  for (const Dim& dim : dims_) {
    if (!dim.is_constant())
      return std::nullopt;
    extents.push_back(*dim.constant());
  }
  return extents;
}

Dim Shape::element_count() const {
  if (!ranked_)
    return Dim();
  Dim count = 1;
  for (const Dim& dim : dims_)
    count = count * dim;
  return count;
}

bool operator==(const SequenceType& a, const SequenceType& b) { return *a.element == *b.element; }
bool operator==(const OptionalType& a, const OptionalType& b) { return *a.element == *b.element; }

Type Type::sequence(Type element) { return SequenceType{std::make_shared<const Type>(std::move(element))}; }
Type Type::optional(Type element) { return OptionalType{std::make_shared<const Type>(std::move(element))}; }

const TensorType& Type::as_tensor() const {
  if (!is_tensor())
    throw NotATensor(fmt::format("a tensor is wanted here, but this is {}", *this));
  return std::get<TensorType>(*this);
}

const Type& Type::element() const {
  CHECK(!is_tensor(), "a sequence or optional was expected, not {}", to_string(*this));
  return is_sequence() ? *std::get<SequenceType>(*this).element : *std::get<OptionalType>(*this).element;
}

std::string to_string(const Shape& shape) {
  if (!shape.ranked())
    return "[*]";
  std::string text = "[";
  for (const Dim& dim : shape.dims())
    text += (text.size() > 1 ? "," : "") + dim.to_string();
  return text + "]";
}

std::string to_string(const Type& type) {
  if (type.is_tensor())
    return fmt::format("{}{}", type.as_tensor().dtype, type.as_tensor().shape);
  return fmt::format("{}<{}>", type.is_sequence() ? "seq" : "opt", to_string(type.element()));
}

uint64_t hash(const Type& type) {
  uint64_t h = type.index();
  if (!type.is_tensor())
    return hash_combine(h, hash(type.element()));
  const auto& [dtype, shape] = type.as_tensor();
  h = hash_combine(h, static_cast<uint64_t>(dtype));
  h = hash_combine(h, shape.ranked());
  if (shape.ranked())
    for (const Dim& dim : shape.dims())
      h = hash_combine(h, dim.hash());
  return h;
}

std::set<std::string> symbols_of(const Type& type) {
  if (!type.is_tensor())
    return symbols_of(type.element());
  std::set<std::string> all;
  if (const Shape& shape = type.as_tensor().shape; shape.ranked())
    for (const Dim& dim : shape.dims()) {
      const std::vector<std::string> symbols = dim.symbols();
      all.insert(symbols.begin(), symbols.end());
    }
  return all;
}

Type substitute(const Type& type, const std::map<std::string, Dim>& sizes) {
  if (!type.is_tensor()) {
    Type element = substitute(type.element(), sizes);
    return type.is_sequence() ? Type::sequence(element) : Type::optional(element);
  }
  const auto& [dtype, shape] = type.as_tensor();
  if (!shape.ranked() || sizes.empty())
    return type;
  std::vector<Dim> dims = shape.dims();
  for (Dim& dim : dims)
    dim = dim.substitute(sizes);
  return Type::tensor(dtype, dims);
}

bool refines(const Type& actual, const Type& inferred) {
  if (actual.index() != inferred.index())
    return false;
  if (!actual.is_tensor())
    return refines(actual.element(), inferred.element());
  const TensorType& a = actual.as_tensor();
  const TensorType& b = inferred.as_tensor();
  if (a.dtype != b.dtype)
    return false;
  if (!b.shape.ranked())
    return true;
  if (!a.shape.ranked() || a.shape.rank() != b.shape.rank())
    return false;
  for (int64_t i = 0; i < a.shape.rank(); ++i)
    if (!b.shape[i].is_unknown() && !(a.shape[i] == b.shape[i]))
      return false;
  return true;
}

std::optional<Type> join(const Type& a, const Type& b) {
  if (a.index() != b.index())
    return std::nullopt;
  if (!a.is_tensor()) {
    std::optional<Type> element = join(a.element(), b.element());
    if (!element)
      return std::nullopt;
    return a.is_sequence() ? Type::sequence(*element) : Type::optional(*element);
  }
  const TensorType& x = a.as_tensor();
  const TensorType& y = b.as_tensor();
  if (x.dtype != y.dtype)
    return std::nullopt;
  if (!x.shape.ranked() || !y.shape.ranked() || x.shape.rank() != y.shape.rank())
    return Type::tensor(x.dtype, Shape::unranked());
  std::vector<Dim> dims;
  for (int64_t i = 0; i < x.shape.rank(); ++i)
    dims.push_back(x.shape[i] == y.shape[i] ? x.shape[i] : Dim());
  return Type::tensor(x.dtype, dims);
}

Type type_of(const Datum& datum) {
  if (std::holds_alternative<Tensor>(datum))
    return Type::tensor(datum.tensor().dtype(), Shape::of(datum.tensor().extents()));
  // An empty sequence or optional does not say what it would hold; f32[*] stands for anything.
  Type element = Type::tensor(DType::F32, Shape::unranked());
  if (std::holds_alternative<Optional>(datum))
    return Type::optional(datum.optional().element ? type_of(*datum.optional().element) : element);
  bool first = true;
  for (const Datum& item : datum.sequence().elements) {
    const Type type = type_of(item);
    element = first ? type : join(element, type).value_or(element);
    first = false;
  }
  return Type::sequence(element);
}

}  // namespace tenon
