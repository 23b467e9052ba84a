// run_loop.h — a loop whose iterations are runs of one program over memory that stays where it is: an
// iteration reads its slices and writes what it collects in their places, and what is carried alternates
// between two.
#pragma once

#include <functional>

#include "runtime/control_flow.h"
#include "runtime/repeated_runs.h"

namespace tenon::runtime {

class LoopRun {
 public:
  // Gives a tensor whose elements may be written: result number `result`, of these sizes.
  using Place = std::function<Tensor(size_t result, DType dtype, const Extents& extents)>;

  // Nothing where run_control must run it: there is no iteration, a dynamic number of them is
  // collected, a value is no tensor of numbers, or has other sizes in another iteration.
  static std::unique_ptr<LoopRun> start(const ControlFlow& loop, std::span<const Datum> operands,
                                        const Executor& body, const RunOptions& options, const Place& place);

  // Whether all these loops, of which some may not have started, take less time concurrently, each in a
  // thread of its own, than sequentially, with the kernels of each iteration in all threads.
  static bool gain_beside_each_other(const std::vector<std::unique_ptr<LoopRun>>& loops, int threads);

  // The results of the loop.
  Data run();

 private:
  // A tensor of which each iteration has one slice along an axis, `outer` blocks that lie apart.
  struct Sliced {
    Tensor whole;
    int64_t iterations, outer, block;  // block: in bytes
    bool reversed;
    Tensor slice;  // that of the iteration, where it is in several blocks

    Sliced(const Tensor& whole, int64_t axis, bool reversed);
    std::byte* block_of(int64_t iteration, int64_t index) const;
    std::byte* place(int64_t iteration);  // of the slice, which is not filled yet
    void gather(int64_t iteration);       // fills it from the whole
    void scatter(int64_t iteration);      // or the whole from it
  };

  LoopRun(const ControlFlow& loop, const ControlOperands& operands, const Program& body);

  bool read_iterations(const ControlOperands& operands);
  Data first_inputs();
  bool place_results(const std::vector<Extents>& outputs, const Place& place);
  void run_iteration(int64_t iteration);

  const ControlFlow& loop_;
  const Program& body_;
  const size_t leading_;
  int64_t iterations_ = 0;  // at most
  int64_t iteration_ = 0;
  uint8_t go_on_ = 1;
  std::vector<Tensor> carried_, captured_;
  std::vector<Sliced> scanned_, collected_;
  std::vector<Tensor> last_, spare_;  // where carried values are written
  std::optional<Executor::Runs> runs_;
  std::vector<const void*> inputs_;  // of the iteration
  std::vector<void*> outputs_;
};

}  // namespace tenon::runtime
