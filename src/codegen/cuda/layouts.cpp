#include "codegen/cuda/layouts.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codegen/cuda/accesses.h"
#include "ir/dim_expression.h"
#include "loops/definition.h"

namespace tenon::codegen::cuda {

using loops::Buffer;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::Scalar;
using loops::Space;
using loops::Statement;

namespace {

// An iteration of the loop is the same statements in each lane, so that a statement can run in all lanes
// before the next. Vector loops within have lanes of their own.
bool can_run_in_lanes(const std::vector<Statement>& body, const std::string& lane) {
  const auto varies = [&](const Dim& dim) { return dim.mentions(lane); };
  return std::ranges::all_of(body, [&](const Statement& statement) {
    if (const auto* loop = std::get_if<Loop>(&statement);
        loop != nullptr && (varies(loop->begin) || varies(loop->end) || loop->mark == Mark::Vector))
      return false;
    if (const auto* guard = std::get_if<loops::Guard>(&statement);
        guard != nullptr && std::ranges::any_of(guard->conditions, varies))
      return false;
    const auto* inner = body_of(statement);
    return inner == nullptr || can_run_in_lanes(*inner, lane);
  });
}

}  // namespace

class LayoutBuilder {
 public:
  LayoutBuilder(const loops::Kernel& kernel, int64_t threads, bool spreads_shared, Layouts& layouts)
      : kernel_(kernel), threads_(threads), spreads_shared_(spreads_shared), layouts_(layouts) {
    for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
      for (const Buffer& buffer : *buffers)
        buffers_.insert_or_assign(buffer.name, Visible{&buffer, nullptr});
  }

  void build(const std::vector<Statement>& body) {
    visit(body);
    std::set<size_t> groups;
    for (size_t i = 0; i < loops_.size(); ++i)
      groups.insert(group_of(i));
    for (const size_t group : groups)
      choose(group);
  }

 private:
  struct Visible {
    const Buffer* buffer;
    const Local* local;  // null for inputs and outputs
  };
  struct Access {
    const Buffer* buffer;
    std::vector<Scalar> at;
    bool is_shared, is_chosen;
  };
  struct ThreadLoop {
    const Loop* loop;
    size_t group;                  // the first loop with which it shares a spread buffer
    std::vector<Access> accesses;  // to memory and shared memory
  };

  size_t group_of(size_t loop) {
    while (loops_[loop].group != loop)
      loop = loops_[loop].group;
    return loop;
  }

