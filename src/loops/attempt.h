// attempt.h — what every transformation goes through: a change to a copy, and what must hold after it.
#pragma once

#include "base/error.h"
#include "loops/check.h"
#include "loops/edit.h"
#include "loops/order.h"
#include "loops/transform.h"

namespace tenon::loops {

// What f makes of the kernel, unless it declines.
template <class F>
Transformed attempt(const Kernel& kernel, const F& f) {
  Kernel result = kernel;
  try {
    f(result);
  } catch (const Declined& declined) {
    return {.kernel = std::nullopt, .declined = declined.reason};
  }
  for (const Problem& problem : find_problems(result)) {
    if (problem.is_too_large)
      return {.kernel = std::nullopt, .declined = "bounds or indices would become too long"};
    CHECK(false, "a transformation broke kernel {}: {}\n{}\nnow:\n{}", kernel.name, problem.text,
          print(kernel), print(result));
  }
  return {.kernel = std::move(result), .declined = {}};
}

// The same, where f takes loops apart and leaves all runs of statements in their order: that is always legal.
template <class F>
Transformed take_apart(const Kernel& kernel, const F& f) {
  return attempt(kernel, [&](Kernel& result) {
    f(result);
    separate_names(result);
  });
}

// The same, where f runs the same statements for the same values, each once, but at other times: unless a
// dependence forbids it.
template <class F>
Transformed rearrange(const Kernel& kernel, const F& f) {
  return attempt(kernel, [&](Kernel& result) {
    const Kernel before = stamp(kernel);
    result = before;
    f(result);
    separate_names(result);
    if (const std::optional<std::string> violation = find_violation(before, result))
      throw Declined{*violation};
    result = restore_origins(kernel, std::move(result));
  });
}

}  // namespace tenon::loops
