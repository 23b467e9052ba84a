// peak_memory.h — the most memory that this process has used.
#pragma once

#include <sys/resource.h>

namespace tenon::cli {

inline double peak_memory_mib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace tenon::cli
