// traced_graphs.h — the graphs whose C++ source a test compiles, for the test and for the program it makes.
#pragma once

#include <cstdio>

#include "frontends/builtin/builtin.h"
#include "ir/equal.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

// Their names differ in more than what a C++ name cannot hold.
inline std::vector<std::unique_ptr<Graph>> make_traced_graphs() {
  register_ops();
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const std::string name : {"attention", "cond", "my_module", "scan", "while_loop"})
    graphs.push_back(builtin::make_model(name));
  for (
      const std::string_view text : {
          R"~(graph main(%x: f32[2], %unused: f32[3]) {
                 %nothing = exp(%x)
                 %c = constant(value=f32[7] {-0.0, inf, -inf, nan, 0.1, 1e+20, 3})
                 %0 = constant(value=i64[3] {-9223372036854775808, 9223372036854775807, 0})
                 %1 = constant(value=u64[2] {18446744073709551615, 0})
                 %2 = constant(value=bool[2] {1, 0})
                 %3 = constant(value=f16[1000] splat -0.5)
                 %4 = constant(value=i32[100] iota -3 2)
                 %5 = constant(value=f64[0] {})
                 return %x, %c, %0, %1, %2, %3, %4, %5 })~",
          R"~(graph int(%const.cast: f32[n], %parse.type: f32[n], %HUGE.VAL: f32[n], %int: f32[n], %x: f32[n]) {
                 %a.b = add(%const.cast, %parse.type) from "a", "b"
                 %x.y = sub(%a.b, %HUGE.VAL)
                 %while = mul(%x.y, %int)
                 %_: f32[n] = div(%while, %x) from "\x01\"\\é"
                 return %_ as "the \"result\"" })~",
          R"~(graph "a graph\n with )\" in its name"(%"in )\" put": str[2]) {
                 %s = constant(value=str[6] {"", ")\"", "a\\b\n\t", "\x00zero\x001", "é %d {}", "??/"})
                 %t = constant(value=str[40] splat "again")
                 %u = constant(value=str[] {"one"})
                 %y = string_concat(%"in )\" put", %u)
                 %z, %n = string_split(%y, delimiter=")\"")
                 %m = string_normalize(%y, drop=["a \"b\"", "\\"])
                 return %y, %s, %t, %m, %n, %z })~",
          R"~(graph refined(%x: f32[n,m], %u: f32[*], %a: i64[k]) {
                 %found: i64[2,many] = nonzero(%x)
                 %more = nonzero(%x)
                 %v: f32[n,5] = exp(%u)
                 %w = add(%u, %u)
                 %sum: f32[p,q] = reduce_sum(%x, axes=%a)
                 return %found, %v, %w, %sum, %more as "found" })~",
          R"~(graph sequences(%x: f32[2], %y: f32[n]) {
                 %s = sequence_construct([%x, %y, %x])
                 %p = constant(value=i32[1] {-2})
                 %at = sequence_at(%s, %p)
                 %length = sequence_length(%s)
                 %none = sequence_empty(element=f32[?])
                 return %s, %at, %length })~",
          R"~(graph nested(%c: bool[], %x: f32[n], %trips: i64[]) {
                 %y: f32[k] = if(%c, [%x]) then(%x: f32[n]) {
                   %0 = concat([%x, %x], axis=0)
                   return %0
                 } else(%x: f32[n]) {
                   %last, %all = while(carried=[%x]) body(%iteration: i64[], %x: f32[n]) {
                     %go = constant(value=bool[] {1})
                     %0 = mul(%x, %x)
                     return %go, %0, %iteration
                   } from "loop"
                   return %last
                 }
                 return %y })~",
      })
    graphs.push_back(parse(text));
  return graphs;
}

using TraceFunction = std::unique_ptr<Graph> (*)(const LiteralTable&);

// What main of the program gives back: 1, after saying why, when a function traces to another graph.
inline int compare_traced(const std::vector<TraceFunction>& functions) {
  const std::vector<std::unique_ptr<Graph>> graphs = make_traced_graphs();
  int status = 0;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const std::unique_ptr<Graph> again = functions.at(i)(large_literals(*graphs[i]));
    const std::string wanted = print(*graphs[i]), got = print(*again);
    if (const std::string where = difference(*graphs[i], *again); !where.empty() || wanted != got) {
      std::printf("%s\nwanted %s\ngot %s\n", where.c_str(), wanted.c_str(), got.c_str());
      status = 1;
    }
  }
  return status;
}

}  // namespace tenon
