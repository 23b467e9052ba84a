// listen.h — shows on the terminal how far a long task is.
#pragma once

#include <optional>

#include "base/progress.h"
#include "verify/listener.h"

namespace tenon::cli {

// Each stretch of the task has a line of its own in `progress`, which must outlive the listener.
inline Listener listener_for(std::optional<Progress>& progress) {
  return {.begin = [&](std::string_view what, int64_t steps) { progress.emplace(std::string(what), steps); },
          .step = [&](std::string_view detail) { progress->step(detail); }};
}

}  // namespace tenon::cli
