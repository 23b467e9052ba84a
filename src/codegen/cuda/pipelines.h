// pipelines.h — copies to shared memory, and those of later iterations that are under way while a loop
// computes.
//
// A copy becomes a thread loop of asynchronous instructions. In a pipelined loop they run ahead:
//
//   for k in 0..n pipelined 3 {        begin the copies for k = 0 and 1
//     local a: f32[256] in shared      for k in 0..n {
//     copy(256) a[0] = x[k,0]            wait for those for k
//     for i in 0..256 thread {           begin those for k + 2, in the slot of k - 1
//       s[i] += a[255-i] } }             … }
//
// Thread loops that do nothing but bring elements from memory to shared memory, or 0 where a condition does
// not hold, are copies, too.
//
// Where statements follow that do not read what is copied, the next copies begin before these, in the slot
// that was just read: one slot less does as much.
#pragma once

#include <map>
#include <set>

#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

// A loop whose copies run ahead.
struct Pipeline {
  std::set<std::string> buffers;  // that are copied to
  std::vector<const loops::Statement*> copies;
  // After which the next copies begin; null: as soon as those of this iteration have come.
  const loops::Statement* last_reader = nullptr;
  int64_t ahead = 1;  // iterations
  int64_t slots = 1;  // that a buffer has
};

// A region with thread loops in place of copies, and a loop over iterations of the block loops where thread
// blocks stay for several. The region lives as long as the kernel that it was made of is emitted: others
// point into it.
class PipelinedRegion {
 public:
  explicit PipelinedRegion(loops::ParallelRegion region);
  PipelinedRegion(const PipelinedRegion&) = delete;
  PipelinedRegion& operator=(const PipelinedRegion&) = delete;

  const loops::ParallelRegion& region() const { return region_; }
  // Whether the loop was a copy, which is asynchronous also where it does not run ahead.
  bool is_copy(const loops::Loop& loop) const { return copies_.contains(loop.variable); }
  // Null where nothing runs ahead.
  const Pipeline* find(const loops::Loop& loop) const;
  // How many slots a shared buffer has.
  int64_t slots_of(const std::string& buffer) const;
  // The loop over iterations of the block loops; null where a thread block has one.
  const loops::Loop* persistent() const { return persistent_; }

 private:
  std::vector<loops::Statement> without_copies(const std::vector<loops::Statement>& body,
                                               std::map<std::string, DType> dtypes);
  void find_pipelines(const std::vector<loops::Statement>& body);
  std::optional<Pipeline> pipeline_of(const loops::Loop& loop) const;
  bool can_run_ahead(const loops::Loop& around, const loops::Loop& copy) const;

  loops::ParallelRegion region_;
  std::set<std::string> names_, copies_;  // of all loops and buffers; variables of loops that copy
  std::map<const loops::Loop*, Pipeline> pipelines_;
  const loops::Loop* persistent_ = nullptr;
};

// Whether thread blocks stay for several iterations.
bool is_persistent(const loops::ParallelRegion& region);

}  // namespace tenon::codegen::cuda
