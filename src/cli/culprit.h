// culprit.h — the rewrite that broke a model, or what is wrong with its program, in words.
#pragma once

#include "verify/bisect.h"

namespace tenon::cli {

constexpr std::string_view kNoCulprit = "no rewrite changes what the model computes, nor does its program\n";

inline std::string describe_program(const WrongProgram& program) {
  const std::string nodes = fmt::format("  nodes: {}\n", fmt::join(program.sources, ", "));
  if (!program.kernel && !program.sources.empty())
    return program.part + "\n" + nodes;
  if (!program.kernel)
    return program.part == "fusion"
               ? "fusion: no kernel is wrong by itself, and without fusion the program is right\n"
               : "runtime: no kernel is wrong by itself\n";
  return fmt::format("{} of kernel {}\n{}", program.part, *program.kernel, nodes);
}

inline std::string describe_culprit(const Culprit& culprit) {
  if (culprit.program)
    return fmt::format(
        "no rewrite changes what the model computes, but the compiled program does not agree\n"
        "{}  {}\n",
        describe_program(*culprit.program), culprit.numbers.detail);
  const Application& rewrite = culprit.application;
  return fmt::format("rewrite {}: rule {} of {} {} ({})\n  nodes: {}\n  {}\n", rewrite.number, rewrite.rule,
                     culprit.level == Level::Target ? "target pass" : "pass", rewrite.pass,
                     name(rewrite.numerics), fmt::join(rewrite.nodes, ", "), culprit.numbers.detail);
}

}  // namespace tenon::cli
