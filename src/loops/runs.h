// runs.h — the runs of a kernel's statements, as relations of the integer set library.
#pragma once

#include <set>

#include "loops/kernel.h"

namespace tenon {
struct DimAtom;
}

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
// rounded quotients by integers, minima and maxima have some. Products have none, unless sizes alone decide
// them: such a number has a name of its own, and may be any.
class Words {
 public:
  explicit Words(const Kernel& kernel);

  std::string name(const std::string& symbol);
  const std::string& symbol(const std::string& name) const;  // the other way round
  bool is_product(const std::string& name) const { return products_.contains(name); }
  // Nothing where there are none but for such names.
  std::optional<std::string> find_expression(const Dim& dim) { return find(dim, false); }
  // Undecided where there are none at all.
  std::string expression(const Dim& dim);

  // What the loops and guards around a run say of the variables: "0 <= v0 and v0 < v1".
  std::string domain(const Run& run);
  // [v1, v2] -> { PIECE : …; PIECE : … }, where sizes of the kernel are 0 or more.
  std::string relation(const std::vector<std::string>& pieces) const;

 private:
  void add_condition(const Dim& dim, std::vector<std::string>& conditions);
  std::optional<std::string> find(const Dim& dim, bool also_products);
  std::optional<std::string> find(const DimAtom& atom, bool also_products);
  std::optional<std::string> find(const std::vector<std::shared_ptr<const DimAtom>>& factors,
                                  bool also_products);

  std::map<std::string, std::string> names_;
  std::set<std::string> sizes_;
  std::set<std::string> products_;  // of sizes, by their names
};

}  // namespace tenon::loops
