// hot_sizes.h — recurring sizes of inputs, and a specialised program for each.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "ir/fit.h"

namespace tenon::runtime {

class Executor;

constexpr int kRunsUntilHot = 4;

class HotSizes {
 public:
  using Make = std::function<std::unique_ptr<Executor>(const Bindings& sizes)>;

  // `bytes` is what constants of one such program take, about: together they take a small part of memory.
  HotSizes(Make make, int64_t bytes);
  ~HotSizes();

  // The program for inputs of these sizes, which the run that makes them hot waits for; null where they are
  // not, or where none can be made: then it is as if nobody had asked. Several threads may ask at once.
  const Executor* find(const Bindings& sizes);

  // Of all programs: see Executor.
  void renew_constants();

 private:
  struct Known {
    Bindings sizes;
    int runs = 0;
    bool is_asked_for = false, has_failed = false;
    std::unique_ptr<Executor> program = {};
  };
  Known& known(const Bindings& sizes);

  Make make_;
  int most_;  // programs
  int made_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Known>> known_;
};

}  // namespace tenon::runtime
