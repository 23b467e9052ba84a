// thread_loops.h — loops whose iterations the threads of a block share out, as layouts.h says.
#pragma once

#include "codegen/cuda/folds.h"

namespace tenon::codegen::cuda {

class ThreadLoopText : protected FoldText {
 protected:
  using FoldText::FoldText;
  ~ThreadLoopText() = default;

  void run_threads(const loops::Loop& loop, int64_t vector);
  // A vector loop within a thread loop, all of whose iterations are one vector. False where it cannot be.
  bool run_lanes(const loops::Loop& loop);

  virtual void run(const std::vector<loops::Statement>& body) = 0;

  const Layouts* layouts_ = nullptr;

 private:
  void run_constant(const loops::Loop& loop, int64_t iterations, int64_t vector);
  void run_dynamic(const loops::Loop& loop, int64_t vector, int64_t trips_in_flight);
  // The vectors of one trip: the statements for all of its iterations, or for those that there are.
  void run_vector(const loops::Loop& loop, int64_t vector, const std::string& trip, const Dim& first);
  void run_tail(const loops::Loop& loop, int64_t vector, const std::string& trip, const Dim& first);
  // const int i = …; and the statements, where they need it.
  void run_with(const loops::Loop& loop, const Dim& value);
  // The first iteration of this thread in its trip.
  Dim first_of(const loops::Loop& loop, int64_t vector, const Dim& trip) const;
  Range range_within(const loops::Loop& loop, const Dim& value) const;
};

}  // namespace tenon::codegen::cuda
