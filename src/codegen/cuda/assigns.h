// assigns.h — assignments and combines, of one iteration or of a vector of them.
#pragma once

#include "codegen/cuda/scalars.h"

namespace tenon::codegen::cuda {

// The threads that run one iteration of the block loops.
struct Team {
  int64_t threads = 1;
  int64_t per_block = 1;  // so many teams share a thread block; then each is a part of a warp
  int64_t blocks = 1;     // so many thread blocks are the team: a cluster

  bool is_in_warp() const { return threads <= 32; }
  bool is_cluster() const { return blocks > 1; }
};

class AssignText : protected ScalarText {
 protected:
  explicit AssignText(const loops::Kernel& kernel) : kernel_(kernel) {}
  ~AssignText() = default;

  // Runs the statement for the iterations at hand: all of a vector, or one.
  void run_assign(const loops::Assign& assign);

  // Whether the statement combines into a partial result of the thread, and that.
  virtual bool folds(const loops::Assign& assign) const = 0;
  virtual bool fold(const loops::Assign& assign) = 0;

  // What values that are there and those that come become.
  std::vector<Expression> combine(const loops::Assign& assign, const std::vector<Expression>& there,
                                  const std::vector<Expression>& coming);
  static bool adds_product(const loops::Assign& assign);
  Expression product_added(const loops::Assign& assign, const Expression& sum);
  DType dtype_of(const loops::Place& place) const { return storage_.at(place.buffer).buffer.dtype; }

  const loops::Kernel& kernel_;
  Team team_;
  bool copies_async_ = false;      // assignments, which are all from memory to shared memory
  bool has_async_copies_ = false;  // that nothing waits for yet

 private:
  // Whether there is an instruction for it.
  bool copy_async(const loops::Assign& assign);
  bool is_pair(const loops::Assign& assign) const;
  void store_pair(const loops::Assign& assign);
  void run_one(const loops::Assign& assign, const std::vector<std::string>& stored_vectors);
  void refuse_scattered_combine(const loops::Assign& assign) const;
};

}  // namespace tenon::codegen::cuda
