// pipelined_loops.h — loops whose copies run ahead (pipelines.h), and the shared memory that these come to.
#pragma once

#include "codegen/cuda/shared_memory.h"

namespace tenon::codegen::cuda {

class PipelineText : protected TileText {
 protected:
  using TileText::TileText;
  ~PipelineText() = default;

  // How a pipelined loop counts. One over iterations of the block loops takes every so many-th of them.
  struct Counting {
    std::string_view type;
    Range range;
    std::string begin, end, step;

    // So many steps.
    std::string times(const std::string& count) const {
      return step == "1" ? count : count == "1" ? step : fmt::format("{} * {}", count, step);
    }
  };

  // In a cluster, each block has a part.
  void set_shared(Storage& storage, const loops::Local& local) const;
  void declare_shared(const Storage& storage, const std::string& name, int64_t slots);
  void await_start();
  void copy(const loops::Loop& loop);
  Counting counting_of(const loops::Loop& loop, const Pipeline* pipeline);
  static std::string next_text(const std::string& name, const std::string& step);
  void run_pipelined(const loops::Loop& loop, Pipeline pipeline);

  virtual void run_statement(const loops::Statement& statement, bool has_others) = 0;

  const PipelinedRegion* pipelined_ = nullptr;
  std::set<const loops::Loop*> warpgroup_products_;
  std::set<const loops::Statement*> barriers_;
  const loops::Statement* awaits_start_ = nullptr;  // before which all blocks of a cluster must have started
  Dim shared_used_ = 0, shared_of_team_ = 0;

  // A buffer that copies are on their way to while another slot of it is read.
  struct Ring {
    Storage storage;
    int64_t slots;
    std::string name, slot;  // of the first slot; the number of the present one
  };
  std::map<std::string, Ring> rings_;  // by the buffer's name

  void declare_slot(const Ring& ring, const std::string& slot);

 private:
  // Whether each iteration does nothing but multiply what was copied, and there are slots enough to copy to
  // while the products of two iterations are under way.
  bool overlaps_products(const loops::Loop& loop, const Pipeline& pipeline) const;
  void declare_rings(const loops::Loop& loop, const Pipeline& pipeline, const std::string& slot);
  void run_stage(const loops::Loop& loop, const Pipeline& pipeline, const Counting& counting,
                 const std::string& slot);
  void begin_first_copies(const loops::Loop& loop, const Pipeline& pipeline, const Counting& counting);
  // Those of an iteration, if there is one; in any case a stage ends.
  void begin_copies(const loops::Loop& loop, const Pipeline& pipeline, const Counting& counting,
                    const std::string& iteration, const std::string& slot);
};

}  // namespace tenon::codegen::cuda
