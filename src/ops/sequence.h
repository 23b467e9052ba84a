// sequence.h — sequences of values, and values that may be absent.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& sequence_ops();

Value sequence_empty(Graph& graph, const Type& element);
Value sequence_construct(const std::vector<Value>& elements);
// A position may be negative: it then counts from the end. Without one, the end is meant.
Value sequence_insert(Value sequence, Value element, Value position = {});
Value sequence_erase(Value sequence, Value position = {});
Value sequence_at(Value sequence, Value position);
Value sequence_length(Value sequence);  // i64[]

Value optional_empty(Graph& graph, const Type& element);
Value optional_of(Value element);
Value optional_get(Value optional);
Value optional_has(Value optional);  // bool[]

}  // namespace tenon
