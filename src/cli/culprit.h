// culprit.h — the rewrite that broke a model, in words.
#pragma once

#include "verify/bisect.h"

namespace tenon::cli {

inline std::string describe_culprit(const Culprit& culprit) {
  const Application& rewrite = culprit.application;
  return fmt::format("rewrite {}: rule {} of pass {} ({})\n  nodes: {}\n  {}\n", rewrite.number, rewrite.rule,
                     rewrite.pass, name(rewrite.numerics), fmt::join(rewrite.nodes, ", "),
                     culprit.numbers.detail);
}

}  // namespace tenon::cli
