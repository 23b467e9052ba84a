#include "runtime/hot_sizes.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/forks.h"

namespace tenon::runtime {
namespace {

constexpr int kMostPrograms = 4;
constexpr size_t kMostKnown = 64;  // sizes that are counted
constexpr int64_t kPartOfMemory = 8;

}  // namespace

HotSizes::HotSizes(Make make, int64_t bytes)
    : make_(std::move(make)),
      most_(static_cast<int>(std::min<uint64_t>(
          memory_limit() / kPartOfMemory / static_cast<uint64_t>(std::max<int64_t>(bytes, 1)),
          kMostPrograms))) {
  hold_at_forks(mutex_);
}

HotSizes::~HotSizes() { forget_at_forks(mutex_); }

const Executor* HotSizes::find(const Bindings& sizes) {
  {
    const std::lock_guard lock(mutex_);
    Known& asked = known(sizes);
    if (asked.program || asked.is_asked_for || made_ == most_ || ++asked.runs < kRunsUntilHot)
      return asked.program.get();
    asked.is_asked_for = true;
    ++made_;
  }
  std::unique_ptr<Executor> program;
  try {
    program = make_(sizes);
  } catch (const UserError&) {  // too large, say
  } catch (const std::bad_alloc&) {
  }
  const std::lock_guard lock(mutex_);
  Known& asked = known(sizes);
  if (!program) {
    asked.has_failed = true;
    --made_;
  }
  asked.program = std::move(program);
  return asked.program.get();
}

// Those that have a program, or wait for one, stay known: they are few.
HotSizes::Known& HotSizes::known(const Bindings& sizes) {
  const auto it = std::ranges::find_if(known_, [&](const auto& each) { return each->sizes == sizes; });
  if (it != known_.end())
    return **it;
  if (known_.size() == kMostKnown)
    known_.erase(std::ranges::find_if(
        known_, [](const auto& each) { return !each->is_asked_for || each->has_failed; }));
  return *known_.emplace_back(std::make_unique<Known>(Known{.sizes = sizes}));
}

}  // namespace tenon::runtime
