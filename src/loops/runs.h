// runs.h — the runs of a kernel's statements, as relations of the integer set library.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// A loop around a statement.
struct Around {
  const Loop* loop;
  int64_t place;  // of the loop among the statements around it
};

// A statement that computes, and what surrounds it.
struct Run {
  const Statement* statement;
  std::vector<Around> around;   // outermost first
  std::vector<Dim> conditions;  // of guards
  int64_t place;                // among the statements around it
  std::map<std::string, size_t>
      in_sight;  // local buffers: how many of the loops are around their declaration
};

std::vector<Run> find_runs(const Kernel& kernel);
const Origin& origin_of(const Run& run);
// Whether a statement that these loops and conditions surround can ever run. Where that cannot be decided, it
// can.
bool can_run(const Kernel& kernel, const Run& run);

// Words of the library for names and sizes of ours. Sums of variables times integers, their remainders and
// rounded quotients by integers, minima and maxima have some; products of two sizes have none.
class Words {
 public:
  std::string name(const std::string& symbol);
  std::optional<std::string> expression(const Dim& dim);

  // What the loops and guards around a run say of the variables: "0 <= v0 and v0 < v1". Nothing where there
  // are no words for it; then `problem` says why.
  std::optional<std::string> domain(const Run& run, std::string& problem);
  // [v1, v2] -> { PIECE : …; PIECE : … }, where sizes of the kernel are 0 or more.
  std::string relation(const Kernel& kernel, const std::vector<std::string>& pieces);

 private:
  std::map<std::string, std::string> names_;
};

}  // namespace tenon::loops
