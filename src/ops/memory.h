// memory.h — where a value lives: copies, and moves between devices. They change no element.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& memory_ops();

Value copy(Value x);
Value to_device(Value x, std::string_view device);

}  // namespace tenon
