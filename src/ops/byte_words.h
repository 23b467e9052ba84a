// byte_words.h — bytes that are multiplied four at a time: programs compute products of quantised matrices
// so.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& byte_word_ops();

Value words(Value x);
Value matmul_words(Value a, Value b);

}  // namespace tenon
