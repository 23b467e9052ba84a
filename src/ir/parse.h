// parse.h — reads the text form of a graph.
//
//   graph NAME(%input: TYPE, …) {
//     %result: TYPE, … = op(%operand, name=%operand, many=[%a, %b], attribute=VALUE, …)
//         region(%input: TYPE) { … }
//         from "source"
//     return %value, %value as "output name"
//   }
//
// Operands stand in the order of the op's declaration or by name. A result's type may be left out: it is
// inferred. Types: f32[1,n,2*n+1], f32[*] (unranked), seq<…>, opt<…>. Values: 3, 0.5, inf, true, "text",
// [1, 2], f32, and constants:
//
//   f32[2] {1, 2}    f32[1000] splat 0    i64[10] iota 0 1    f32[4096] file "weights.bin" OFFSET SIZE
//   f32[4096] hash 0x…
//
// Comments run from // to the end of the line.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "ir/print.h"

namespace tenon {

struct ParseOptions {
  // Where the files that constants name are looked up; nothing: no constant may name one.
  std::optional<std::filesystem::path> folder = std::filesystem::path();
  const LiteralTable* literals = nullptr;  // the constants that are printed by hash
  // Of those that are not in the table, everything but the elements is known: to ask for them is a
  // user_error.
  bool takes_absent = false;
};

// A user_error says line and column.
std::unique_ptr<Graph> parse(std::string_view text, const ParseOptions& options = {});
Type parse_type(std::string_view text);
Attribute parse_attribute(std::string_view text, AttributeKind kind);

}  // namespace tenon
