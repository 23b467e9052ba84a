// attempt.h — what every transformation goes through: a change to a copy, and what must hold after it.
#pragma once

#include "base/error.h"
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
  const std::vector<std::string> problems = check(result);
  CHECK(problems.empty(), "a transformation broke kernel {}: {}\n{}\nnow:\n{}", kernel.name, problems.front(),
        print(kernel), print(result));
  return {.kernel = std::move(result), .declined = {}};
}

// The same, where f only changes when statements run: unless a dependence forbids it.
template <class F>
Transformed rearrange(const Kernel& kernel, const F& f) {
  return attempt(kernel, [&](Kernel& result) {
    const Kernel before = stamp(kernel);
    result = before;
    f(result);
    separate_names(result);
    if (const std::optional<std::string> violation = find_violation(before, result))
      throw Declined{*violation};
    result = unstamp(std::move(result));
  });
}

}  // namespace tenon::loops
