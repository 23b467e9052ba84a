// attributes.cpp — attributes of ops, from Python and back.
#include "binding/attributes.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "binding/tensors.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace tenon::python {

Attribute to_attribute(nb::handle object, const AttributeDecl& declared) {
  try {
    switch (declared.kind) {
      case AttributeKind::Bool:
        return nb::cast<bool>(object);
      case AttributeKind::Int:
        return nb::cast<int64_t>(object);
      case AttributeKind::Float:
        return nb::cast<double>(object);
      case AttributeKind::String:
        return nb::cast<std::string>(object);
      case AttributeKind::Ints:
        return nb::cast<Attribute::Ints>(nb::list(object));
      case AttributeKind::Floats:
        return nb::cast<Attribute::Floats>(nb::list(object));
      case AttributeKind::Strings:
        return nb::cast<Attribute::Strings>(nb::list(object));
      case AttributeKind::DType:
        if (const std::optional<DType> dtype = parse_dtype(nb::cast<std::string>(object)))
          return *dtype;
        throw user_error("there is no dtype {}", nb::cast<std::string>(object));
      case AttributeKind::Type:
        return parse_type(nb::cast<std::string>(object));
      case AttributeKind::Literal:
        return Literal(to_datum(object, std::string(declared.name)).tensor());
    }
  } catch (const nb::cast_error&) {
  } catch (nb::python_error&) {
    PyErr_Clear();
  }
  throw user_error("the attribute {} is {}, and not {}", declared.name, name(declared.kind),
                   describe_type(object));
}

nb::object to_object(const Attribute& attribute) {
  switch (attribute.kind()) {
    case AttributeKind::Bool:
      return nb::cast(attribute.as<bool>());
    case AttributeKind::Int:
      return nb::cast(attribute.as<int64_t>());
    case AttributeKind::Float:
      return nb::cast(attribute.as<double>());
    case AttributeKind::String:
      return nb::cast(attribute.as<std::string>());
    case AttributeKind::Ints:
      return nb::cast(attribute.as<Attribute::Ints>());
    case AttributeKind::Floats:
      return nb::cast(attribute.as<Attribute::Floats>());
    case AttributeKind::Strings:
      return nb::cast(attribute.as<Attribute::Strings>());
    case AttributeKind::DType:
      return nb::cast(std::string(name(attribute.as<DType>())));
    case AttributeKind::Type:
      return nb::cast(to_string(attribute.as<Type>()));
    case AttributeKind::Literal:
      return nb::cast(attribute.as<Literal>().tensor());
  }
  return nb::none();
}

}  // namespace tenon::python
