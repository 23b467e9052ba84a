// prove.h — holds a rule to what it claims: it fires in its example, not in its counterexample, and what it
// makes is as near to what it replaces as its class of numerics says, for drawn dtypes, sizes and elements.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "rewrite/apply.h"

namespace tenon {

// Parses "(%x: T[n]) { … }" with a dtype for T; null where the ops do not take that dtype, which `why_not`
// tells.
std::unique_ptr<Graph> parse_example(std::string_view text, DType dtype, std::string* why_not = nullptr);

void prove(const Rule& rule);

}  // namespace tenon