  // Statements that all threads run alike.
  void visit(const std::vector<Statement>& body) {
    const std::map<std::string, Visible> around = buffers_;
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<Local>(&statement))
        buffers_.insert_or_assign(local->buffer.name, Visible{&local->buffer, local});
      if (const auto* loop = std::get_if<Loop>(&statement); loop != nullptr && loop->mark == Mark::Thread)
        visit(*loop);
      else if (const auto* inner = body_of(statement))
        visit(*inner);
      else
        loops::for_each_use(statement, [&](const loops::Use& use) {
          if (const Local* local = buffers_.at(use.place.buffer).local)
            held_whole_.insert(local);
        });
    }
    buffers_ = around;
    for (const auto& [local, loops] : spread_over_)
      if (held_whole_.contains(local))
        throw unsupported("kernel {}: buffer '{}' is spread over threads, but also used by all alike",
                          kernel_.name, local->buffer.name);
  }

  static void find_locals(const std::vector<Statement>& body, std::set<std::string>& found) {
    for (const Statement& statement : body) {
      if (const auto* local = std::get_if<Local>(&statement))
        found.insert(local->buffer.name);
      if (const auto* inner = body_of(statement))
        find_locals(*inner, found);
    }
  }

  void visit(const Loop& loop) {
    const size_t number = loops_.size();
    loops_.push_back({&loop, number, {}});
    std::set<std::string> own;
    find_locals(loop.body, own);
    for_each_use(loop.body, [&](const loops::Use& use) {
      if (own.contains(use.place.buffer))
        return;
      const auto [buffer, local] = buffers_.at(use.place.buffer);
      if (local == nullptr || (buffer->space != Space::Private && !spreads_shared_))
        loops_[number].accesses.push_back(
            {.buffer = buffer, .at = use.place.at, .is_shared = local != nullptr, .is_chosen = use.chosen});
      else if (mentions(use.place.at, loop.variable))
        spread(*local, use.place.at, loop, number);
      else
        held_whole_.insert(local);
    });
  }

  void spread(const Local& local, const std::vector<Scalar>& at, const Loop& loop, size_t number) {
    const bool is_whole =
        loop.begin == Dim(0) && loop.step == 1 && loop.end.is_constant() && loop.end == iterations_of(local);
    const bool fits = is_whole && (local.buffer.space == Space::Private
                                       ? is_first_index(at, loop.variable)
                                       : offset_of(local.buffer, at) == Dim::symbol(loop.variable));
    if (!fits)
      throw unsupported("kernel {}: buffer '{}' is not indexed by thread loop '{}' over all of its {}",
                        kernel_.name, local.buffer.name, loop.variable,
                        local.buffer.space == Space::Private ? "first dimension" : "elements");
    std::vector<size_t>& over = spread_over_[&local];
    over.push_back(number);
    layouts_.spread_over_.insert(&loop);
    loops_[group_of(number)].group = group_of(over.front());
  }

  static bool is_first_index(const std::vector<Scalar>& at, const std::string& variable) {
    return at.front() == Scalar::index(Dim::symbol(variable)) &&
           std::none_of(at.begin() + 1, at.end(),
                        [&](const Scalar& index) { return loops::mentions(index, variable); });
  }

  // Over which it is spread: of private buffers, each thread has rows.
  static Dim iterations_of(const Local& local) {
    if (local.buffer.space == Space::Private)
      return local.buffer.sizes.front();
    Dim elements = 1;
    for (const Dim& size : local.buffer.sizes)
      elements = elements * size;
    return elements;
  }

  // The most for which more accesses gain than lose.
  void choose(size_t group) {
    std::vector<const ThreadLoop*> loops;
    for (size_t i = 0; i < loops_.size(); ++i)
      if (group_of(i) == group)
        loops.push_back(&loops_[i]);
    int64_t vector = kVectorBytes;
    while (vector > 1 && !gains(loops, vector))
      vector /= 2;
    for (const ThreadLoop* each : loops)
      layouts_.vectors_.emplace(each->loop, vector);
    for (const auto& [local, over] : spread_over_)
      if (group_of(over.front()) == group) {
        const int64_t iterations = *iterations_of(*local).constant();
        const int64_t per_trip = threads_ * vector;
        layouts_.spreads_.emplace(local, Spread{.iterations = iterations,
                                                .vector = vector,
                                                .held = (iterations + per_trip - 1) / per_trip * vector});
      }
  }

  bool gains(const std::vector<const ThreadLoop*>& loops, int64_t vector) const {
    int64_t gain = 0;
    for (const ThreadLoop* each : loops) {
      const Loop& loop = *each->loop;
      const std::optional<int64_t> iterations = loops::iterations_of(loop).constant();
      if (loop.step != 1 || !can_run_in_lanes(loop.body, loop.variable) ||
          (iterations && 2 * *iterations <= threads_ * vector))
        return false;
      for (const Access& access : each->accesses) {
        const Movement movement = movement_of(*access.buffer, access.at, loop, vector);
        if (movement == Movement::Aligned && vector * info(access.buffer->dtype).bytes > kVectorBytes)
          return false;
        if (movement == Movement::Aligned && !access.is_chosen)
          ++gain;
        else if (movement == Movement::Aligned || movement == Movement::Near ||
                 (movement == Movement::Far && access.is_shared))
          --gain;
      }
    }
    return gain > 0;
  }
  const loops::Kernel& kernel_;
  int64_t threads_;
  bool spreads_shared_;
  Layouts& layouts_;
  std::map<std::string, Visible> buffers_;  // those in sight
  std::vector<ThreadLoop> loops_;
  std::map<const Local*, std::vector<size_t>> spread_over_;
  std::set<const Local*> held_whole_;
};

Layouts::Layouts(const loops::Kernel& kernel, const PipelinedRegion& region, int64_t threads,
                 bool spreads_shared) {
  LayoutBuilder(kernel, threads, spreads_shared, *this).build(region.region().body);
}

int64_t Layouts::elements_held(const Local& local, const Spread& spread) {
  if (local.buffer.space != Space::Private)
    return 0;
  Dim held = spread.held;
  for (size_t i = 1; i < local.buffer.sizes.size(); ++i)
    held = held * local.buffer.sizes[i];
  return held.constant().value_or(0);
}

int64_t Layouts::elements_held() const {
  int64_t held = 0;
  for (const auto& [local, spread] : spreads_)
    held += elements_held(*local, spread);
  return held;
}

int64_t Layouts::most_elements_held() const {
  int64_t most = 0;
  for (const auto& [local, spread] : spreads_)
    most = std::max(most, elements_held(*local, spread));
  return most;
}

const Spread* Layouts::find_spread(const Local& local) const {
  const auto it = spreads_.find(&local);
  return it == spreads_.end() ? nullptr : &it->second;
}

}  // namespace tenon::codegen::cuda
