// attributes.h — attributes of ops, from Python and back.
#pragma once

#include <nanobind/nanobind.h>

#include "ir/op.h"

namespace tenon::python {

namespace nb = nanobind;

Attribute to_attribute(nb::handle object, const AttributeDecl& declared);
nb::object to_object(const Attribute& attribute);

}  // namespace tenon::python
