// forks.h — a fork keeps the thread that forks and no other: a mutex that another held is never unlocked in
// the child. So a fork waits for those that every run takes.
#pragma once

#include <mutex>

namespace tenon::runtime {

void hold_at_forks(std::mutex& mutex);
void forget_at_forks(std::mutex& mutex);

}  // namespace tenon::runtime
