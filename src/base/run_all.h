// run_all.h — independent work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tenon {

// Calls work(0) … work(count - 1), several at once, on this thread and others. All are done when it returns;
// of those that throw, the first in order is thrown again.
void run_all(size_t count, int threads, const std::function<void(size_t)>& work);

}  // namespace tenon
