// attribute.h — the value of a node's attribute: what is fixed when the node is made.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/type.h"
#include "tensor/literal.h"

namespace tenon {

enum class AttributeKind : uint8_t { Bool, Int, Float, String, Ints, Floats, Strings, DType, Type, Literal };

std::string_view name(AttributeKind kind);

// Converts to the C++ type it is read as; reading it as another kind is our bug:
//   const int64_t axis = node.attr("axis");
class Attribute {
 public:
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  using Strings = std::vector<std::string>;

  Attribute(bool value) : value_(value) {}
  Attribute(int value) : value_(static_cast<int64_t>(value)) {}
  Attribute(int64_t value) : value_(value) {}
  Attribute(double value) : value_(value) {}
  Attribute(const char* value) : value_(std::string(value)) {}
  Attribute(std::string value) : value_(std::move(value)) {}
  Attribute(std::string_view value) : value_(std::string(value)) {}
  Attribute(Ints value) : value_(std::move(value)) {}
  Attribute(Floats value) : value_(std::move(value)) {}
  Attribute(Strings value) : value_(std::move(value)) {}
  Attribute(tenon::DType value) : value_(value) {}
  Attribute(tenon::Type value) : value_(std::move(value)) {}
  Attribute(tenon::Literal value) : value_(std::move(value)) {}

  AttributeKind kind() const { return static_cast<AttributeKind>(value_.index()); }

  template <class T>
  const T& as() const {
    CHECK(std::holds_alternative<T>(value_), "an attribute of kind {} was read as another", name(kind()));
    return std::get<T>(value_);
  }
  operator bool() const { return as<bool>(); }
  operator int64_t() const { return as<int64_t>(); }
  operator double() const { return as<double>(); }
  operator const std::string&() const { return as<std::string>(); }
  operator const Ints&() const { return as<Ints>(); }
  operator const Floats&() const { return as<Floats>(); }
  operator const Strings&() const { return as<Strings>(); }
  operator tenon::DType() const { return as<tenon::DType>(); }
  operator const tenon::Type&() const { return as<tenon::Type>(); }
  operator const tenon::Literal&() const { return as<tenon::Literal>(); }

  uint64_t hash() const;
  friend bool operator==(const Attribute& a, const Attribute& b);  // floats by their bits, so NaN equals NaN

 private:
  // In the order of AttributeKind.
  std::variant<bool, int64_t, double, std::string, Ints, Floats, Strings, tenon::DType, tenon::Type,
               tenon::Literal>
      value_;
};

}  // namespace tenon
