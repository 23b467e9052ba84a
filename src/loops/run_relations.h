// run_relations.h — when the runs of a statement happen and which elements they use, as relations of the
// integer set library. Runs are told apart by their origin (order.h).
#pragma once

#include <set>

#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {

// A place that a statement uses.
struct Element {
  std::string buffer;
  // Combine only where that may happen in any order.
  Access access;
  // Whether it can be told which element it is; else this speaks of all that it may be.
  bool is_known;
  std::string image;  // of a run, in words of the library
  Relation of_run;
};

class RunRelations {
 public:
  RunRelations(const Kernel& kernel, const Context& context)
      : kernel_(kernel), context_(context), words_(kernel) {}

  // To the time when a run happens: places and values of loops take iterations, and there is room for `depth`
  // loops.
  Relation time(const Run& run, size_t depth);
  // To the iteration of one of the loops around it, and to the time of what is around that loop.
  Relation iteration(const Run& run, size_t loop);
  Relation time_around(const Run& run, size_t loop);

  // The size that a word stands for, or the product of sizes.
  const std::string& symbol(const std::string& word) const { return words_.symbol(word); }
  bool is_product(const std::string& word) const { return words_.is_product(word); }

  // The places that a statement uses of these buffers, those that it writes first, in their order.
  std::vector<Element> elements(const Run& run, const std::set<std::string>& buffers);

 private:
  std::vector<std::string> steps(const Run& run, size_t loops);
  std::optional<std::string> index(const Scalar& scalar);
  bool is_known(const Run& run, const Place& place);
  bool minds_order(const Run& run);
  std::string element(const Run& run, const Place& place);
  static std::string any(size_t axis) { return fmt::format("any{}", axis); }  // a name that nothing restricts
  std::string box(const Run& run, const Place& place);
  Relation built(const Run& run, const std::string& image, const std::string& conditions = "");

  const Kernel& kernel_;
  const Context& context_;
  Words words_;
};

}  // namespace tenon::loops
